"""Batches: every row once an epoch, every batch full, and a resumed stream that equals an unbroken one."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from synthsieve.data.batches import Batches
from synthsieve.errors import CheckpointError, DataError
from synthsieve.io.random_streams import numpy_stream
from tests.errors import raises


def make(rows: int, size: int, seed: int = 0) -> Batches:
    return Batches(rows, size, rng=numpy_stream(seed, "batches"))


@settings(deadline=None, max_examples=100)
@given(rows=st.integers(1, 40), size=st.integers(1, 90), taken=st.integers(0, 12))
def test_epochs_and_resumption(rows: int, size: int, taken: int) -> None:
    unbroken = make(rows, size)
    stream = [next(unbroken) for _ in range(taken + 6)]
    assert all(batch.shape == (size,) and batch.dtype == np.int64 for batch in stream)
    group = np.concatenate(stream)
    for start in range(0, len(group) - rows + 1, rows):
        np.testing.assert_array_equal(np.sort(group[start : start + rows]), np.arange(rows))

    killed = make(rows, size)
    for _ in range(taken):
        next(killed)
    state = json.loads(json.dumps(killed.state()))
    resumed = make(rows, size, seed=99)
    resumed.restore(state)
    for expected in stream[taken:]:
        np.testing.assert_array_equal(next(resumed), expected)


def test_fifty_rows_in_batches_of_a_hundred_come_twice_each() -> None:
    batches = make(50, 100)
    for _ in range(5):
        np.testing.assert_array_equal(np.bincount(next(batches)), np.full(50, 2))


def test_state_is_small() -> None:
    one, other = make(70_000, 100), make(70_000, 100)
    for _ in range(3):
        assert len(json.dumps(one.state())) < 500
        np.testing.assert_array_equal(next(one), next(other))


def test_a_state_is_not_moved_by_later_batches() -> None:
    batches = make(10, 7)
    state = batches.state()
    expected = [next(batches) for _ in range(5)]
    batches.restore(state)
    for batch in expected:
        np.testing.assert_array_equal(next(batches), batch)


def test_damaged_state() -> None:
    with raises(CheckpointError, "other-batches"):
        make(10, 5).restore(make(11, 5).state())
    for damage in ({"position": 11}, {"position": "x"}, {"generator": {}}, {"generator": None}):
        with raises(CheckpointError, "damaged-batches"):
            make(10, 5).restore({**make(10, 5).state(), **damage})


def test_nothing_to_draw_from() -> None:
    with raises(DataError, "no-rows"):
        make(0, 5)
    with raises(DataError, "batch-size"):
        make(5, 0)
