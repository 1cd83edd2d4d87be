"""Picks to look at while the true ones are being chosen: milliseconds where facility location takes seconds.

Where the classifier is nearly sure, p - y points towards the runner-up class, and its length is all that varies. So
each class is laid out on a line, by runner-up and then by length, and cut into as many cells as picks are wanted. The
total distance to k points on a line is least where their density goes with the square root of the samples' own: cells
that hold equal sums of the roots of the gaps have that density.
"""

from __future__ import annotations

import numpy as np

from synthsieve.config import AugmentationSettings, GradientSource
from synthsieve.entropy import Survivors
from synthsieve.review.fate import Fate
from synthsieve.review.pool_view import PoolView
from synthsieve.selection.gradients import residuals_of_logits


def quick_fate(view: PoolView, survivors: Survivors, settings: AugmentationSettings) -> Fate:
    """A fate with as many picks and weights as the true one will have, and others among them; nothing is certified."""
    kept = np.flatnonzero(survivors.kept)
    y = view.pool.y[kept]
    logits = view.scores.logits_z if settings.gradients is GradientSource.DRAWN else view.scores.logits_x
    residuals = residuals_of_logits(logits[kept], y)
    weight, rank = np.zeros(len(view)), np.full(len(view), -1, dtype=np.int64)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        count = max(1, int(np.floor(settings.coreset_fraction * len(rows) + 0.5)))
        picks, weights = picks_on_a_line(residuals[rows], int(label), count)
        heaviest_first = np.argsort(-weights, kind="stable")
        chosen = kept[rows[picks[heaviest_first]]]
        weight[chosen], rank[chosen] = weights[heaviest_first], np.arange(len(chosen))
    return Fate(survivors.reason, weight, rank, survivors.ceiling, settings, {})


def picks_on_a_line(residuals: np.ndarray, label: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` of the rows of `residuals` (n, num_classes), all of class `label`, and how many rows each stands for."""
    others = residuals.copy()
    others[:, label] = -np.inf
    towards, length = others.argmax(axis=1), np.linalg.norm(residuals, axis=1)
    line = np.lexsort((length, towards))
    gaps = np.abs(np.diff(length[line]))
    gaps[np.diff(towards[line]) != 0] = np.median(length)  # between two runners-up
    places = np.concatenate([[0.0], np.cumsum(np.sqrt(gaps))])
    places = places if places[-1] > 0 else np.arange(len(line), dtype=np.float64)
    picks = _one_a_cell(places, min(count, len(line)))
    middles = np.searchsorted(places, (places[picks][1:] + places[picks][:-1]) / 2)
    borders = np.concatenate([[0], np.clip(middles, picks[:-1] + 1, picks[1:]), [len(line)]])
    return line[picks], np.diff(borders).astype(np.float64)


def _one_a_cell(places: np.ndarray, count: int) -> np.ndarray:
    """The middle of each of `count` equal cells of `places` (n,), ascending; empty cells' picks are spread evenly."""
    end = places[-1]
    cells = np.minimum((places * (count / end)).astype(np.int64), count - 1) if end > 0 else np.zeros(1, dtype=np.int64)
    starts = np.flatnonzero(np.diff(cells, prepend=-1))
    picks = (starts + np.append(starts[1:], len(places)) - 1) // 2
    free = np.setdiff1d(np.arange(len(places)), picks)
    spread = np.linspace(0, len(free) - 1, count - len(picks)).astype(np.int64) if len(free) else free
    return np.sort(np.concatenate([picks, free[spread]]))
