"""Samples on disk: columns whose names are taken, odd labels as folders, and cells as they are."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from synthsieve.export.samples import write_items
from synthsieve.waveforms import Waveforms


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_no_column_is_lost_when_names_meet(tmp_path: Path) -> None:
    (path,) = write_items(tmp_path / "a", ["x y", "z"], ["good", "bad"], label_name="text", weight=[1, 2])
    assert _read(path)[0] == {"text": "x y", "synthetic_text": "good", "weight": "1"}
    table = pa.table({"weight": [1.5], "synthetic_weight": [2.5], "label": ["l"]})
    _, path = write_items(tmp_path / "b", table, ["c"], label_name="y", weight=[3])
    assert parquet.read_table(path).to_pylist() == [
        {"weight": 1.5, "synthetic_weight": 2.5, "label": "l", "y": "c", "synthetic_synthetic_weight": 3}
    ]


def test_text_views_are_written_too(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array(["x", None], pa.string_view())})
    first, _ = write_items(tmp_path / "a", table, ["c", "d"])
    assert [row["a"] for row in _read(first)] == ["x", ""]


def test_cells_are_written_as_they_are(tmp_path: Path) -> None:
    """Not even a cell that a spreadsheet would take for a formula is changed: it would be read back as another."""
    texts = ["=1+1", "@sum", 'a "quoted" , one', "-5", "naïve 🙂"]
    (path,) = write_items(tmp_path / "a", texts, ["c"] * 5)
    assert [row["text"] for row in _read(path)] == texts


def test_any_label_is_a_folder(tmp_path: Path) -> None:
    labels = ["../up", "é" * 300, "", "a/b"]
    folder, table = write_items(tmp_path / "s", Waveforms([np.zeros(8, np.float32)] * 4, 8000), labels)
    rows = _read(table)
    assert [row["label"] for row in rows] == labels
    assert all((folder / row["file"]).resolve().is_relative_to(folder.resolve()) for row in rows)
    assert all((folder / row["file"]).is_file() for row in rows)
