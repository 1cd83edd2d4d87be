"""CSV and Parquet: a label column, and numbers in every other.

An empty label cell means unlabelled. A label of -1 is refused: it could mean a class or, as elsewhere, unlabelled.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.labels import listed, read_labels
from synthsieve.data.reasons import brief
from synthsieve.data.sources import Request
from synthsieve.errors import DataError

WHOLE_AS_FLOAT = re.compile(r"-?\d+\.0+")


def load_csv(request: Request) -> Dataset:
    """A CSV with a header row, in UTF-8."""
    import pyarrow as pa
    from pyarrow import csv

    path = request.path
    label = _need_label(request)
    # The label stays text ("NA" may be a class); in the others an empty cell or "nan" is a missing number.
    convert = csv.ConvertOptions(column_types={label: pa.string()}, strings_can_be_null=False)
    try:
        table = csv.read_csv(path, convert_options=convert)
        table.validate(full=True)
        names = list(table.column_names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as CSV ({brief(error)}): mend or write it again") from None
    return _from_table(table, names, path, label)


def load_parquet(request: Request) -> Dataset:
    """A Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    path = request.path
    label = _need_label(request)
    try:
        # The file itself, opened here: given a path, pyarrow would read column values out of folder names.
        with path.open("rb") as stream:
            table = parquet.read_table(stream)
        table.validate(full=True)
        names = list(table.column_names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as Parquet ({brief(error)}): it may be cut short") from None
    return _from_table(table, names, path, label)


def _need_label(request: Request) -> str:
    if request.label is None:
        raise DataError(f"{request.path} is a table, which needs the name of its label column: give it with --label")
    return request.label


def _from_table(table: Any, names: list[str], path: Path, label: str) -> Dataset:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"{path}: every column needs a name of its own, but {listed(repeated)} came more than once")
    if label not in names:
        close = get_close_matches(label, names, n=1)
        hint = f"did you mean {close[0]!r}" if close else f"its columns are {listed(names)}"
        raise DataError(f"{path} has no label column {label!r}: {hint}?")
    features = tuple(name for name in names if name != label)
    if not features:
        raise DataError(f"{path} has no column but {label!r}: at least one column of numbers is needed")
    if table.num_rows == 0:
        raise DataError(f"{path} has a header but no rows")
    columns = [_numbers(table.column(name), name, path) for name in features]
    labels = read_labels(_label_texts(table.column(label), label, path), origin=f"{path.name}, column {label!r}")
    x = np.stack(columns, axis=1)
    return Dataset(path.stem, Kind.VECTOR, labels.classes, Examples(x, labels.y), feature_names=features)


def _numbers(column: Any, name: str, path: Path) -> np.ndarray:
    """float32 (n,), refusing text and missing or infinite values."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        raise DataError(f"{path}: column {name!r} is empty: remove it")
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        example = next((str(value) for value in column.to_pylist() if value is not None), "")
        raise DataError(
            f"{path}: feature columns must be numbers, but {name!r} holds {kind} (such as {example!r}): turn it into"
            " numbers or remove it"
        )
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    with np.errstate(over="ignore"):
        values = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float32)
    bad = ~np.isfinite(values)
    if bad.any():
        raise DataError(
            f"{path}: column {name!r} must be finite in every row, but {int(bad.sum())} cells are empty, NaN or"
            f" infinite (the first in data row {int(np.flatnonzero(bad)[0]) + 1}): fill them or remove the rows"
        )
    return values


def _label_texts(column: Any, name: str, path: Path) -> np.ndarray:
    """Text (n,), "" where the cell is empty; whole numbers stored as floats ("3.0") lose their tail."""
    texts = []
    for value in column.to_pylist():
        text = "" if value is None or value != value else str(value).strip()
        texts.append(text.split(".")[0] if WHOLE_AS_FLOAT.fullmatch(text) else text)
    if "-1" in texts:
        raise DataError(
            f"{path}: label -1 in column {name!r} could mean unlabelled or a class: leave the cell empty for"
            " unlabelled, or give the class another name"
        )
    return np.array(texts, dtype=str)
