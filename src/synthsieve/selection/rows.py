"""Rows of any form: their columns by name, and the selected ones in the same form.

Forms: pandas and polars frames, Arrow tables, `datasets.Dataset` and `IterableDataset`, dicts of columns, lists of
dicts; of arrays, tensors and lists, rows alone. Libraries are recognised by their methods and never imported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.selection import validation


def is_hub_dataset(rows: Any) -> bool:
    """Whether this is a `datasets.Dataset`, whose columns are read through Arrow."""
    return hasattr(rows, "column_names") and hasattr(rows, "with_format") and hasattr(rows, "select")


def is_stream(rows: Any) -> bool:
    """Whether this is a `datasets.IterableDataset`: without a length, read once for each column."""
    return hasattr(rows, "column_names") and hasattr(rows, "filter") and not hasattr(rows, "__len__")


def is_list_of_dicts(rows: Any) -> bool:
    return isinstance(rows, list | tuple) and len(rows) > 0 and all(isinstance(row, Mapping) for row in rows)


def is_table(rows: Any) -> bool:
    """Whether rows have named columns."""
    named = hasattr(rows, "column_names") or hasattr(rows, "columns") or isinstance(rows, Mapping)
    return named or is_list_of_dicts(rows)


def is_matrix(rows: Any) -> bool:
    """Whether these are numbers already, rather than texts."""
    return is_table(rows) or (hasattr(rows, "ndim") and rows.ndim == 2)


def columns_of(rows: Any, names: Sequence[str]) -> dict[str, Any]:
    """Columns by name, as `validation` takes them; those of a stream are read in one pass."""
    if is_stream(rows) or is_list_of_dicts(rows):
        found: dict[str, list[Any]] = {name: [] for name in names}
        for row in rows:
            for name in names:
                if name not in row:
                    raise _unknown(name, row)
                found[name].append(row[name])
        return {name: _as_column(values, name) for name, values in found.items()}
    if is_hub_dataset(rows):
        for name in names:
            if name not in rows.column_names:
                raise _unknown(name, rows.column_names)
        table = rows.select_columns(list(dict.fromkeys(names))).with_format("arrow")[:]
        return {name: table[name] for name in names}
    if hasattr(rows, "collect_schema") and hasattr(rows, "collect"):  # a lazy frame has no rows yet
        raise SelectionError(
            f"expected rows in memory, got a {type(rows).__name__}: pass what its collect() returns", code="lazy-frame"
        )
    known = getattr(rows, "column_names", getattr(rows, "columns", rows if isinstance(rows, Mapping) else None))
    if known is None or isinstance(rows, np.ndarray):
        raise SelectionError(
            f"expected a table to take the column {names[0]!r} from, got {type(rows).__name__}: pass a data frame, an "
            "Arrow table, a Dataset, a dict of columns or a list of dicts",
            code="no-columns",
        )
    for name in names:
        if name not in list(known):
            raise _unknown(name, known)
    return {name: _as_column(rows[name], name) for name in names}


def _unknown(name: str, known: Any) -> SelectionError:
    listed = ", ".join(str(one) for one in list(known)[:8])
    return SelectionError(f"expected the column {name!r}, got {listed}: name one of those", code="unknown-column")


def _as_column(values: Any, name: str) -> Any:
    """A column whose cells may be lists or arrays: (n, d) then; Arrow, tensors and others as they are."""
    if hasattr(values, "to_arrow"):  # polars
        return values.to_arrow()
    if hasattr(values, "detach") or hasattr(values, "combine_chunks"):
        return values
    holds_objects = getattr(getattr(values, "dtype", None), "kind", "") == "O"
    cells = values if isinstance(values, list) else list(values) if holds_objects else None
    return validation.stacked(cells, name) if cells and validation.holds_vectors(cells[0]) else values


def take(rows: Any, indices: np.ndarray, num_rows: int, added: Any) -> Any:
    """The rows at `indices` (k,), in the same form; tables get the columns of the Arrow table `added`, of `num_rows`.

    Of a stream, a stream of the same rows in their own order, which is read when it is iterated.
    """
    if is_stream(rows):
        return _filtered_stream(rows, added)
    length = rows.shape[0] if hasattr(rows, "shape") else len(rows)
    if isinstance(rows, Mapping):
        length = len(next(iter(rows.values()), ()))
    if length != num_rows:
        raise SelectionError(
            f"expected the {num_rows} rows of the selection, got {length}: pass the same rows", code="length"
        )
    more = added.take(indices)
    if is_list_of_dicts(rows):
        dicts = ({free_name(name, rows[0]): value for name, value in row.items()} for row in more.to_pylist())
        return [{**rows[row], **columns} for row, columns in zip(indices.tolist(), dicts, strict=True)]
    if isinstance(rows, Mapping):
        taken = {name: rows_at(values, indices) for name, values in rows.items()}
        return {**taken, **{free_name(name, rows): _plain(more[name]) for name in more.column_names}}
    taken = rows_at(rows, indices)
    for name in more.column_names if hasattr(rows, "columns") or hasattr(rows, "column_names") else ():
        taken = _with_column(taken, name, more[name])
    return taken


def rows_at(values: Any, indices: np.ndarray) -> Any:
    """Some rows of an array, a tensor, a sparse matrix, a frame, an Arrow table or column, a Dataset or a list."""
    if hasattr(values, "iloc"):
        return values.iloc[indices]
    if hasattr(values, "tocsr"):
        return values.tocsr()[indices]
    if is_hub_dataset(values):
        return values.select(indices)
    if hasattr(values, "combine_chunks") or hasattr(values, "to_pylist"):  # Arrow
        return values.take(indices)
    if isinstance(values, list | tuple):
        return [values[row] for row in indices.tolist()]
    return values[indices]


def _with_column(rows: Any, name: str, values: Any) -> Any:
    if is_hub_dataset(rows):
        return rows.add_column(free_name(name, rows.column_names), values.to_pylist())
    if hasattr(rows, "append_column"):  # an Arrow table or record batch
        column = values if hasattr(rows, "combine_chunks") else values.combine_chunks()
        return rows.append_column(free_name(name, rows.schema.names), column)
    if hasattr(rows, "iloc"):
        return rows.assign(**{free_name(name, list(rows.columns)): _plain(values)})
    own = type(rows)({free_name(name, list(rows.columns)): values.to_pylist()})  # polars
    return rows.hstack(own)


def _plain(values: Any) -> np.ndarray:
    """An Arrow column as numpy: text as objects, unknown numbers as nan."""
    return np.asarray(values.to_pandas())


def _filtered_stream(rows: Any, added: Any) -> Any:
    names = {name: free_name(name, rows.column_names or ()) for name in added.column_names}

    def with_columns(row: dict[str, Any], place: int) -> dict[str, Any]:
        return {**row, **{names[name]: added[name][place].as_py() for name in names}}

    marked = rows.map(with_columns, with_indices=True)
    return marked.filter(lambda row: row[names["rank"]] is not None)


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with `coreset_` before it until it is not taken."""
    while name in taken:
        name = f"coreset_{name}"
    return name
