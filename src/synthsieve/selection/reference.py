"""Real rows as a reference for generated ones: which rows are copies of them, and how well a choice covers them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.selection.kernels.blocks import BLOCK_NUMBERS, row_blocks

# Copies may differ from the original by this part of the reference's mean length: rounding, also that of bfloat16 once.
_ROUNDING = 1e-4


@dataclass(frozen=True)
class ReferenceFigures:
    """How a selection relates to a reference of `size` rows.

    Attributes:
        row: int64 (n,), the row of the reference nearest to each row; distance: float64 (n,), how far it is.
        leak_distance: rows at most this far were rejected.
        coverage: mean distance of the reference's rows to the nearest selected row; random_coverage: to the nearest of
            as many random rows. Of its own class, if the reference has labels.
    """

    size: int
    row: np.ndarray
    distance: np.ndarray
    leak_distance: float
    coverage: float
    random_coverage: float

    def as_dict(self) -> dict[str, Any]:
        least, median = (float(value) for value in np.quantile(self.distance, [0.0, 0.5]))
        same = {name: getattr(self, name) for name in ("leak_distance", "coverage", "random_coverage")}
        return {"rows": self.size, "least_distance": least, "median_distance": median, **same}

    def lines(self) -> list[str]:
        found = self.as_dict()
        return [
            f"reference of {self.size:,} rows: nearest to a row {found['least_distance']:.3g}, median "
            f"{found['median_distance']:.3g}; copies are rows within {self.leak_distance:.3g}",
            f"  mean distance to the nearest selected row {self.coverage:.4g}, of as many random rows "
            f"{self.random_coverage:.4g}",
        ]


def default_leak_distance(reference: np.ndarray) -> float:
    """The distance below which rows differ by rounding only."""
    return _ROUNDING * float(np.linalg.norm(reference.astype(np.float64), axis=1).mean())


def nearest_rows(points: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each point (n, d) its nearest row among `others` (m, d), int64 (n,), and the distance, float64 (n,).

    Products in float32 leave the contenders, which are then compared in float64; the lowest row among equals.
    """
    centre = others.mean(axis=0, dtype=np.float64)
    scale = max(float(np.abs(others).max()), float(np.abs(points).max()), 1e-300)
    targets = ((others - centre) / scale).astype(np.float32)
    norms = np.einsum("ij,ij->i", targets, targets)
    error = 2.0**-22 * (4.0 + np.sqrt(points.shape[1]))
    height = max(1, min(BLOCK_NUMBERS // len(others), BLOCK_NUMBERS // points.shape[1]))
    nearest, distance = np.empty(len(points), dtype=np.int64), np.empty(len(points))
    for start in range(0, len(points), height):
        block = points[start : start + height]
        some = ((block - centre) / scale).astype(np.float32)
        own = np.einsum("ij,ij->i", some, some)
        squared = norms - 2.0 * (some @ targets.T)
        slack = 2.0 * error * (own + norms.max())
        contenders = squared <= squared.min(axis=1, keepdims=True) + slack[:, None]
        which, other = np.nonzero(contenders)
        apart = np.empty(len(which))
        for part in row_blocks(len(which), points.shape[1]):
            difference = block[which[part]].astype(np.float64) - others[other[part]]
            apart[part] = np.linalg.norm(difference / scale, axis=1) * scale
        order = np.lexsort((other, apart, which))
        first = order[np.unique(which[order], return_index=True)[1]]
        nearest[start : start + height], distance[start : start + height] = other[first], apart[first]
    return nearest, distance


def coverage_of(
    reference: np.ndarray, classes: np.ndarray, points: np.ndarray, labels: np.ndarray, rng: np.random.Generator,
    picks: np.ndarray, survivors: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    """Mean distance of the reference (m, d) to the nearest of its class among `picks`, and among as many random rows.

    `classes` (m,) and `labels` (n,) are class indices, `survivors` (s,) the rows that could be picked. Classes without
    a pick are left out.
    """
    found = np.zeros(2)
    counted = 0
    for label in np.unique(labels[picks]):
        of_class = reference[classes == label]
        chosen, eligible = picks[labels[picks] == label], survivors[labels[survivors] == label]
        random = rng.permutation(eligible)[: len(chosen)]
        if len(of_class):
            found += [nearest_rows(of_class, points[rows])[1].sum() for rows in (chosen, random)]
            counted += len(of_class)
    covered, at_random = (found / counted).tolist() if counted else (np.nan, np.nan)
    return covered, at_random
