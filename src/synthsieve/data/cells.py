"""The cells of one column: which type they have, and the float64 that stands for each."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from synthsieve.data.arrow_types import arrow_type, is_number, is_text, type_name
from synthsieve.data.reasons import brief
from synthsieve.data.schema import Column, ColumnType
from synthsieve.errors import DataError

FEWEST_FOR_ID = 20  # rows; in a shorter table distinct values are no sign
DISTINCT_FOR_ID = 0.9  # of the texts that are there
NAMED_LIKE_ID = re.compile(r"(^|[_\s.-])(id|uuid|guid|key|index|rownum|row)$|^unnamed: 0$|[a-z](Id|ID)$")
TRUE, FALSE = ("true", "yes", "y", "t", "1"), ("false", "no", "n", "f", "0")
SMALLEST_NUMBER = 1e-290  # nearer to 0 is 0: float64 cannot divide by the differences of such numbers
MOST_DECIMALS = 15  # what every float64 below 1 can hold
WHOLE_FLOATS = 2.0**53  # below it float64 tells every two whole numbers apart


def read_column(raw: Any, name: str, given: ColumnType | None, *, origin: str) -> tuple[Column, np.ndarray]:
    """What an Arrow column is, guessed where it is not `given`, and its stored cells, float64 (n,)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    stored_as, named, ranks = type_name(raw.type), pa.types.is_dictionary(raw.type), _ranks(raw, name, origin)
    raw = _plain(raw)
    if raw.null_count == len(raw):
        return Column(name, ColumnType.MISSING, stored_as), np.full(len(raw), np.nan)
    kind = given or guess_type(raw, name, origin=origin, named=named)
    if kind is not ColumnType.CATEGORY:  # only categories go out as the dictionary they came in
        stored_as = type_name(raw.type)
    if kind is ColumnType.ID:
        high = pc.max(raw).as_py() if pa.types.is_integer(raw.type) else None  # whole: float64 would miss the last one
        return Column(name, kind, stored_as, high=high), np.full(len(raw), np.nan)
    if kind is ColumnType.CATEGORY or (kind is ColumnType.BOOLEAN and not pa.types.is_boolean(raw.type)):
        words = _categories(raw, name, kind, origin)
        words = tuple(sorted(words, key=ranks.__getitem__)) if ranks and kind is ColumnType.CATEGORY else words
        column = Column(name, kind, _type_of_words(words, stored_as), words)
    elif kind is ColumnType.DATE:
        raw = _as_date(raw, name, origin)
        column = Column(name, kind, str(raw.type))
    else:
        column = Column(name, kind, stored_as if kind is not ColumnType.NUMBER or is_number(raw.type) else "double")
    values, _ = cells(raw, column, origin=origin)
    return _measured(column, values), values


