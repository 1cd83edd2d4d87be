"""Rows that lie far from their nearest neighbours, which are rejected before a selection."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from synthsieve.selection.kernels.blocks import row_blocks, rows_by_class
from synthsieve.selection.measure import row_distances

NEIGHBOURS = 10
# Neighbours are searched among at most so many random rows of a class.
MAX_CANDIDATES = 20_000
# Pairs of rows, or numbers of neighbours, that are held at a time: 8 MB of float64.
BLOCK = 2**20


def outliers(
    make: Callable[[np.ndarray], np.ndarray],
    labels: np.ndarray,
    fraction: float,
    *,
    split: int | None,
    rng: np.random.Generator,
) -> np.ndarray:
    """The `fraction` of each class, rounded down, that is furthest from its neighbours: row numbers (k,).

    Args:
        make: gives the points (m, d) of some rows (m,); from column `split` on, features of an outer product.
        labels: integers (n,). Among equal distances the later rows are outliers.
    """
    found = [np.empty(0, dtype=np.int32)]
    rows_of = rows_by_class(labels)[1]
    for rows, stream in zip(rows_of, rng.spawn(len(rows_of)), strict=True):
        count = min(int(fraction * len(rows) + 1e-9), len(rows) - 1)
        if count:
            order = np.argsort(neighbour_distance(make, rows, split=split, rng=stream), kind="stable")
            found.append(rows[order[-count:]])
    return np.concatenate(found)


def neighbour_distance(
    make: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, *, split: int | None, rng: np.random.Generator
) -> np.ndarray:
    """The mean distance of each of these ascending `rows` (m,) to the nearest others, up to a common factor: (m,).

    Products find the neighbours; the distances to them are then computed from the points in float64.
    """
    candidates = rows
    if len(rows) > MAX_CANDIDATES:
        candidates = np.sort(rng.choice(rows, MAX_CANDIDATES, replace=False))
    width = make(rows[:1]).shape[1]
    largest = np.max([np.abs(make(rows[part])).max(axis=0) for part in row_blocks(len(rows), width)], axis=0)
    scale = np.empty(width)  # no square overflows
    for factor in (slice(0, split), slice(width if split is None else split, width)):
        scale[factor] = max(float(largest[factor].max(initial=0.0)), 1e-300)
    others = make(candidates)
    dtype, others = others.dtype, others / scale
    centre = np.median(others, axis=0) if split is None else np.zeros(width)  # no outlier moves it
    others -= centre
    multiplied = others.astype(dtype, copy=False)
    number = min(NEIGHBOURS, len(rows) - 1)
    height = max(1, min(BLOCK // len(candidates), BLOCK // (number * width)))
    distance = np.empty(len(rows))
    for start in range(0, len(rows), height):
        some = rows[start : start + height]
        points = make(some) / scale - centre
        squared = _squared_distances(points.astype(dtype, copy=False), multiplied, split)
        place = np.minimum(np.searchsorted(candidates, some), len(candidates) - 1)
        itself = np.flatnonzero(candidates[place] == some)
        squared[itself, place[itself]] = np.inf
        near = np.argpartition(squared, number - 1, axis=1)[:, :number]
        apart = row_distances(np.repeat(points, number, axis=0), others[near.ravel()], split)
        distance[start : start + height] = np.sort(apart.reshape(near.shape), axis=1).mean(axis=1)
    return distance


def _squared_distances(points: np.ndarray, others: np.ndarray, split: int | None) -> np.ndarray:
    """Of every pair (m, k), except for what is the same for all others; by products, so rounding errors are larger."""
    if split is None:
        return np.einsum("ij,ij->i", others, others) - 2.0 * (points @ others.T)
    g, h, g_other, h_other = points[:, :split], points[:, split:], others[:, :split], others[:, split:]
    squared = (g_other**2).sum(axis=1) * (h_other**2).sum(axis=1) - 2.0 * (g @ g_other.T) * (h @ h_other.T)
    return np.asarray(squared)
