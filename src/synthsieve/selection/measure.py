"""The bound L and the gradient error of a choice of picks, measured from the points themselves in float64."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.selection.kernels.blocks import row_blocks

# The random control measures about this many coordinates in each class, from at least and at most so many rows.
_CONTROL_NUMBERS = 1_000_000
_CONTROL_ROWS = 16, 256


class ClassPoints(NamedTuple):
    """The points of one class: `values[rows]` (m, d) with sample weights (m,); features start at column `split`."""

    values: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    split: int | None


class Scaling(NamedTuple):
    """Powers of two (d,) that entries are multiplied by, so that no square overflows, and that lengths are then."""

    shrink: np.ndarray
    magnitude: float


def scaling_of(points: ClassPoints) -> Scaling:
    """The power of two that brings the largest entry near 1."""
    parts = row_blocks(len(points.rows), points.values.shape[1])
    top = max(float(np.abs(points.values[points.rows[part]]).max()) for part in parts)
    exponent = int(np.clip(np.frexp(top)[1], -1000, 1000))
    return Scaling(np.full(points.values.shape[1], 2.0**-exponent), 2.0**exponent)


def bound_and_difference(points: ClassPoints, assignment: np.ndarray, scaling: Scaling) -> tuple[float, np.ndarray]:
    """L and the summed difference of gradients, from the points themselves in float64."""
    values, rows, weight, split = points
    bound, difference = 0.0, np.zeros(1)
    for part in row_blocks(len(rows), values.shape[1]):
        point, pick = (values[which[part]].astype(np.float64) * scaling.shrink for which in (rows, assignment))
        count = weight[part]
        if split is None or split == values.shape[1]:
            apart = point - pick
            bound += float(count @ np.linalg.norm(apart, axis=1))
            difference = difference + count @ apart
        else:
            bound += float(count @ _outer_product_distance(point, pick, split))
            for sign, side in ((1.0, point), (-1.0, pick)):
                difference = difference + sign * ((side[:, :split] * count[:, None]).T @ side[:, split:]).ravel()
    with np.errstate(over="ignore", invalid="ignore"):
        bound, difference = bound * scaling.magnitude, difference * scaling.magnitude
    if not (np.isfinite(bound) and np.isfinite(difference).all()):
        raise SelectionError(
            "expected distances that float64 can hold, got larger ones: divide the input by 1e100", code="overflow"
        )
    return bound, difference


def random_bound_of(
    points: ClassPoints, distinct: np.ndarray, count: int, scaling: Scaling, *, rng: np.random.Generator
) -> float:
    """Approximate L of `count` of the `distinct` rows (m,) at random: the mean distance of a sample of the other rows,
    times their weight. The picks are left out: their distances are known to be 0, and a sample would add noise."""
    values, rows, weight, split = points
    if count >= len(distinct):
        return 0.0
    picks = rng.permutation(distinct)[:count]
    size = min(max(_CONTROL_NUMBERS // (count * values.shape[1]), _CONTROL_ROWS[0]), _CONTROL_ROWS[1])
    others = np.flatnonzero(~np.isin(rows, picks))
    sample = rng.permutation(others)[:size]
    point, counts = values[rows[sample]].astype(np.float64) * scaling.shrink, weight[sample]
    nearest = np.full(len(sample), np.inf)
    for part in row_blocks(count, len(sample) * values.shape[1]):
        pick = values[picks[part]].astype(np.float64) * scaling.shrink
        np.minimum(nearest, _squared_distances(point, pick, split).min(axis=1), out=nearest)
    with np.errstate(over="ignore"):
        total = float(counts.sum())
        mean = float(counts @ np.sqrt(nearest)) / total if total > 0 else 0.0
        return mean * float(weight[others].sum()) * scaling.magnitude


def _squared_distances(point: np.ndarray, pick: np.ndarray, split: int | None) -> np.ndarray:
    """Between every row of one and every row of the other; of outer products, from their factors."""
    if split is None or split == point.shape[1]:
        squared: np.ndarray = ((point[:, None] - pick) ** 2).sum(axis=2)
        return squared
    g, h, g_pick, h_pick = point[:, :split], point[:, split:], pick[:, :split], pick[:, split:]
    norms = (g**2).sum(axis=1) * (h**2).sum(axis=1), (g_pick**2).sum(axis=1) * (h_pick**2).sum(axis=1)
    return np.maximum(norms[0][:, None] + norms[1] - 2.0 * (g @ g_pick.T) * (h @ h_pick.T), 0.0)


def _outer_product_distance(point: np.ndarray, pick: np.ndarray, split: int) -> np.ndarray:
    """|g h' - g* h*'| of each row, from its factors (see `vectors`)."""
    apart = (point - pick) ** 2
    dg, dh = apart[:, :split].sum(axis=1), apart[:, split:].sum(axis=1)
    g, h = (point[:, :split] ** 2).sum(axis=1), (point[:, split:] ** 2).sum(axis=1)
    g_pick, h_pick = (pick[:, :split] ** 2).sum(axis=1), (pick[:, split:] ** 2).sum(axis=1)
    squared = dg * (h + h_pick) / 2 + dh * (g + g_pick) / 2 - dg * dh / 2 + (g - g_pick) * (h - h_pick) / 2
    return np.sqrt(np.maximum(squared, 0.0))


def length(vector: np.ndarray) -> float:
    """|vector|, also where its square would be beyond float64."""
    exponent = int(np.frexp(np.abs(vector).max())[1])
    return float(np.ldexp(np.linalg.norm(np.ldexp(vector, -exponent)), exponent))
