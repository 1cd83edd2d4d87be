"""Embeddings that stand for the rows of a table: vectors to learn from, with the rows themselves kept to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.features import read_features
from synthsieve.data.npz import read_npy, read_npz
from synthsieve.data.sources import Request
from synthsieve.data.table import labels_of
from synthsieve.errors import DataError


def load_embeddings(table: Any, request: Request) -> Dataset:
    """The matrix in `request.features`, a row for each row of a pyarrow table, with the labels of `request.label`.

    The data set's `about` is a pyarrow table of what a person would look at: the column `request.text`, or all columns.
    """
    path, label = request.path, str(request.label)
    assert request.features is not None
    embeddings = read_embeddings(request.features)
    if len(embeddings) != table.num_rows:
        raise DataError(
            f"{request.features}: every row of the table needs one row of embeddings, but {len(embeddings):,} came for"
            f" the {table.num_rows:,} rows of {path}: make them from the same rows"
        )
    labels = labels_of(table, label, origin=path.name)
    raw = table if request.text is None else table.select([request.text])
    examples = Examples(embeddings, labels.y)
    return Dataset(path.stem, Kind.VECTOR, labels.classes, examples, notes=labels.notes, about=raw)


def read_embeddings(path: Path) -> np.ndarray:
    """float32 (n, features): the array of a .npy, or the one named x of an .npz."""
    if not path.is_file():
        raise DataError(f"{path} is not a file: give the .npy or .npz that holds the embeddings")
    if path.suffix.lower() == ".npz":
        arrays = read_npz(path)
        if "x" not in arrays:
            raise DataError(f"{path} must hold an array 'x', but holds {', '.join(map(repr, arrays)) or 'none'}")
        raw = arrays["x"]
    else:
        raw = read_npy(path)
    if raw.ndim != 2:
        raise DataError(f"{path}: embeddings must have shape (n, features), but came with shape {raw.shape}")
    return read_features(raw, origin=path.name).x
