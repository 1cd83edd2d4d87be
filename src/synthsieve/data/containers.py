"""Containers of rows (arrays, tensors, sparse matrices, data frames, Arrow) as arrays or Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from synthsieve.data.checks import check, check_unique
from synthsieve.data.labels import object_array, without_mask
from synthsieve.errors import DataError
from synthsieve.io.printable import brief

MAX_DENSE_BYTES = 4 << 30


def is_frame(given: Any) -> bool:
    """Whether it is a pandas data frame."""
    return hasattr(given, "iloc") and hasattr(given, "columns")


def is_series(given: Any) -> bool:
    """Whether it is a pandas series."""
    return hasattr(given, "iloc") and not hasattr(given, "columns")


def materialize(given: Any) -> Any:
    """The same in a form that can be read twice: a torch tensor as an array, an Arrow stream as a table or, if it is
    one column, as a list; a masked array with NaN, or None, where it is masked."""
    if hasattr(given, "detach"):
        return as_array(given)
    if isinstance(given, np.ma.MaskedArray):
        return without_mask(given)
    if hasattr(given, "iloc") or hasattr(given, "column_names"):
        return given
    if hasattr(given, "to_pylist"):
        return given.to_pylist()
    if not hasattr(given, "__arrow_c_stream__"):
        return given
    import pyarrow as pa

    try:
        return pa.table(given)
    except (pa.ArrowException, TypeError, ValueError) as error:
        try:
            return pa.chunked_array(given).to_pylist()
        except (pa.ArrowException, TypeError, ValueError):
            raise DataError(f"X cannot be read as an Arrow table ({brief(error)})", code="unreadable-table") from None


def rows_of(given: Any) -> int:
    """How many examples there are."""
    if hasattr(given, "num_rows"):
        return int(given.num_rows)
    given = getattr(given, "sounds", given)  # of `Waveforms`
    if hasattr(given, "shape"):
        return int(given.shape[0]) if given.shape else 0
    has_rows = hasattr(given, "__len__")
    check(has_rows, f"X must hold rows, got a {type(given).__name__}: make a list of it", "unknown-container")
    return len(given)


def check_names(frame: Any) -> None:
    """Refuse a data frame of which two columns have one name."""
    check_unique(frame.columns, "X")


def as_items(given: Any) -> Any:
    """Rows of any container: a data frame or an Arrow table as it is, all else as an array (n, ...)."""
    given = materialize(given)
    if is_frame(given) or hasattr(given, "column_names"):
        return given
    if not isinstance(given, list | tuple) or not any(isinstance(item, str) or np.ndim(item) for item in given):
        return np.asarray(given)
    return object_array(given)  # texts as long as each is, arrays of any lengths


def take_rows(items: Any, rows: np.ndarray) -> Any:
    """Some rows of what `as_items` gave."""
    if is_frame(items):
        return items.iloc[rows]
    return items.take(rows) if hasattr(items, "column_names") else items[rows]


def as_array(given: Any) -> np.ndarray:
    """A dense array of numbers from an array, a list, a torch tensor or a sparse matrix."""
    if hasattr(given, "detach"):
        tensor = given.detach().cpu()
        return np.asarray((tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy())
    if hasattr(given, "toarray"):
        needed = int(np.prod(given.shape)) * 4
        problem = f"a dense X of shape {given.shape} takes {needed / 1e9:.0f} GB: try sklearn's TruncatedSVD first"
        check(needed <= MAX_DENSE_BYTES, problem, "too-large")
        return np.asarray(given.toarray())
    array = np.asarray(given)
    return array.astype(np.float64) if array.dtype.kind == "O" else array


def as_arrow(given: Any, names: Sequence[str] | None = None) -> Any:
    """A pyarrow table from a data frame, an Arrow table, or rows of cells, whose columns are `names` or x0, x1, ..."""
    import pyarrow as pa

    if isinstance(given, pa.Table):
        return given
    try:
        if is_frame(given):
            return pa.Table.from_pandas(given.reset_index(drop=True))  # the index is no column, but names are kept
        if hasattr(given, "__arrow_c_stream__"):
            return pa.table(given)
        cells = np.asarray(as_array(given) if hasattr(given, "toarray") else given, dtype=object)
        if names is None or len(names) != cells.shape[1]:
            names = [f"x{i}" for i in range(cells.shape[1])]
        return pa.table({name: pa.array(list(cells[:, i])) for i, name in enumerate(names)})
    except (pa.ArrowException, TypeError, ValueError, IndexError, OverflowError) as error:
        advice = "each column needs one type, and integers beyond 64 bits must be floats or text"
        raise DataError(f"X cannot be read as a table ({brief(error)}): {advice}", code="unreadable-table") from None
