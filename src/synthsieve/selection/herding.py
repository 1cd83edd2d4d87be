"""Kernel herding: points whose kernel mean follows that of all target points (Chen, Welling and Smola, 2010)."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

MAX_TARGET = 5_000  # target points that are used, evenly spaced
WIDTH_POINTS = 300  # points of each side that the width is measured on
BLOCK = 2_048  # rows whose kernel values are held at a time


def herd(points: np.ndarray, target: np.ndarray, count: int) -> np.ndarray:
    """Indices (count,) of points, in the order they are picked.

    Pick t + 1 maximizes mean_j k(x, target_j) - sum_{i <= t} k(x, picked_i) / (t + 1): near many targets and far from
    earlier picks. k is exp(-|x - y|^2 / w^2), w the median distance. Equal scores give the first row.

    Args:
        points: (n, d), to pick from.
        target: (m, d), whose distribution the picks should follow; at most 5,000 of them are used.
        count: number of picks, at most n.
    """
    points, target = np.asarray(points, dtype=np.float64), _spaced(np.asarray(target, dtype=np.float64), MAX_TARGET)
    width = _median_distance(points, target)
    score = np.concatenate(
        [
            np.exp(-cdist(points[start : start + BLOCK], target, "sqeuclidean") / width**2).mean(axis=1)
            for start in range(0, len(points), BLOCK)
        ]
    )
    picked, among = np.empty(count, dtype=np.int64), np.zeros(len(points))
    free = np.ones(len(points), dtype=bool)
    for step in range(count):
        picked[step] = best = int(np.where(free, score - among / (step + 1), -np.inf).argmax())
        free[best] = False
        among += np.exp(-cdist(points, points[best : best + 1], "sqeuclidean")[:, 0] / width**2)
    return picked


def _median_distance(points: np.ndarray, target: np.ndarray) -> float:
    """Between some points and targets; 1 where all are equal."""
    some = np.concatenate([_spaced(points, WIDTH_POINTS), _spaced(target, WIDTH_POINTS)])
    return float(np.median(cdist(some, some))) or 1.0


def _spaced(points: np.ndarray, limit: int) -> np.ndarray:
    """At most `limit` rows, evenly spaced."""
    return points[np.linspace(0, len(points) - 1, min(len(points), limit)).astype(np.int64)]
