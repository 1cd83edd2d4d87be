"""Rows of a table, from Arrow or pandas to float64 (n, columns) and back.

A cell is stored as its number, the index of its category, 0 or 1, or its date as Arrow counts it; NaN is missing.
Columns of type `id` hold nothing to learn from and are NaN throughout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.data.cells import cells, read_column
from synthsieve.data.cells_out import cells_out
from synthsieve.data.labels import listed
from synthsieve.data.reasons import brief
from synthsieve.data.schema import ColumnType, TableSchema, check_names, column_type, repeated_names
from synthsieve.errors import DataError

MOST_COLUMNS = 50_000


@dataclass(frozen=True)
class Rows:
    """Stored rows.

    Attributes:
        x: float64 (n, columns), NaN where a cell is missing.
        schema: what the columns are.
        notes: sentences worth telling the user.
    """

    x: np.ndarray
    schema: TableSchema
    notes: tuple[str, ...] = ()


def rows_from_arrow(
    table: Any, schema: TableSchema | Mapping[str, str] | None = None
) -> tuple[np.ndarray, TableSchema]:
    """Rows of a pyarrow table without its label, float64 (n, columns), and the schema by which they were read.

    `schema` names the types of columns that are guessed wrongly, {"zip": "category"}; or it is the schema of earlier
    rows, by which these are read too.
    """
    if isinstance(schema, TableSchema):
        return rows_alike(table, schema), schema
    types = {name: column_type(name, given, origin="schema") for name, given in (schema or {}).items()}
    rows = read_rows(table, types=types)
    return rows.x, rows.schema


def rows_from_frame(
    frame: Any, schema: TableSchema | Mapping[str, str] | None = None
) -> tuple[np.ndarray, TableSchema]:
    """The same for a pandas DataFrame; its index is not a column."""
    import pyarrow as pa

    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"every column of a DataFrame needs cells of one type ({brief(error)})") from None
    return rows_from_arrow(table, schema)


def rows_alike(table: Any, schema: TableSchema) -> np.ndarray:
    """New rows, read as those of `schema` were: float64 (n, columns); what is odd about them is not told."""
    return read_more_rows(table, schema).x


def read_rows(table: Any, *, types: Mapping[str, ColumnType] | None = None, origin: str = "the table") -> Rows:
    """The rows of a pyarrow table; its columns' types are guessed, but for those that `types` names."""
    names, types = _distinct_names(table, origin), types or {}
    check_names(types, names, origin=origin)
    read = [
        read_column(table.column(name), name, types.get(name), origin=origin)
        for name in names
        if types.get(name) is not ColumnType.IGNORE
    ]
    schema = TableSchema(tuple(column for column, _ in read))
    if not any(column.is_learned for column in schema.columns):
        raise DataError(f"{origin} has no column to learn from: at least one of numbers, categories or dates is needed")
    idle = [f"{column.name!r} ({column.type})" for column in schema.columns if not column.is_learned]
    notes = (f"nothing is learned from {', '.join(idle)}",) if idle else ()
    return Rows(np.stack([values for _, values in read], axis=1), schema, notes)


def read_more_rows(table: Any, schema: TableSchema, *, origin: str = "the table") -> Rows:
    """New rows, read as those of `schema` were.

    Its columns may come in any order and all must be there; others are passed over with a note, and a category that the
    schema does not know is missing.
    """
    names = _distinct_names(table, origin)
    lacking = [column.name for column in schema.columns if column.is_learned and column.name not in names]
    if lacking:
        raise DataError(f"{origin} must have the columns that were learned from, but {listed(lacking)} are not there")
    extra = [name for name in names if name not in schema.names]
    notes = [f"columns that were never learned from are ignored ({len(extra)}): {listed(extra)}"] if extra else []
    x = np.full((table.num_rows, len(schema)), np.nan)
    for i, column in enumerate(schema.columns):
        if column.is_learned:
            x[:, i], unknown = cells(table.column(column.name), column, origin=origin)
            if unknown:
                notes.append(f"{unknown:,} cells of {column.name!r} hold a category never seen: taken as missing")
    return Rows(x, schema, tuple(notes))


def arrow_from_rows(x: np.ndarray, schema: TableSchema) -> Any:
    """A pyarrow table of stored rows x (n, columns), with the names, the order and the types they came in.

    Whole ids count on after the largest that came, as far as their type reaches; other ids are null.
    """
    import pyarrow as pa

    if x.ndim != 2 or x.shape[1] != len(schema):
        raise DataError(f"rows must have shape (n, {len(schema)}), but came with {x.shape}")
    return pa.table({column.name: cells_out(x[:, i], column) for i, column in enumerate(schema.columns)})


def check_width(columns: int, *, origin: str) -> None:
    """Refuse more columns than a table is meant for: each is measured and coded by itself."""
    if columns > MOST_COLUMNS:
        raise DataError(
            f"{origin}: a table may have {MOST_COLUMNS:,} columns at most, but has {columns:,}: store numbers as"
            " vectors instead, in an .npz"
        )


def _distinct_names(table: Any, origin: str) -> list[str]:
    names = list(table.column_names)
    check_width(len(names), origin=origin)
    repeated = repeated_names(names)
    if repeated:
        raise DataError(f"{origin}: every column needs a name of its own, but {listed(repeated)} came more than once")
    return names
