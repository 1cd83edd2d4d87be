"""Adult (census income, Kohavi 1996): 48,842 people, 14 columns, whether their income is above 50,000 dollars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import csv

from synthsieve.data.checks import reading
from synthsieve.data.dataset import Dataset, Examples, Kind, Request
from synthsieve.data.download import ADULT, obtain
from synthsieve.data.formats.table import tidied
from synthsieve.data.labels import read_labels
from synthsieve.data.modalities.table.rows import read_rows, read_rows_like

LABEL = "income"
NAMES = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain"
    " capital-loss hours-per-week native-country"
)
COLUMNS = tuple(NAMES.split())


def load_adult(request: Request) -> Dataset:
    """Adult, from `data_dir`, the cache or its publisher: `adult.data` for training, `adult.test` as the test set."""
    train_file, test_file = obtain(ADULT, data_dir=request.data_dir, progress=request.progress)
    train, test = read_adult(train_file), read_adult(test_file)
    rows = read_rows(train.drop_columns([LABEL]), origin=train_file.name)
    labels = read_labels(_labels(train), origin=train_file.name)
    test_rows = read_rows_like(test.drop_columns([LABEL]), rows.schema, origin=test_file.name)
    test_y = read_labels(_labels(test), origin=test_file.name, classes=labels.classes).y
    train_set, test_set = Examples(rows.x, labels.y), Examples(test_rows.x, test_y)
    details: dict[str, Any] = {"feature_names": COLUMNS, "notes": rows.notes, "metadata": rows.schema}
    return Dataset("adult", Kind.TABLE, labels.classes, train_set, test_set, **details)


def read_adult(path: Path) -> Any:
    """One of the two files as a pyarrow table with names; the test file's first line and its dots are left out."""
    with reading(path, "Adult's rows", "download it again"):
        with path.open("rb") as file:
            starts_with_comment = file.read(1) == b"|"
        read = csv.ReadOptions(column_names=[*COLUMNS, LABEL], skip_rows=int(starts_with_comment))
        return tidied(csv.read_csv(path, read_options=read))[0]


def _labels(table: Any) -> np.ndarray:
    return np.array([str(text or "").rstrip(".") for text in table.column(LABEL).to_pylist()], dtype=str)
