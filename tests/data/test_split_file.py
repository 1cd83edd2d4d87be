"""The split's file: read back whole, refused when changed, tied to its data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from synthsieve.data.dataset import Dataset, Examples
from synthsieve.data.registry import load
from synthsieve.data.splits import Split, indices_of, make_split, ranges_of
from synthsieve.errors import DataError
from tests.errors import raises


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits")


def test_written_and_read(digits: Dataset, tmp_path: Path) -> None:
    split = make_split(digits, labels=50, seed=3)
    split.write(tmp_path / "split.json")
    back = Split.read(tmp_path / "split.json")
    back.check_against(digits)
    assert back.hash == split.hash
    manifest = json.loads((tmp_path / "split.json").read_text(encoding="utf-8"))
    assert manifest["source"] == "digits"
    assert manifest["sizes"] == {"labeled": 50, "unlabeled": 1245, "validation": 143, "test": 359, "excluded": 0}
    assert manifest["counts"]["labeled"] == dict.fromkeys("0123456789", 5)
    assert (tmp_path / "split.json").stat().st_size < 10_000


def test_the_split_of_a_seed_never_changes(digits: Dataset) -> None:
    """A frozen hash: results of an older version stay comparable with those of this one."""
    assert make_split(digits, labels=50, seed=0).hash.startswith("7ef1f2388cbe7735")


def test_a_changed_manifest_is_refused(digits: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "split.json"
    value = make_split(digits, labels=50, seed=3).to_json()
    for change, code in (
        ({"indices": {**value["indices"], "labeled": "0-49"}}, "damaged-file"),
        ({"indices": {**value["indices"], "labeled": "9-0"}}, "damaged-file"),
        ({"indices": {**value["indices"], "labeled": "0-99999999999999"}}, "damaged-file"),
        ({"indices": {}}, "damaged-file"),
        ({"test_is_own": True}, "damaged-file"),
        ({"format": "other"}, "unknown-format"),
    ):
        path.write_text(json.dumps({**value, **change}), encoding="utf-8")
        with raises(DataError, code):
            Split.read(path)
    path.write_text(json.dumps(value)[:500], encoding="utf-8")
    with raises(DataError, "damaged-file"):
        Split.read(path)
    with raises(DataError, "damaged-file"):
        Split.read(tmp_path / "absent.json")


def test_other_data_are_refused(digits: Dataset) -> None:
    split = make_split(digits, labels=50, seed=3)
    y = digits.train.y.copy()
    y[0] = (y[0] + 1) % 10
    with raises(DataError, "other-data"):
        split.check_against(replace(digits, train=Examples(digits.train.x, y)))
    with raises(DataError, "other-data"):
        split.check_against(replace(digits, train=Examples(255 - digits.train.x, digits.train.y)))
    with raises(DataError, "other-data"):
        split.check_against(replace(digits, classes=tuple("abcdefghij")))


def test_ranges() -> None:
    for indices, text in (([], ""), ([4], "4"), ([0, 1, 2, 5, 7, 8], "0-2,5,7-8")):
        assert ranges_of(np.array(indices, np.int64)) == text
        assert indices_of(text).tolist() == indices


def test_unlabelled_rows_of_a_held_out_group_are_used_nowhere() -> None:
    rng = np.random.default_rng(0)
    y = np.where(np.arange(200) % 4 == 3, -1, rng.integers(0, 2, 200)).astype(np.int64)
    x = np.zeros((200, 2), np.float32)
    dataset = Dataset("g", "vector", ("a", "b"), Examples(x, y, np.arange(200) // 4))  # type: ignore[arg-type]
    split = make_split(dataset, labels=10, seed=0)
    assert len(split.excluded) > 0
    assert (y[split.excluded] == -1).all()
    assert any("used nowhere" in note for note in split.notes)
