"""Parts of a class: the boxes of a k-d tree, split by a sample that depends only on row numbers and the seed.

Boxes rather than random parts: picks of neighbouring boxes interfere only at the border, those of random parts
everywhere. Equal points always lie in one box, so none is picked twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from synthsieve.io.random_streams import derive_seed


@dataclass(frozen=True)
class Splits:
    """The inner nodes of a tree; a child below 0 is the leaf `-1 - child`.

    Attributes:
        column, value: a point goes left where `point[column] < value`.
        left, right: the children of each node.
        num_leaves: how many parts there are.
    """

    column: tuple[int, ...]
    value: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    num_leaves: int

    def leaf_of(self, points: np.ndarray) -> np.ndarray:
        """The part of each point: int64 (n,) for (n, d)."""
        leaf = np.zeros(len(points), dtype=np.int64)
        waiting = [(0, np.arange(len(points)))] if self.column else []
        while waiting:
            node, rows = waiting.pop()
            goes_left = points[rows, self.column[node]] < self.value[node]
            for child, below in ((self.left[node], rows[goes_left]), (self.right[node], rows[~goes_left])):
                if child < 0:
                    leaf[below] = -1 - child
                else:
                    waiting.append((child, below))
        return leaf

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Splits:
        lists = {name: tuple(value[name]) for name in ("column", "value", "left", "right")}
        return cls(**lists, num_leaves=int(value["num_leaves"]))


def split(points: np.ndarray, parts: int) -> Splits:
    """Splits of a sample (n, d) into `parts` boxes of nearly equal size; fewer if it has too few distinct points."""
    nodes: list[list[Any]] = []
    leaves = 0
    waiting: list[tuple[np.ndarray, int, int, int]] = [(np.arange(len(points)), parts, -1, 0)]
    while waiting:
        rows, wanted, parent, side = waiting.pop()
        cut = _cut(points[rows], wanted // 2 / wanted) if wanted > 1 else None
        if cut is None:
            name, leaves = -1 - leaves, leaves + 1
        else:
            column, value = cut
            name = len(nodes)
            nodes.append([column, value, 0, 0])
            goes_left = points[rows, column] < value
            waiting.append((rows[~goes_left], wanted - wanted // 2, name, 3))
            waiting.append((rows[goes_left], wanted // 2, name, 2))
        if parent >= 0:
            nodes[parent][side] = name
    columns = {key: [node[k] for node in nodes] for k, key in enumerate(("column", "value", "left", "right"))}
    return Splits.from_dict({**columns, "num_leaves": leaves})


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
