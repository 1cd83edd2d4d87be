"""Parts of a class: the boxes of a k-d tree, split by a sample that depends only on row numbers and the seed.

Boxes rather than random parts: picks of neighbouring boxes interfere only at the border, those of random parts
everywhere. Equal points always lie in one box, so none is picked twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.io.random_streams import derive_seed


@dataclass(frozen=True)
class Splits:
    """A tree: None for a part, or [column, value, tree where `point[column] < value`, tree of the others]."""

    tree: Any

    @property
    def num_leaves(self) -> int:
        """How many parts there are."""
        return 1 if self.tree is None else sum(Splits(child).num_leaves for child in self.tree[2:])

    def leaf_of(self, points: np.ndarray) -> np.ndarray:
        """The part of each point: int64 (n,) for (n, d)."""
        leaf = np.zeros(len(points), dtype=np.int64)
        if self.tree is not None:
            column, value, below, above = self.tree
            goes_left = points[:, column] < value
            leaf[goes_left] = Splits(below).leaf_of(points[goes_left])
            leaf[~goes_left] = Splits(below).num_leaves + Splits(above).leaf_of(points[~goes_left])
        return leaf


def split(points: np.ndarray, parts: int) -> Splits:
    """Splits of a sample (n, d) into `parts` boxes of nearly equal size; fewer if it has too few distinct points."""
    cut = _cut(points, parts // 2 / parts) if parts > 1 else None
    if cut is None:
        return Splits(None)
    column, value = cut
    goes_left = points[:, column] < value
    below, above = split(points[goes_left], parts // 2), split(points[~goes_left], parts - parts // 2)
    return Splits([column, value, below.tree, above.tree])


def _cut(points: np.ndarray, share: float) -> tuple[int, float] | None:
    """The column that varies most, and the value below which about `share` of the points lie; None if all are equal."""
    if len(points) < 2:
        return None
    largest = np.abs(points).max(axis=0).astype(np.float64)
    spread = points.astype(np.float64) / (largest.max() or 1.0)
    for column in np.argsort(-spread.var(axis=0), kind="stable").tolist():
        values = np.unique(points[:, column])
        if len(values) > 1:
            middle = np.sort(points[:, column])[int(len(points) * share)]
            place = int(np.clip(np.searchsorted(values, middle), 1, len(values) - 1))
            return column, float(values[place])
    return None


def is_sampled(first_row: int, rows: np.ndarray, rate: float, seed: int) -> np.ndarray:
    """Which of a block's rows are in a sample of this rate, bool (n,): by a hash of row number and seed."""
    key = np.uint64(derive_seed(seed, "partition"))
    with np.errstate(over="ignore"):
        mixed = (rows.astype(np.uint64) + np.uint64(first_row) + key) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed < np.uint64(min(int(rate * 2.0**64), 2**64 - 1))
