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
            bound += float(count @ row_distances(point, pick, split))
            difference = difference + _weighted_sum(point, count, split) - _weighted_sum(pick, count, split)
    with np.errstate(over="ignore", invalid="ignore"):
        bound, difference = bound * scaling.magnitude, difference * scaling.magnitude
    if not (np.isfinite(bound) and np.isfinite(difference).all()):
        raise SelectionError(
            "expected distances that float64 can hold, got larger ones: divide the input by 1e100", code="overflow"
        )
    return bound, difference


class Capped(NamedTuple):
    """Weights (k,) of which none is above the cap, how many were, and what that adds to difference (d,) and bound."""

    weights: np.ndarray
    number: int
    difference: np.ndarray | float
    bound: float


def cap_weights(weights: np.ndarray, max_weight: float) -> np.ndarray:
    """Weights (k,) of at most `max_weight` times their mean, with the same sum: w_j = min(cap, factor w_j).

    The excess goes to the lighter ones in proportion to their weights; equally, where these are all 0.
    """
    total, cap = float(weights.sum()), max_weight * float(weights.mean())
    if not (weights > cap).any():
        return weights
    order = np.argsort(-weights, kind="stable")
    heavy = weights[order]
    remaining = total - cap * np.arange(len(heavy))  # if all before this one have the cap
    lighter = np.cumsum(heavy[::-1])[::-1]  # this one and all after it
    fits = heavy * remaining <= cap * lighter
    fits[-1] = True
    first = int(np.argmax(fits))
    share = heavy[first:] / lighter[first] if lighter[first] > 0 else 1.0 / (len(heavy) - first)
    capped = np.full(len(heavy), cap)
    capped[order[first:]] = np.minimum(remaining[first] * share, cap)
    return capped


def cap_class(
    points: ClassPoints, picks: np.ndarray, weights: np.ndarray, max_weight: float | None, scaling: Scaling
) -> Capped:
    """The weights of a class's picks (k,) within the cap; L grows by the length of the weighted sum's change."""
    if max_weight is None or not len(weights):
        return Capped(weights, 0, 0.0, 0.0)
    capped = cap_weights(weights, max_weight)
    number = int((weights > max_weight * weights.mean()).sum())
    if not number:
        return Capped(weights, 0, 0.0, 0.0)
    change = np.zeros(1)
    for part in row_blocks(len(picks), points.values.shape[1]):
        point = points.values[picks[part]].astype(np.float64) * scaling.shrink
        change = change + _weighted_sum(point, (weights - capped)[part], points.split)
    change = change * scaling.magnitude
    return Capped(capped, number, change, length(change))


def random_bound_of(
    points: ClassPoints, distinct: np.ndarray, count: int, scaling: Scaling, *, rng: np.random.Generator,
    earlier: np.ndarray,
) -> float:  # fmt: skip
    """Approximate L of `count` of the `distinct` rows (m,) at random, with the `earlier` picks (k,).

    It is the mean distance of a sample of the other rows, times their weight. The picks are left out: their distances
    are known to be 0, and a sample would add noise.
    """
    values, rows, weight, split = points
    if count >= len(distinct):
        return 0.0
    picks = rng.permutation(distinct)[:count]
    others = np.flatnonzero(~np.isin(rows, picks))
    picks = np.concatenate([picks, earlier])
    size = min(max(_CONTROL_NUMBERS // (len(picks) * values.shape[1]), _CONTROL_ROWS[0]), _CONTROL_ROWS[1])
    sample = rng.permutation(others)[:size]
    point, counts = values[rows[sample]].astype(np.float64) * scaling.shrink, weight[sample]
    nearest = np.full(len(sample), np.inf)
    for part in row_blocks(len(picks), len(sample) * values.shape[1]):
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


def _weighted_sum(points: np.ndarray, weight: np.ndarray, split: int | None) -> np.ndarray:
    """sum_i w_i g_i of points (m, d); of outer products, flattened."""
    if split is None or split == points.shape[1]:
        return np.asarray(weight @ points)
    return np.asarray(((points[:, :split] * weight[:, None]).T @ points[:, split:]).ravel())


def row_distances(point: np.ndarray, pick: np.ndarray, split: int | None) -> np.ndarray:
    """|g - g*| of each row (m,); |g h' - g* h*'| of outer products, from their factors (see `vectors`)."""
    if split is None or split == point.shape[1]:
        return np.asarray(np.linalg.norm(point - pick, axis=1))
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
