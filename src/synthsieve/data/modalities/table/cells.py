"""Cells of Arrow columns as float64: column type inference, parsing, and the way back to Arrow.

A cell is stored as its number, the index of its category, 0 or 1, or its date as Arrow counts it; NaN is missing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synthsieve.data.checks import check
from synthsieve.data.modalities.table.schema import Column, ColumnType, arrow_type, is_number, is_text, type_name
from synthsieve.errors import DataError
from synthsieve.io.printable import brief

MIN_ROWS_FOR_ID = 20  # in a shorter table, distinct values do not suggest an id
DISTINCT_FOR_ID = 0.9  # of the texts that are not missing
ID_NAME = re.compile(r"(^|[_\s.-])(id|uuid|guid|key|index|rownum|row)$|^unnamed: 0$|[a-z](Id|ID)$")
TRUE, FALSE = ("true", "yes", "y", "t", "1"), ("false", "no", "n", "f", "0")
MIN_NUMBER = 1e-290  # smaller is taken as 0: float64 cannot divide by differences of such numbers
MAX_DECIMALS = 15  # that every float64 below 1 can represent
MAX_EXACT_INTEGER = 2.0**53  # up to it float64 represents every integer
MAX_MICROSECONDS = 9_223_372_036_854_774  # the largest float64 whose nanoseconds fit into 64 bits


def read_column(raw: Any, name: str, given: ColumnType | None, *, origin: str) -> tuple[Column, np.ndarray]:
    """The schema of an Arrow column, its type inferred if not `given`, and its cells, float64 (n,)."""
    arrow, is_dictionary, order = type_name(raw.type), pa.types.is_dictionary(raw.type), _order(raw, name, origin)
    raw = _flatten(raw)
    if raw.null_count == len(raw):
        return Column(name, ColumnType.MISSING, arrow), np.full(len(raw), np.nan)
    kind = given or guess_type(raw, name, origin=origin, is_dictionary=is_dictionary)
    if kind is not ColumnType.CATEGORY:  # only categories are written as the dictionary they were read from
        arrow = type_name(raw.type)
    if kind is ColumnType.ID:
        high = pc.max(raw).as_py() if pa.types.is_integer(raw.type) else None  # an int: float64 may round it
        return Column(name, kind, arrow, high=high), np.full(len(raw), np.nan)
    if kind is ColumnType.CATEGORY or (kind is ColumnType.BOOLEAN and not pa.types.is_boolean(raw.type)):
        words = _categories(raw, name, kind, origin)
        if order and kind is ColumnType.CATEGORY:
            words = tuple(sorted(words, key=order.__getitem__))
        written = arrow_type(arrow)
        try:
            pa.array(words, pa.string()).cast(getattr(written, "value_type", written))
        except pa.ArrowException:  # they cannot be written in the type of the source
            arrow = "string"
        column = Column(name, kind, arrow, words)
    elif kind is ColumnType.DATE:
        raw = _as_date(raw, name, origin)
        column = Column(name, kind, str(raw.type))
    else:
        column = Column(name, kind, arrow if kind is not ColumnType.NUMBER or is_number(raw.type) else "double")
    values, _ = cells(raw, column, origin=origin)
    if kind in (ColumnType.NUMBER, ColumnType.DATE):
        known = values[~np.isnan(values)]
        decimals = 0 if kind is ColumnType.DATE else decimals_of(known, column.arrow)
        column = replace(column, decimals=decimals, low=float(known.min()), high=float(known.max()))
    return column, values


def guess_type(raw: Any, name: str, *, origin: str, is_dictionary: bool = False) -> ColumnType:
    """The type of a column that has at least one value; `is_dictionary` if it was an Arrow dictionary.

    Text and dictionaries are categories, or ids if nearly all values are distinct. Integers are ids if all are distinct
    and consecutive, or all are distinct and the name is like `customer_id`.
    """
    if is_text(raw.type) or is_dictionary:
        known = len(raw) - raw.null_count
        distinct = known >= MIN_ROWS_FOR_ID and pc.count_distinct(raw).as_py() > DISTINCT_FOR_ID * known
        return ColumnType.ID if distinct else ColumnType.CATEGORY
    if pa.types.is_boolean(raw.type):
        return ColumnType.BOOLEAN
    if pa.types.is_temporal(raw.type) and not pa.types.is_interval(raw.type):
        return ColumnType.DATE
    advice = f'column {name!r} is {raw.type}: convert it, or drop it with the type "ignore" in a schema'
    check(is_number(raw.type), f"{origin}: cells must be numbers, text, booleans or dates, but {advice}", "column-type")
    if pa.types.is_integer(raw.type) and pc.count_distinct(raw).as_py() == len(raw) >= MIN_ROWS_FOR_ID:
        steps = np.diff(raw.to_numpy())  # as integers: float64 rounds large ones
        if (steps == 1).all() or ID_NAME.search(name) or ID_NAME.search(name.lower()):
            return ColumnType.ID
    return ColumnType.NUMBER


def cells(raw: Any, column: Column, *, origin: str) -> tuple[np.ndarray, int]:
    """float64 (n,) for the cells of an Arrow column of known type, and the number of cells with an unknown category."""
    raw = _flatten(raw)
    if raw.null_count == len(raw):
        return np.full(len(raw), np.nan), 0
    if column.categories:
        texts = _as_text(raw, column.name, origin)
        if column.type is ColumnType.BOOLEAN:
            return _booleans(texts, column.name, origin), 0
        index = pc.index_in(texts, pa.array(column.categories, pa.string()))
        return _floats(index), index.null_count - texts.null_count
    try:
        if column.type is ColumnType.DATE:
            kind = _stored_date(arrow_type(column.arrow))
            counts = _as_date(raw, column.name, origin).cast(kind, safe=False)
            return _floats(counts.cast(pa.from_numpy_dtype(_date_dtype(kind)))), 0
        if column.type is ColumnType.BOOLEAN and not pa.types.is_boolean(raw.type):
            return _booleans(_as_text(raw, column.name, origin), column.name, origin), 0
        values = _floats(raw)
    except (pa.ArrowException, ValueError) as error:
        expected = column.arrow if column.type is ColumnType.DATE else column.type
        raise _unreadable(f"must be a {expected}", column.name, origin, error) from None
    infinite = np.isinf(values)
    where = f"column {column.name!r}, data row {int(infinite.argmax()) + 1}"
    check(not infinite.any(), f"{origin}: cells must be finite or empty, but {where} is infinite", "infinite-cell")
    values[np.abs(values) < MIN_NUMBER] = 0.0
    return values, 0


def decimals_of(known: np.ndarray, arrow: str = "double") -> int | None:
    """The fewest digits after the point that represent every value, float64 (n,); None if more than fifteen.

    Numbers of a narrower Arrow type, `float` or `halffloat`, are compared in that type: its 0.1 is 0.10000000149.
    """
    dtype = {"float": np.float32, "halffloat": np.float16}.get(arrow, np.float64)
    largest = float(np.abs(known).max(initial=0.0))
    for digits in range(MAX_DECIMALS + 1):
        if digits and largest * 10.0**digits >= MAX_EXACT_INTEGER:  # float64 has no such digits
            return None
        if (np.round(known, digits).astype(dtype) == known.astype(dtype)).all():
            return digits
    return None


def cells_to_arrow(values: np.ndarray, column: Column) -> Any:
    """One column of cells, float64 (n,), as an Arrow array of its type; NaN is null."""
    if not column.is_modelled:
        return ids_to_arrow(np.arange(len(values)), column)
    kind, missing = arrow_type(column.arrow), np.isnan(values)
    known = np.where(missing, 0, values)
    if column.categories:
        index, words = pa.array(known.astype(np.int64), mask=missing), pa.array(column.categories, pa.string())
        if not pa.types.is_dictionary(kind):
            return words.take(index).cast(kind)
        return pa.DictionaryArray.from_arrays(
            index.cast(kind.index_type), words.cast(kind.value_type), ordered=kind.ordered
        )
    if column.type is ColumnType.BOOLEAN:
        return pa.array(known > 0.5, mask=missing)
    if pa.types.is_temporal(kind):
        stored = _stored_date(kind)
        if stored != kind:
            known = np.clip(known, -MAX_MICROSECONDS, MAX_MICROSECONDS)
        return pa.array(round_to_integers(known, _date_dtype(kind)), mask=missing).cast(stored).cast(kind)
    if pa.types.is_integer(kind):
        return pa.array(round_to_integers(known, kind.to_pandas_dtype()), mask=missing)
    return pa.array(values, mask=missing).cast(kind)


def round_to_integers(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Rounded and clipped to an integer dtype."""
    bounds = np.iinfo(dtype)
    top = float(bounds.max)
    top = top if int(top) <= bounds.max else float(np.nextafter(top, 0))  # float64 may round the maximum up
    clipped: np.ndarray = np.clip(np.rint(values), float(bounds.min), top).astype(dtype)
    return clipped


