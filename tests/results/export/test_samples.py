"""`write_items`, and names of columns and folders that never collide."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from synthsieve.data.modalities.sound.format import Waveforms
from synthsieve.results.export.block import unique_names
from synthsieve.results.export.samples import write_items
from synthsieve.results.export.writers import folder_names


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_colliding_columns_are_renamed(tmp_path: Path) -> None:
    (path,) = write_items(tmp_path / "a", ["x y", "z"], ["good", "bad"], label_name="text", weight=[1, 2])
    assert _read(path)[0] == {"text": "x y", "synthetic_text": "good", "weight": "1"}
    table = pa.table({"weight": [1.5], "synthetic_weight": [2.5], "label": ["l"]})
    _, path = write_items(tmp_path / "b", table, ["c"], label_name="y", weight=[3])
    assert parquet.read_table(path).to_pylist() == [
        {"weight": 1.5, "synthetic_weight": 2.5, "label": "l", "y": "c", "synthetic_synthetic_weight": 3}
    ]


def test_string_views_are_written(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array(["x", None], pa.string_view())})
    first, _ = write_items(tmp_path / "a", table, ["c", "d"])
    assert [row["a"] for row in _read(first)] == ["x", ""]


def test_cells_are_written_unchanged(tmp_path: Path) -> None:
    """Formulas are not escaped: they would be read back as other text."""
    texts = ["=1+1", "@sum", 'a "quoted" , one', "-5", "naïve 🙂"]
    (path,) = write_items(tmp_path / "a", texts, ["c"] * 5)
    assert [row["text"] for row in _read(path)] == texts


def test_any_label_has_a_folder(tmp_path: Path) -> None:
    labels = ["../up", "é" * 300, "", "a/b"]
    folder, table = write_items(tmp_path / "s", Waveforms([np.zeros(8, np.float32)] * 4, 8000), labels)
    rows = _read(table)
    assert [row["label"] for row in rows] == labels
    assert all((folder / row["file"]).resolve().is_relative_to(folder.resolve()) for row in rows)
    assert all((folder / row["file"]).is_file() for row in rows)


@given(st.lists(st.text(max_size=3), unique=True), st.lists(st.text(max_size=3)))
def test_unique_names(taken, names):
    unique = unique_names(taken, names)
    assert len({*taken, *unique}) == len(taken) + len(names)
    assert all(new.removesuffix(old).replace("synthetic_", "") == "" for old, new in zip(names, unique, strict=True))


@given(st.lists(st.text(max_size=4), unique=True))
def test_folder_names_are_distinct_and_safe(classes):
    names = folder_names(classes)
    assert len({name.casefold() for name in names}) == len(classes)
    assert not any(set(name) & set("/\\.:\0") or not name for name in names)


def test_folder_names():
    assert folder_names(["0", "cat", "new-york_2"]) == ["0", "cat", "new-york_2"]
    assert folder_names(["a/b", "a.b", "A_b", ""]) == ["a_b", "a_b_2", "A_b_3", "_"]
    assert len(folder_names(["é" * 300])[0].encode()) < 255


@pytest.mark.parametrize(("encoding", "folders"), [("utf-8", ["naïve", "naive"]), ("ascii", ["na_ve", "naive"])])
def test_folder_names_in_other_encodings(monkeypatch, encoding, folders):
    monkeypatch.setattr("os.fsencode", lambda name: name.encode(encoding))
    assert folder_names(["naïve", "naive"]) == folders
