"""The way back of `cells`: the float64 that stand for a column's cells, as an Arrow array of the type they came in."""

from __future__ import annotations

from typing import Any

import numpy as np

from synthsieve.data.arrow_types import arrow_type
from synthsieve.data.schema import Column, ColumnType


def cells_out(values: np.ndarray, column: Column) -> Any:
    """One column of stored cells, float64 (n,), as an Arrow array of its own type; NaN is null."""
    import pyarrow as pa

    kind = arrow_type(column.arrow)
    missing = np.isnan(values)
    if not column.is_learned:
        return ids_out(np.arange(len(values)), column)
    if column.categories:
        return _words(values, missing, column, kind)
    if column.type is ColumnType.BOOLEAN:
        return pa.array(np.where(missing, 0, values) > 0.5, mask=missing)
    if pa.types.is_temporal(kind):
        return _temporal(np.where(missing, 0, values), missing, kind)
    if pa.types.is_integer(kind):
        return pa.array(whole_numbers(np.where(missing, 0, values), kind.to_pandas_dtype()), mask=missing)
    return pa.array(values, mask=missing).cast(kind)


def whole_numbers(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Rounded to whole numbers of an integer dtype; float64 may lie a little above its greatest, and is clipped."""
    bounds = np.iinfo(dtype)
    top = float(bounds.max)
    top = top if int(top) <= bounds.max else float(np.nextafter(top, 0))
    clipped: np.ndarray = np.clip(np.rint(values), float(bounds.min), top).astype(dtype)
    return clipped


def ids_out(rows: np.ndarray, column: Column) -> Any:
    """Whole ids count on by row after the largest that came; all else is null, as are ids that the type cannot hold."""
    import pyarrow as pa

    kind = arrow_type(column.arrow)
    if column.type is not ColumnType.ID or column.high is None:
        return pa.nulls(len(rows), kind)
    first, greatest = int(column.high) + 1, int(np.iinfo(kind.to_pandas_dtype()).max)
    ids = (first + row for row in rows.tolist())
    return pa.array([id if id <= greatest else None for id in ids], kind)


def _words(values: np.ndarray, missing: np.ndarray, column: Column, kind: Any) -> Any:
    """Categories by their index; a dictionary keeps its width, its order, and the categories that were not drawn."""
    import pyarrow as pa

    index = pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)
    words = pa.array(column.categories, pa.string())
    if not pa.types.is_dictionary(kind):
        return words.take(index).cast(kind)
    return pa.DictionaryArray.from_arrays(
        index.cast(kind.index_type), words.cast(kind.value_type), ordered=kind.ordered
    )


def _temporal(values: np.ndarray, missing: np.ndarray, kind: Any) -> Any:
    """Dates from what `cells` counted: days, or microseconds, or the type's own coarser unit."""
    import pyarrow as pa

    if str(kind).startswith("timestamp[ns"):
        reach = 9_223_372_036_854_774  # microseconds: the most in float64 that 64 bits of nanoseconds hold
        counts = pa.array(whole_numbers(np.clip(values, -reach, reach), np.int64), mask=missing)
        return counts.cast(pa.timestamp("us", kind.tz)).cast(kind)
    narrow = pa.types.is_date32(kind) or pa.types.is_time32(kind)
    return pa.array(whole_numbers(values, np.int32 if narrow else np.int64), mask=missing).cast(kind)