def ids_to_arrow(rows: np.ndarray, column: Column) -> Any:
    """New integer ids, counted by row from the largest known id; null for other ids and beyond the type's range."""
    kind = arrow_type(column.arrow)
    if column.type is not ColumnType.ID or column.high is None:
        return pa.nulls(len(rows), kind)
    first, last = int(column.high) + 1, int(np.iinfo(kind.to_pandas_dtype()).max)
    ids = (first + row for row in rows.tolist())
    return pa.array([id if id <= last else None for id in ids], kind)


def _unreadable(expected: str, name: str, origin: str, error: Exception) -> DataError:
    return DataError(f"{origin}: column {name!r} {expected} ({brief(error)})", code="unreadable-column")


def _flatten(raw: Any) -> Any:
    """A column without chunks or dictionary, null if all of it is NaN."""
    if isinstance(raw, pa.ChunkedArray):
        raw = pa.concat_arrays(raw.chunks) if raw.num_chunks else pa.array([], raw.type)
    if pa.types.is_dictionary(raw.type):
        raw = raw.dictionary_decode()
    if pa.types.is_string_view(raw.type):
        raw = raw.cast(pa.string())
    if pa.types.is_floating(raw.type) and np.isnan(_floats(raw)).all():
        return pa.nulls(len(raw), raw.type)
    return raw


