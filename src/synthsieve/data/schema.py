"""What the columns of a table are: their names, types and the form in which people have them.

A schema is made once, from the rows of the source, and goes with the data set and the encoding. The user's word on a
column's type, in a small TOML file, wins over what is guessed.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any

from synthsieve.data.labels import listed
from synthsieve.errors import DataError


class ColumnType(StrEnum):
    """What the cells of a column are.

    `id` only names a row, so nothing is learned from it; `ignore` takes a column away; `missing` is one without a
    single value.
    """

    NUMBER = "number"
    CATEGORY = "category"
    BOOLEAN = "boolean"
    DATE = "date"
    ID = "id"
    IGNORE = "ignore"
    MISSING = "missing"


CHOICES = tuple(kind.value for kind in ColumnType if kind is not ColumnType.MISSING)


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: as in the source.
        type: what its cells are.
        arrow: the Arrow type it came in and goes out in, as Arrow writes it: `int64`, `string`, `timestamp[us]`.
        categories: the text of each stored index, for categories; of 0 and 1, for booleans that came as such words.
        decimals: digits after the point, for numbers; 0 is whole numbers, None where fifteen are not enough.
        low, high: the least and greatest value, for numbers, dates and whole ids.
    """

    name: str
    type: ColumnType
    arrow: str
    categories: tuple[str, ...] = ()
    decimals: int | None = None
    low: float | None = None
    high: float | None = None

    @property
    def is_learned(self) -> bool:
        """Whether its cells are kept: an id or an empty column is NaN in every row."""
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
        """What `to_json` described; a KeyError, TypeError or ValueError means that it is damaged."""
        columns = []
        for entry in value:
            known = {**entry, "type": ColumnType(entry["type"]), "categories": tuple(map(str, entry["categories"]))}
            columns.append(Column(**known))
        return cls(tuple(columns))


def read_types(path: Path) -> dict[str, ColumnType]:
    """The types of columns that a TOML file names under `[columns]`: age = "number", zip = "category"."""
    try:
        value = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # a number of too many digits is no TOMLDecodeError
        raise DataError(f"{path} cannot be read as a schema ({error}): write TOML with a [columns] section") from None
    columns = value.get("columns")
    if set(value) != {"columns"} or not isinstance(columns, dict):
        raise DataError(f'{path} must hold one section, [columns], with lines such as age = "number"')
    return {name: column_type(name, given, origin=str(path)) for name, given in columns.items()}


def repeated_names(names: list[str]) -> list[str]:
    """The names that came more than once, sorted."""
    return sorted(name for name, times in Counter(names).items() if times > 1)


def check_names(types: Mapping[str, ColumnType], names: list[str], *, origin: str) -> None:
    """Refuse a schema that speaks of a column which is not there."""
    for name in types:
        if name not in names:
            close = get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}" if close else f"its columns are {listed(names)}"
            raise DataError(f"{origin} has no column {name!r}, which its schema names: {hint}?")


def column_type(name: str, given: Any, *, origin: str) -> ColumnType:
    """The type that the user's word names."""
    if given in CHOICES:
        return ColumnType(given)
    close = get_close_matches(str(given), CHOICES, n=1)
    hint = f": did you mean {close[0]!r}?" if close else ""
    raise DataError(f"{origin}: column {name!r} must be one of {', '.join(CHOICES)}, but {given!r} came{hint}")