def guess_type(raw: Any, name: str, *, origin: str, named: bool = False) -> ColumnType:
    """The type of a column that has at least one value; `named` where it came as an Arrow dictionary.

    Text, or what came as a dictionary, is a category, or an id where nearly all of it is distinct. Whole numbers are
    an id where all are distinct and they count up one by one, or have a name like `customer_id`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_text(raw.type) or named:
        known = len(raw) - raw.null_count
        distinct = known >= FEWEST_FOR_ID and pc.count_distinct(raw).as_py() > DISTINCT_FOR_ID * known
        return ColumnType.ID if distinct else ColumnType.CATEGORY
    if pa.types.is_boolean(raw.type):
        return ColumnType.BOOLEAN
    if pa.types.is_temporal(raw.type) and not pa.types.is_interval(raw.type):
        return ColumnType.DATE
    if not is_number(raw.type):
        raise DataError(
            f"{origin}: cells must be numbers, text, booleans or dates, but column {name!r} holds {raw.type}: turn it"
            ' into one of them, or take it away with a schema that says "ignore"'
        )
    if pa.types.is_integer(raw.type) and pc.count_distinct(raw).as_py() == len(raw) >= FEWEST_FOR_ID:
        steps = np.diff(raw.to_numpy())  # of whole numbers: float64 cannot tell large ones apart
        if (steps == 1).all() or NAMED_LIKE_ID.search(name) or NAMED_LIKE_ID.search(name.lower()):
            return ColumnType.ID
    return ColumnType.NUMBER


def cells(raw: Any, column: Column, *, origin: str) -> tuple[np.ndarray, int]:
    """float64 (n,) for the cells of an Arrow column of a known type, and how many categories among them are unknown."""
    import pyarrow as pa
    import pyarrow.compute as pc

    raw = _plain(raw)
    if raw.null_count == len(raw):
        return np.full(len(raw), np.nan), 0
    if column.categories:
        found = _as_text(raw, column.name, origin)
        if column.type is ColumnType.BOOLEAN:
            return _truths(found, column.name, origin), 0
        index = pc.index_in(found, pa.array(column.categories, pa.string()))
        return _floats(index), index.null_count - found.null_count
    if column.type is ColumnType.DATE:
        return _counts(_as_date(raw, column.name, origin), column, origin), 0
    try:
        if column.type is ColumnType.BOOLEAN and not pa.types.is_boolean(raw.type):
            return _truths(_as_text(raw, column.name, origin), column.name, origin), 0
        values = _floats(raw)
    except (pa.ArrowException, ValueError) as error:
        raise DataError(f"{origin}: column {column.name!r} must hold a {column.type} ({brief(error)})") from None
    if np.isinf(values).any():
        raise DataError(
            f"{origin}: column {column.name!r} must be finite or empty, but data row"
            f" {int(np.flatnonzero(np.isinf(values))[0]) + 1} is infinite: empty or mend the cell"
        )
    values[np.abs(values) < SMALLEST_NUMBER] = 0.0
    return values, 0


def _plain(raw: Any) -> Any:
    """A column without chunks or dictionary; NaN of a float stays a value until it is stored."""
    import pyarrow as pa

    raw = raw.combine_chunks() if isinstance(raw, pa.ChunkedArray) else raw
    if isinstance(raw, pa.ChunkedArray):  # of no chunk at all
        raw = pa.concat_arrays(raw.chunks) if raw.num_chunks else pa.array([], raw.type)
    if pa.types.is_dictionary(raw.type):
        raw = raw.dictionary_decode()
    if pa.types.is_string_view(raw.type):
        raw = raw.cast(pa.string())
    if pa.types.is_floating(raw.type) and np.isnan(_floats(raw)).all():
        return pa.nulls(len(raw), raw.type)
    return raw


def _floats(raw: Any) -> np.ndarray:
    import pyarrow as pa

    if pa.types.is_boolean(raw.type):
        raw = raw.cast(pa.int8())
    values: np.ndarray = raw.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values.astype(np.float64)


def _as_text(raw: Any, name: str, origin: str) -> Any:
    """The cells as text; whole numbers that came as floats (for want of a missing integer) lose their tail."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        if pa.types.is_floating(raw.type):
            values = _floats(raw)
            known = np.isfinite(values)
            raw = pa.array(values, mask=~known)
            if (values[known] == np.rint(values[known])).all() and (np.abs(values[known]) < WHOLE_FLOATS).all():
                raw = raw.cast(pa.int64())
        return pc.utf8_trim_whitespace(raw.cast(pa.string()))
    except pa.ArrowException as error:
        raise DataError(f"{origin}: column {name!r} cannot be read as categories ({brief(error)})") from None


def _categories(raw: Any, name: str, kind: ColumnType, origin: str) -> tuple[str, ...]:
    """The distinct texts of a column, sorted; for a boolean its word for false and its word for true."""
    found = sorted(text for text in _as_text(raw, name, origin).unique().to_pylist() if text is not None)
    if kind is not ColumnType.BOOLEAN:
        return tuple(found)
    _truths_of(found, name, origin)
    no = next((text for text in found if text.lower() in FALSE), None)
    yes = next((text for text in found if text.lower() in TRUE), None)
    # Where one of them never came, the word that goes with the other: 0 with 1.
    return no or FALSE[TRUE.index(str(yes).lower())], yes or TRUE[FALSE.index(str(no).lower())]


