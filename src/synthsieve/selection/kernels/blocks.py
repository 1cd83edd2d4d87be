"""Blocks of rows, so that temporary arrays stay small however many columns there are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

# Numbers in a block, and rows at most: 5 MB of float64.
BLOCK_NUMBERS = 655_360
_MAX_ROWS = 65_536


def row_blocks(num_rows: int, num_columns: int) -> Iterator[slice]:
    """Slices that together cover `num_rows` rows, each of at most `BLOCK_NUMBERS` numbers (or one row)."""
    size = min(_MAX_ROWS, max(1, BLOCK_NUMBERS // max(1, num_columns)))
    for start in range(0, num_rows, size):
        yield slice(start, min(start + size, num_rows))


def rows_by_class(labels: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """The distinct labels, ascending, and the rows int32 of each, ascending, with a single sort."""
    order = np.argsort(labels, kind="stable").astype(np.int32)
    present, starts = np.unique(labels[order], return_index=True)
    return present, np.split(order, starts[1:]) if len(present) else []
