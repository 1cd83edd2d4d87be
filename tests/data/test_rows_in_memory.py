"""Tables in memory as the source of `run`, `fit` and `benchmark`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

import synthsieve
from synthsieve.api.source import ROWS, read_source
from synthsieve.errors import ConfigError, InputError
from synthsieve.io.progress import NullProgress
from tests.errors import raises
from tests.hub import datasets

COLUMNS: dict[str, list[Any]] = {
    "size": [float(row % 7) for row in range(40)],
    "colour": ["red", "green", "blue", "red"] * 10,
    "kind": ["cat", "dog", None, "dog"] * 10,
}
FORMS = {
    "dict": lambda: COLUMNS,
    "list of dicts": lambda: [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)],
    "pandas": lambda: pd.DataFrame(COLUMNS, index=range(100, 140)),
    "polars": lambda: polars.DataFrame(COLUMNS),
    "Arrow": lambda: pa.table(COLUMNS),
    "Dataset": lambda: datasets.Dataset.from_dict(COLUMNS),
}


def read(rows: Any, out: Path, **options: Any) -> Any:
    return read_source(rows, out, {}, progress=NullProgress(), label="kind", **options)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_data_set(form: str, tmp_path: Path) -> None:
    origin, dataset, _ = read(FORMS[form](), tmp_path / "out")
    assert origin.source == str((tmp_path / "out" / ROWS).resolve())
    assert dataset.feature_names == ("size", "colour")
    assert dataset.classes == ("cat", "dog")
    assert np.bincount(dataset.train.y + 1).tolist() == [10, 10, 20]
    _, like, _ = read(pa.table(COLUMNS), tmp_path / "like")
    np.testing.assert_array_equal(dataset.train.x, like.train.x)


def test_the_same_rows_again_and_other_rows(tmp_path: Path) -> None:
    read(COLUMNS, tmp_path)
    before = (tmp_path / ROWS).read_bytes()
    read(COLUMNS, tmp_path)
    with raises(ConfigError, "other-data"):
        read({**COLUMNS, "size": [0.0] * 40}, tmp_path)
    assert (tmp_path / ROWS).read_bytes() == before
    (tmp_path / ROWS).write_bytes(b"no table")
    with raises(ConfigError, "other-data"):
        read(COLUMNS, tmp_path)


def test_what_is_no_table_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with raises(InputError, "unknown-container"):
        read(np.zeros((4, 2)), out)
    with raises(InputError, "unreadable-table"):
        read({"a": [1, 2], "kind": ["x"]}, out)
    with raises(ConfigError, "unknown-setting"):
        read(COLUMNS, out, overrides=["training.stepz=3"])
    assert not out.exists()


def test_fit_on_a_data_frame(tmp_path: Path) -> None:
    frame = pd.DataFrame(COLUMNS)
    overrides = ["training.steps=2", "training.evaluate_every=2"]
    summary = synthsieve.fit(frame, tmp_path / "out", label="kind", overrides=overrides, log=lambda message: None)
    assert summary.steps == 2
    model = synthsieve.load(tmp_path / "out")
    assert set(model.predict(frame.drop(columns="kind"))) <= {"cat", "dog"}
