"""Embeddings that stand for the rows of a table: vectors to train on, with the rows themselves kept to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.formats.arrays import read_features
from synthsieve.data.formats.npz import read_npy, read_npz, require_x
from synthsieve.data.labels import Labels
from synthsieve.data.registry import Request
from synthsieve.errors import DataError


def embedded_dataset(table: Any, labels: Labels, request: Request) -> Dataset:
    """The matrix in `request.features`, a row for each row of a pyarrow table.

    The data set's `metadata` is a pyarrow table of what people look at: the column `request.text`, or all columns.
    """
    assert request.features is not None
    x = read_paired(request.features, table, request.path)
    raw = table if request.text is None else table.select([request.text])
    examples = Examples(x, labels.y)
    return Dataset(request.path.stem, Kind.VECTOR, labels.classes, examples, notes=labels.notes, metadata=raw)


def read_paired(features: Path, table: Any, path: Path) -> np.ndarray:
    """The embeddings in `features`, one row for each row of the table that was read from `path`."""
    x = read_embeddings(features)
    if len(x) != table.num_rows:
        raise DataError(
            f"{features} has {len(x):,} rows, but {path} {table.num_rows:,}: compute embeddings of the same rows",
            code="row-count",
        )
    return x


def read_embeddings(path: Path) -> np.ndarray:
    """float32 (n, features): the array of a .npy, or the one named x of an .npz."""
    if not path.is_file():
        raise DataError(f"{path} is not a file: give the .npy or .npz with the embeddings", code="missing-file")
    raw = require_x(read_npz(path), path) if path.suffix.lower() == ".npz" else read_npy(path)
    if raw.ndim != 2:
        raise DataError(
            f"{path}: embeddings must have shape (n, features), but came with shape {raw.shape}", code="example-type"
        )
    return read_features(raw, origin=path.name).x
