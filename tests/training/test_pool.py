"""The pool: what it says of each row, and its file."""

import json

import numpy as np
import pytest

from synthsieve.errors import CheckpointError
from synthsieve.selection.entropy import Reason
from synthsieve.settings import EntropyAt
from synthsieve.training.pool import OLD_FORMAT, SyntheticPool
from tests.errors import raises


def pool(**changes):
    columns = {
        "y": np.array([0, 0, 1, 1]),
        "z": np.arange(8, dtype=np.float32).reshape(4, 2),
        "chain_seed": np.array([11, 12, 13, 14]),
        "logits_z": np.array([[1, 0], [2, 0], [0, 3], [4, 5]], dtype=np.float32),
        "logits_x": np.array([[1, 0], [0, 1], [1, 0], [0, 1]], dtype=np.float32),
        "z_reencoded": np.ones((4, 2), dtype=np.float32),
        "oracle_class": np.array([0, 1, 1, 1]),
        "entropy": np.array([0.1, 0.2, 0.9, 0.3]),
        "reason": np.array([Reason.KEPT, Reason.KEPT, Reason.HIGH_ENTROPY, Reason.KEPT], dtype=np.int8),
        "weight": np.array([2.0, 0.0, 0.0, 1.0]),
        "rank": np.array([0, -1, -1, 0]),
        "x": np.zeros((2, 3), dtype=np.float32),
        "origin": {"model_hash": "abc", "seed": 5},
    }
    return SyntheticPool(**{**columns, **changes})


def test_outcomes():
    given = pool()
    assert given.selected.tolist() == [0, 3]
    assert given.survivors.tolist() == [0, 1, 3]
    assert given.loss_weights.tolist() == [4 / 3, 2 / 3]
    assert given.codes.tolist() == [Reason.SELECTED, Reason.KEPT, Reason.HIGH_ENTROPY, Reason.SELECTED]
    assert [given.describe(row) for row in range(4)] == [Reason(code).describe() for code in given.codes]
    assert list(given.counts().values()) == [2, 1, 1, 0, 0]


def test_scores():
    given = pool()
    assert given.predicted.tolist() == [0, 1, 0, 1]
    assert given.logits_at(EntropyAt.X) is given.logits_x
    assert given.logits_at(EntropyAt.Z) is given.logits_z
    log_reference = -0.5 * (given.z.astype(np.float64) ** 2).sum(axis=1) - np.log(2 * np.pi)
    assert given.log_density == pytest.approx(np.array([1, 2, 3, 5]) + log_reference, rel=1e-12)
    assert given.purity(np.arange(4)) == 0.75
    assert given.purity(np.arange(0)) is None
    assert pool(oracle_class=np.full(4, -1)).purity(np.arange(4)) is None


def test_written_and_read(tmp_path):
    pool().write(tmp_path / "pool.npz")
    again = SyntheticPool.read(tmp_path / "pool.npz")
    for name, value in vars(pool()).items():
        assert np.array_equal(getattr(again, name), value), name
    assert [path.name for path in tmp_path.iterdir()] == ["pool.npz"]


@pytest.mark.parametrize("spoil", ["cut", "text", "columns", "x", "classes"])
def test_damaged_files_are_refused(tmp_path, spoil):
    path = tmp_path / "pool.npz"
    changes = {
        "columns": {"rank": np.array([0])},
        "x": {"x": np.zeros((1, 3))},
        "classes": {"oracle_class": np.full(4, 2)},
    }
    pool(**changes.get(spoil, {})).write(path)
    if spoil == "cut":
        path.write_bytes(path.read_bytes()[:200])
    elif spoil == "text":
        path.write_text("no pool", encoding="utf-8")
    with raises(CheckpointError, "damaged-pool"):
        SyntheticPool.read(path)


def test_pools_of_an_older_version_are_refused(tmp_path):
    header = np.asarray(json.dumps({"format": OLD_FORMAT, "origin": {"model_hash": "abc"}}))
    np.savez(tmp_path / "pool.npz", header=header, y=np.zeros(4, dtype=np.int64))
    with raises(CheckpointError, "old-pool"):
        SyntheticPool.read(tmp_path / "pool.npz")
