"""Samples that are read rather than seen: cells of a table, numbers of a vector, sentences, or whatever text says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.review.pool_view import PoolView
from synthsieve.review.taken_home import items_of

LONGEST_TEXT = 2000
LONGEST_CELL = 80
MOST_CELLS = 64  # columns shown


@dataclass(frozen=True)
class Lines:
    """Text for each sample: one cell a column of `names`, or a single cell where `names` is empty."""

    names: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]

    def as_dict(self) -> dict[str, Any]:
        return {"names": list(self.names), "cells": [list(row) for row in self.cells]}


def synthetic_lines(view: PoolView, rows: np.ndarray, x: np.ndarray) -> Lines:
    """Samples of the pool, decoded to x (n, *shape), as an export tells them.

    An embedding is shown by the real row nearest to it: nobody can read one.
    """
    if view.run.origin.features is not None:
        near = lines_of(view, view.real_items(view.scores.nearest_row[rows]))
        names = tuple(f"nearest {name}" for name in near.names) or ("nearest real example",)
        return Lines(names, near.cells)
    return lines_of(view, items_of(view, rows, x))


def lines_of(view: PoolView, items: Any) -> Lines:
    """By what the items are."""
    import pyarrow as pa

    if isinstance(items, pa.Table):
        names = tuple(_cut(str(name), LONGEST_CELL) for name in items.column_names[:MOST_CELLS])
        columns = [items.column(place).to_pylist() for place in range(len(names))]
        return Lines(names, tuple(tuple(map(_cell, row)) for row in zip(*columns, strict=True)))
    if isinstance(items, np.ndarray) and items.ndim == 2 and items.dtype.kind in "fiu":
        given = view.dataset.feature_names or tuple(f"x{place + 1}" for place in range(items.shape[1]))
        rows = items[:, :MOST_CELLS].tolist()
        return Lines(tuple(given[:MOST_CELLS]), tuple(tuple(map(_cell, row)) for row in rows))
    texts = (item if isinstance(item, str) else str(item) for item in items)
    return Lines((), tuple((_cut(text, LONGEST_TEXT),) for text in texts))


def _cell(value: Any) -> str:
    if value is None or value != value:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else _cut(str(value), LONGEST_CELL)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
