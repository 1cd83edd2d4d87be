"""Rows of any container: sets of rows in one form, one below the other, and rows that occur in two sets."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from synthsieve.data.containers import as_items, check_names, is_frame, materialize, rows_of, take_rows
from synthsieve.data.labels import listed
from synthsieve.errors import InputError


def read_rows(given: Mapping[str, Any]) -> dict[str, Any]:
    """Sets of rows, by name, in one form, so that rows of one set can stand below those of another.

    Arrow tables and polars frames become pandas frames; tensors, lists and series become arrays; sparse matrices and
    pandas frames stay. Frames get the columns of the first set in its order, and the same categories. Sets whose rows
    are unlike those of the first are refused.
    """
    sets = {name: _as_form(rows, name) for name, rows in given.items()}
    (first, like), *others = sets.items()
    for name, rows in others:
        _check_alike(first, like, name, rows)
    if not is_frame(like):
        return sets
    return _with_common_categories({name: rows[list(like.columns)] for name, rows in sets.items()})


def join_rows(parts: list[Any]) -> Any:
    """The rows of several sets from `read_rows`, one below the other."""
    if is_frame(parts[0]):
        import pandas as pd

        return pd.concat(parts, ignore_index=True)
    if hasattr(parts[0], "tocsr"):
        from scipy import sparse

        return sparse.vstack(parts).tocsr()
    return np.concatenate(parts)


def row_keys(sets: Mapping[str, Any]) -> dict[str, list[Hashable]]:
    """A key for each row of each set from `read_rows`: equal rows have equal keys, of whatever types of numbers."""
    kinds = [rows.dtype for rows in sets.values() if hasattr(rows, "dtype")]
    single = any(kind.kind == "f" and kind.itemsize < 8 for kind in kinds)
    return {name: _keys(rows, np.dtype(np.float32 if single else np.float64)) for name, rows in sets.items()}


def common_rows(first: list[Hashable], second: list[Hashable]) -> list[tuple[int, int]]:
    """Places of equal keys: each place in `first` whose key occurs in `second`, with its first place there."""
    places: dict[Hashable, int] = {}
    for place, key in enumerate(second):
        places.setdefault(key, place)
    return [(place, places[key]) for place, key in enumerate(first) if key in places]


def _as_form(given: Any, name: str) -> Any:
    if hasattr(given, "tocsr"):
        return given.tocsr()
    given = materialize(given)
    rows = given.to_pandas() if hasattr(given, "column_names") else as_items(given)
    if is_frame(rows):
        check_names(rows)
        rows = rows.reset_index(drop=True)
    elif not rows.ndim:
        raise InputError(f"{name} must hold rows, got a single value: put it into a list", code="unknown-container")
    if not rows_of(rows):
        raise InputError(f"{name} has no rows: at least one is needed", code="no-rows")
    return rows


def _check_alike(first: str, like: Any, name: str, rows: Any) -> None:
    if is_frame(like) != is_frame(rows) or hasattr(like, "tocsr") != hasattr(rows, "tocsr"):
        raise InputError(
            f"{name} must have the container of {first}, a {type(like).__name__}, "
            f"got a {type(rows).__name__}: convert one of them",
            code="different-containers",
        )
    if is_frame(like):
        lacking = [str(column) for column in like.columns if column not in rows.columns]
        more = [str(column) for column in rows.columns if column not in like.columns]
        if lacking or more:
            words = [f"lacks {listed(lacking)}"] * bool(lacking) + [f"also has {listed(more)}"] * bool(more)
            raise InputError(
                f"{name} must have the columns of {first}, but it {' and '.join(words)}: add or drop these columns",
                code="different-columns",
            )
    elif like.shape[1:] != rows.shape[1:]:
        raise InputError(
            f"rows of {name} must have the shape of those of {first}, {like.shape[1:]}, but have {rows.shape[1:]}",
            code="different-shapes",
        )


def _with_common_categories(frames: dict[str, Any]) -> dict[str, Any]:
    """Category columns with the categories of all frames, so that frames can be joined without losing the type."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    first = next(iter(frames.values()))
    kinds = {name: column.dtype for name, column in first.items() if isinstance(column.dtype, pd.CategoricalDtype)}
    if not kinds:
        return frames
    common = {}
    for column, kind in kinds.items():
        each = [frame[column].astype("category").cat.as_unordered().array for frame in frames.values()]
        values = union_categoricals(each, sort_categories=not kind.ordered).categories
        common[column] = pd.CategoricalDtype(values, ordered=kind.ordered)
    return {name: frame.astype(common) for name, frame in frames.items()}


def _keys(rows: Any, number: np.dtype[Any]) -> list[Hashable]:
    if is_frame(rows):
        return list(zip(*(_column_keys(rows[column]) for column in rows.columns), strict=True))
    if hasattr(rows, "tocsr"):
        return [
            key
            for start in range(0, rows.shape[0], 1024)
            for key in _keys(rows[start : start + 1024].toarray(), number)
        ]
    if rows.dtype.kind in "OUS":
        return [_item_key(row) for row in rows]
    flat = np.ascontiguousarray(rows.reshape(len(rows), -1), dtype=number) + 0.0  # -0.0 becomes 0.0
    flat[np.isnan(flat)] = np.nan
    return [row.tobytes() for row in flat]


def _column_keys(column: Any) -> list[Hashable]:
    if column.dtype.kind in "iufb":
        return [None if value != value else float(value) for value in column.astype(np.float64).tolist()]
    return [None if missing else str(value) for value, missing in zip(column, column.isna(), strict=True)]


def _item_key(item: Any) -> Hashable:
    if isinstance(item, str):
        return item.strip()
    if isinstance(item, list | tuple | np.ndarray):
        return tuple(_item_key(part) for part in np.asarray(item, dtype=object).ravel())
    return float(item) if isinstance(item, int | float | np.number) else str(item)


__all__ = ["common_rows", "join_rows", "read_rows", "row_keys", "take_rows"]
