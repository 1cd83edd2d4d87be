"""The pool: what it says of each row, and its file."""

import numpy as np
import pytest

from synthsieve.entropy import Reason
from synthsieve.errors import CheckpointError
from synthsieve.pool import SyntheticPool


def pool(**changes):
    columns = {
        "y": np.array([0, 0, 1, 1]),
        "z": np.arange(8, dtype=np.float32).reshape(4, 2),
        "chain_seed": np.array([11, 12, 13, 14]),
        "entropy": np.array([0.1, 0.2, 0.9, 0.3]),
        "reason": np.array([Reason.KEPT, Reason.KEPT, Reason.HIGH_ENTROPY, Reason.KEPT], dtype=np.int8),
        "weight": np.array([2.0, 0.0, 0.0, 1.0]),
        "rank": np.array([0, -1, -1, 0]),
        "x": np.zeros((2, 3), dtype=np.float32),
        "origin": {"model_hash": "abc", "seed": 5},
    }
    return SyntheticPool(**{**columns, **changes})


def test_it_knows_who_is_selected_who_survived_and_why():
    mine = pool()
    assert mine.selected.tolist() == [0, 3]
    assert mine.survivors.tolist() == [0, 1, 3]
    assert mine.loss_weights.tolist() == [4 / 3, 2 / 3]
    assert [mine.reason_in_words(row) for row in range(3)] == [
        "selected",
        "not selected: another stands for it",
        "entropy not below the ceiling",
    ]


def test_it_comes_back_from_disk_without_pickle(tmp_path):
    pool().write(tmp_path / "pool.npz")
    again = SyntheticPool.read(tmp_path / "pool.npz")
    for name, value in vars(pool()).items():
        assert np.array_equal(getattr(again, name), value), name
    assert [path.name for path in tmp_path.iterdir()] == ["pool.npz"]


@pytest.mark.parametrize("spoil", ["cut", "text", "columns", "x"])
def test_a_damaged_file_is_one_sentence(tmp_path, spoil):
    path = tmp_path / "pool.npz"
    changes = {"columns": {"rank": np.array([0])}, "x": {"x": np.zeros((1, 3))}}
    pool(**changes.get(spoil, {})).write(path)
    if spoil == "cut":
        path.write_bytes(path.read_bytes()[:200])
    elif spoil == "text":
        path.write_text("no pool", encoding="utf-8")
    with pytest.raises(CheckpointError, match="fit again"):
        SyntheticPool.read(path)