def _ranks(raw: Any, name: str, origin: str) -> dict[str, int]:
    """The place of each word of an ordered dictionary; nothing for any other column."""
    import pyarrow as pa

    if not pa.types.is_dictionary(raw.type) or not raw.type.ordered or not len(raw):
        return {}
    raw = raw.combine_chunks() if isinstance(raw, pa.ChunkedArray) else raw
    words = _as_text(raw.dictionary, name, origin).to_pylist()
    return {word: place for place, word in reversed(list(enumerate(words)))}


def _type_of_words(words: tuple[str, ...], stored_as: str) -> str:
    """The Arrow type that a column's words go out in: its own, or text where they cannot be turned back into it."""
    import pyarrow as pa

    kind = arrow_type(stored_as)
    try:
        pa.array(words, pa.string()).cast(kind.value_type if pa.types.is_dictionary(kind) else kind)
    except pa.ArrowException:
        return "string"
    return stored_as


def _truths_of(texts: list[str], name: str, origin: str) -> dict[str, float]:
    strangers = [text for text in texts if text.lower() not in (*TRUE, *FALSE)]
    if strangers:
        raise DataError(
            f"{origin}: a boolean column holds {'/'.join(TRUE)} or {'/'.join(FALSE)}, but {name!r} holds"
            f" {strangers[0]!r}: call it a category"
        )
    return {text: float(text.lower() in TRUE) for text in texts}


def _truths(found: Any, name: str, origin: str) -> np.ndarray:
    encoded = found.dictionary_encode()
    of_word = _truths_of(encoded.dictionary.to_pylist(), name, origin)
    values = np.array([of_word[text] for text in encoded.dictionary.to_pylist()])
    index = _floats(encoded.indices)
    return np.where(np.isnan(index), np.nan, values[np.nan_to_num(index).astype(np.int64)])


def _as_date(raw: Any, name: str, origin: str) -> Any:
    """A temporal column; text in the ISO form becomes days, or timestamps where it names hours."""
    import pyarrow as pa

    if pa.types.is_temporal(raw.type):
        return raw
    try:
        return raw.cast(pa.date32())
    except pa.ArrowException:
        pass
    try:
        return raw.cast(pa.timestamp("us"))
    except pa.ArrowException as error:
        raise DataError(f"{origin}: column {name!r} must hold dates such as 2024-12-31 ({brief(error)})") from None


def _counts(raw: Any, column: Column, origin: str) -> np.ndarray:
    """Days, milliseconds, ... since 1970 in the unit of the column; nanoseconds as microseconds, for float64."""
    import pyarrow as pa

    kind = arrow_type(column.arrow)
    if str(kind).startswith("timestamp[ns"):
        kind = pa.timestamp("us", kind.tz)
    try:
        raw = raw.cast(kind, safe=False)
    except pa.ArrowException as error:  # a time of day where there were dates
        raise DataError(f"{origin}: column {column.name!r} must hold a {column.arrow} ({brief(error)})") from None
    narrow = pa.types.is_date32(kind) or pa.types.is_time32(kind)
    return _floats(raw.cast(pa.int32()) if narrow else raw.cast(pa.int64()))


def _measured(column: Column, values: np.ndarray) -> Column:
    """The column with the least and greatest value and the digits of a number."""
    if column.type not in (ColumnType.NUMBER, ColumnType.DATE):
        return column
    known = values[~np.isnan(values)]
    decimals = 0 if column.type is ColumnType.DATE else decimals_of(known, column.arrow)
    return Column(column.name, column.type, column.arrow, (), decimals, float(known.min()), float(known.max()))


def decimals_of(known: np.ndarray, arrow: str = "double") -> int | None:
    """The fewest digits after the point that keep every value, up to fifteen; None where those are not enough.

    `known` is float64 (n,). Numbers of a narrower Arrow type, `float` or `halffloat`, have as many as that type shows:
    its 0.1 is 0.10000000149 in float64.
    """
    stored = {"float": np.float32, "halffloat": np.float16}.get(arrow, np.float64)
    largest = float(np.abs(known).max(initial=0.0))
    for digits in range(MOST_DECIMALS + 1):
        if digits and largest * 10.0**digits >= WHOLE_FLOATS:  # float64 has no such digits
            return None
        if (np.round(known, digits).astype(stored) == known.astype(stored)).all():
            return digits
    return None
