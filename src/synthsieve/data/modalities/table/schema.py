"""The schema of a table: names, column types and Arrow types.

It is inferred once from the source's rows. A TOML file can override the inferred column types.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any

import pyarrow as pa

from synthsieve.data.checks import check
from synthsieve.errors import DataError


class ColumnType(StrEnum):
    """The type of a column; `id` is kept but not modelled, `ignore` is dropped, `missing` has no value at all."""

    NUMBER = "number"
    CATEGORY = "category"
    BOOLEAN = "boolean"
    DATE = "date"
    ID = "id"
    IGNORE = "ignore"
    MISSING = "missing"


# Arrow types are stored by the names that Arrow gives them.
ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=([^\]]+)\]")
DECIMAL = re.compile(r"(decimal32|decimal64|decimal128|decimal256)\((\d+), (-?\d+)\)")
DICTIONARY = re.compile(r"dictionary<values=(.+), indices=(u?int(?:8|16|32|64)), ordered=([01])>")
CHOICES = tuple(kind.value for kind in ColumnType if kind is not ColumnType.MISSING)


@dataclass(frozen=True)
class Column:
    """One column."""

    name: str  # as in the source
    type: ColumnType
    arrow: str  # the name of its Arrow type, for reading and writing: `int64`, `string`, `timestamp[us]`
    categories: tuple[str, ...] = ()  # the text of each category index; for booleans given as words, of 0 and 1
    decimals: int | None = None  # digits after the point, for numbers; None if more than fifteen
    low: float | None = None  # the range of values, for numbers, dates and integer ids
    high: float | None = None

    @property
    def is_modelled(self) -> bool:
        """Whether the column is modelled: ids and empty columns are NaN in every row."""
        return self.type not in (ColumnType.ID, ColumnType.MISSING)


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table, in the order of the source, without the label and the ignored ones."""

    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def to_json(self) -> list[dict[str, Any]]:
        """A mapping for each column."""
        return [asdict(column) for column in self.columns]

    @classmethod
    def from_json(cls, value: list[dict[str, Any]]) -> TableSchema:
        """The schema from `to_json`; KeyError, TypeError or ValueError if it is damaged."""
        columns = []
        for entry in value:
            categories = tuple(map(str, entry["categories"]))
            columns.append(Column(**{**entry, "type": ColumnType(entry["type"]), "categories": categories}))
        return cls(tuple(columns))


def read_types(path: Path) -> dict[str, ColumnType]:
    """The column types in a TOML file, under `[columns]`: age = "number", zip = "category"."""
    advice = 'write one section, [columns], with lines such as age = "number"'
    try:
        value = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # a number of too many digits is no TOMLDecodeError
        raise DataError(f"{path} cannot be read as a schema in TOML ({error}): {advice}", code="schema-file") from None
    columns = value.get("columns")
    valid = set(value) == {"columns"} and isinstance(columns, dict)
    check(valid, f"{path} is not a schema: {advice}", "schema-file")
    return {name: column_type(name, given, origin=str(path)) for name, given in value["columns"].items()}


def column_type(name: str, given: Any, *, origin: str) -> ColumnType:
    """The column type that a user's value names."""
    if given in CHOICES:
        return ColumnType(given)
    close = get_close_matches(str(given), CHOICES, n=1)
    expected = f"one of {', '.join(CHOICES)}, got {given!r}" + (f": did you mean {close[0]!r}?" if close else "")
    raise DataError(f"{origin}: the type of column {name!r} must be {expected}", code="column-type")


def arrow_type(name: str) -> Any:
    """The Arrow type of this name; ValueError if there is none."""
    if zoned := ZONED.fullmatch(name):
        return pa.timestamp(zoned[1], zoned[2])
    if decimal := DECIMAL.fullmatch(name):
        return getattr(pa, decimal[1])(int(decimal[2]), int(decimal[3]))
    if dictionary := DICTIONARY.fullmatch(name):
        return pa.dictionary(pa.type_for_alias(dictionary[2]), arrow_type(dictionary[1]), dictionary[3] == "1")
    return pa.type_for_alias(name)


def type_name(kind: Any) -> str:
    """The name from which `arrow_type` gives this type again; `null` for nested types, which are not supported."""
    try:
        arrow_type(str(kind))
    except ValueError:
        return "null"
    return str(kind)


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is an integer, a float or a decimal."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
