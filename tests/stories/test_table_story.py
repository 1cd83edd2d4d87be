"""A table of mixed columns through the command line: learned, drawn from, and a class with a single row."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tests.modalities import table
from tests.stories.test_command_line import synthsieve

SMALL = ("training.steps=8", "model.encoder_width=16", "model.generator_width=16", "sampling.num_steps=5")


def fit(source, out, *more, labels=20):
    small = [word for setting in SMALL for word in ("--set", setting)]
    return synthsieve(
        *("fit", source, "-o", out, "--label", "kind", "--labels", labels, "--threads", 1, "--quiet", *small, *more)
    )


@pytest.fixture
def mixed():
    given, y = table.arrow_table(150)
    return given.append_column("kind", [np.array(["old", "new"])[y]])


def test_a_csv_is_learned_and_drawn_rows_have_its_columns(tmp_path, mixed):
    csv.write_csv(mixed, tmp_path / "shop.csv")
    done = fit(tmp_path / "shop.csv", tmp_path / "out")
    assert "'id' (id)" in done.stdout
    synthsieve("sample", tmp_path / "out", "--per-class", 30, "--threads", 1)
    drawn = parquet.read_table(tmp_path / "out" / "samples.parquet")
    read = csv.read_csv(tmp_path / "shop.csv")
    assert drawn.schema == read.schema
    assert drawn.num_rows == 60
    assert drawn.column("id").to_pylist() == list(range(150, 210))
    assert set(drawn.column("colour").to_pylist()) <= {"red", "blue", "green", "", None}
    assert csv.read_csv(tmp_path / "out" / "samples.csv").column_names == read.column_names


def test_a_schema_and_a_class_of_one_row(tmp_path, mixed):
    kinds = ["lone" if i == 7 else kind for i, kind in enumerate(mixed.column("kind").to_pylist())]
    parquet.write_table(mixed.set_column(7, "kind", [pa.array(kinds)]), tmp_path / "shop.parquet")
    (tmp_path / "types.toml").write_text('[columns]\nid = "ignore"\ngain = "category"\n', encoding="utf-8")
    fit(tmp_path / "shop.parquet", tmp_path / "out", "--schema", tmp_path / "types.toml", labels=30)
    described = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))["encoding"]["schema"]
    assert {column["name"]: column["type"] for column in described}["gain"] == "category"
    assert "id" not in {column["name"] for column in described}
    counts = json.loads((tmp_path / "out" / "split.json").read_text(encoding="utf-8"))["counts"]
    assert counts["labeled"]["lone"] == 1
    output = synthsieve("sample", tmp_path / "out", "--per-class", 2, "--threads", 1).stdout
    assert "6 samples, 2 of each of 3 classes" in output