def _floats(raw: Any) -> np.ndarray:
    if pa.types.is_boolean(raw.type):
        raw = raw.cast(pa.int8())
    values: np.ndarray = raw.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values.astype(np.float64)


def _as_text(raw: Any, name: str, origin: str) -> Any:
    """The cells as text; integers stored as floats, as pandas does if one is missing, without a decimal point."""
    try:
        if pa.types.is_floating(raw.type):
            values = _floats(raw)
            known = np.isfinite(values)
            raw = pa.array(values, mask=~known)
            if (values[known] == np.rint(values[known])).all() and (np.abs(values[known]) < MAX_EXACT_INTEGER).all():
                raw = raw.cast(pa.int64())
        return pc.utf8_trim_whitespace(raw.cast(pa.string()))
    except pa.ArrowException as error:
        raise _unreadable("cannot be read as categories", name, origin, error) from None


def _categories(raw: Any, name: str, kind: ColumnType, origin: str) -> tuple[str, ...]:
    """The distinct texts of a column, sorted; for a boolean the words for false and for true."""
    words = sorted(text for text in _as_text(raw, name, origin).unique().to_pylist() if text is not None)
    if kind is not ColumnType.BOOLEAN:
        return tuple(words)
    _check_booleans(words, name, origin)
    no = next((text for text in words if text.lower() in FALSE), None)
    yes = next((text for text in words if text.lower() in TRUE), None)
    # If one of them does not occur: the counterpart of the other, such as 0 of 1.
    return no or FALSE[TRUE.index(str(yes).lower())], yes or TRUE[FALSE.index(str(no).lower())]


def _order(raw: Any, name: str, origin: str) -> dict[str, int]:
    """The rank of each word of an ordered dictionary; empty for any other column."""
    if not pa.types.is_dictionary(raw.type) or not raw.type.ordered or not len(raw):
        return {}
    raw = raw.combine_chunks() if isinstance(raw, pa.ChunkedArray) else raw
    words = _as_text(raw.dictionary, name, origin).to_pylist()
    return {word: rank for rank, word in reversed(list(enumerate(words)))}


def _check_booleans(texts: list[str], name: str, origin: str) -> None:
    other = [text for text in texts if text.lower() not in (*TRUE, *FALSE)]
    got = f"but {name!r} contains {''.join(other[:1])!r}: make it a category"
    expected = f"a boolean column must contain {'/'.join(TRUE)} or {'/'.join(FALSE)}"
    check(not other, f"{origin}: {expected}, {got}", "not-boolean")


def _booleans(texts: Any, name: str, origin: str) -> np.ndarray:
    encoded = texts.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    _check_booleans(words, name, origin)
    values = np.array([float(word.lower() in TRUE) for word in words])
    index = _floats(encoded.indices)
    return np.where(np.isnan(index), np.nan, values[np.nan_to_num(index).astype(np.int64)])


def _as_date(raw: Any, name: str, origin: str) -> Any:
    """A temporal column; ISO text is parsed as days, or as timestamps if it has a time."""
    if pa.types.is_temporal(raw.type):
        return raw
    try:
        try:
            return raw.cast(pa.date32())
        except pa.ArrowException:
            return raw.cast(pa.timestamp("us"))
    except pa.ArrowException as error:
        raise _unreadable("must contain dates such as 2024-12-31", name, origin, error) from None


def _stored_date(kind: Any) -> Any:
    """The temporal type that cells count in: microseconds instead of nanoseconds, for float64."""
    return pa.timestamp("us", kind.tz) if str(kind).startswith("timestamp[ns") else kind


def _date_dtype(kind: Any) -> Any:
    """The integers in which Arrow counts a temporal type."""
    return np.int32 if pa.types.is_date32(kind) or pa.types.is_time32(kind) else np.int64
