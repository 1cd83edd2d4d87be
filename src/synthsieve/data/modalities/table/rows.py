"""Rows of a table, from Arrow or pandas to float64 (n, columns) and back; columns of type `id` are NaN."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from synthsieve.data.checks import check, check_unique
from synthsieve.data.modalities.table.cells import cells, cells_to_arrow, read_column
from synthsieve.data.modalities.table.schema import ColumnType, TableSchema, column_type
from synthsieve.errors import DataError
from synthsieve.io.printable import brief, did_you_mean, listed

MAX_COLUMNS = 50_000


@dataclass(frozen=True)
class Rows:
    """Stored rows."""

    x: np.ndarray  # float64 (n, columns), NaN where a cell is missing
    schema: TableSchema
    notes: tuple[str, ...] = ()  # messages for the user


def rows_from_arrow(
    table: Any, schema: TableSchema | Mapping[str, str] | None = None
) -> tuple[np.ndarray, TableSchema]:
    """Rows of a pyarrow table without its label, float64 (n, columns), and their schema.

    `schema` overrides inferred column types, {"zip": "category"}; or it is the schema of earlier rows.
    """
    if isinstance(schema, TableSchema):
        return rows_like(table, schema), schema
    types = {name: column_type(name, given, origin="schema") for name, given in (schema or {}).items()}
    rows = read_rows(table, types=types)
    return rows.x, rows.schema


def rows_from_frame(
    frame: Any, schema: TableSchema | Mapping[str, str] | None = None
) -> tuple[np.ndarray, TableSchema]:
    """The same for a pandas DataFrame; its index is ignored."""
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        message = f"every column of a DataFrame must have cells of one type ({brief(error)})"
        raise DataError(message, code="unreadable-column") from None
    return rows_from_arrow(table, schema)


def rows_like(table: Any, schema: TableSchema) -> np.ndarray:
    """New rows of a known schema: float64 (n, columns)."""
    return read_rows_like(table, schema).x


def read_rows(table: Any, *, types: Mapping[str, ColumnType] | None = None, origin: str = "the table") -> Rows:
    """The rows of a pyarrow table; column types that are not in `types` are inferred."""
    names, types = _distinct_names(table, origin), types or {}
    for name in types:
        hint = f"{origin} has no column {name!r}, but the schema names it: {did_you_mean(name, names)}"
        check(name in names, hint, "missing-column")
    used = [name for name in names if types.get(name) is not ColumnType.IGNORE]
    read = [read_column(table.column(name), name, types.get(name), origin=origin) for name in used]
    schema = TableSchema(tuple(column for column, _ in read))
    unused = [f"{column.name!r} ({column.type})" for column in schema.columns if not column.is_modelled]
    problem = "no column to model: at least one of numbers, categories or dates is needed"
    check(len(unused) < len(read), f"{origin} has {problem}", "no-columns")
    notes = (f"columns not used for training: {', '.join(unused)}",) if unused else ()
    return Rows(np.stack([values for _, values in read], axis=1), schema, notes)


def read_rows_like(table: Any, schema: TableSchema, *, origin: str = "the table") -> Rows:
    """New rows of a known schema.

    All its columns are required, in any order; other columns are ignored with a note, and an unknown category is
    missing.
    """
    names = _distinct_names(table, origin)
    absent = [column.name for column in schema.columns if column.is_modelled and column.name not in names]
    check(not absent, f"{origin} lacks the training columns {listed(absent)}", "missing-column")
    extra = [name for name in names if name not in schema.names]
    notes = [f"columns unknown from training are ignored ({len(extra)}): {listed(extra)}"] if extra else []
    x = np.full((table.num_rows, len(schema)), np.nan)
    for i, column in enumerate(schema.columns):
        if column.is_modelled:
            x[:, i], unknown = cells(table.column(column.name), column, origin=origin)
            if unknown:
                notes.append(f"{unknown:,} cells of {column.name!r} have an unknown category: taken as missing")
    return Rows(x, schema, tuple(notes))


def arrow_from_rows(x: np.ndarray, schema: TableSchema) -> Any:
    """Stored rows x (n, columns) as a pyarrow table with the names, order and types of the source.

    Integer ids continue after the largest of the source, within the range of their type; other ids are null.
    """
    fits = x.ndim == 2 and x.shape[1] == len(schema)
    check(fits, f"rows must have shape (n, {len(schema)}), got {x.shape}", "shape")
    return pa.table({column.name: cells_to_arrow(x[:, i], column) for i, column in enumerate(schema.columns)})


def check_width(columns: int, *, origin: str) -> None:
    """Raise if there are more columns than a table may have: each is encoded separately."""
    problem = f"a table may have at most {MAX_COLUMNS:,} columns, got {columns:,}: store numbers as vectors in an .npz"
    check(columns <= MAX_COLUMNS, f"{origin}: {problem}", "too-many-columns")


def _distinct_names(table: Any, origin: str) -> list[str]:
    names = list(table.column_names)
    check_width(len(names), origin=origin)
    check_unique(names, origin)
    return names
