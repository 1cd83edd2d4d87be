"""Which samples are shown, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from synthsieve.entropy import Reason
from synthsieve.gallery.arguments import Asked
from synthsieve.review.fate import Fate
from synthsieve.review.pool_view import PoolView
from synthsieve.review.scores import NOBODY


class Status(StrEnum):
    """What became of a sample. Rejected are those that the filter or a person threw out; marked those of a person."""

    ALL = "all"
    SELECTED = "selected"
    KEPT = "kept"
    REJECTED = "rejected"
    MARKED = "marked"


class Verdict(StrEnum):
    """Whether the judge gives the class asked for."""

    ALL = "all"
    AGREES = "agrees"
    DISAGREES = "disagrees"


class Order(StrEnum):
    """What samples are sorted by."""

    ENTROPY_BY_CLASS = "entropy_by_class"  # within each class, the classes in turn
    ENTROPY = "entropy"
    WEIGHT = "weight"
    RANK = "rank"
    DISTANCE = "distance"
    LOG_DENSITY = "log_density"
    ROW = "row"


@dataclass(frozen=True)
class Filter:
    """What a sample must be to be shown; None is no condition. Both ends of a range are within it."""

    classes: tuple[int, ...] | None = None
    lowest_entropy: float | None = None
    highest_entropy: float | None = None
    lowest_weight: float | None = None
    highest_weight: float | None = None
    status: Status = Status.ALL
    judge: Verdict = Verdict.ALL

    @classmethod
    def of(cls, asked: Asked, num_classes: int) -> Filter:
        """As a request tells it."""
        classes = asked.some("classes", num_classes)
        return cls(
            None if classes is None else tuple(classes.tolist()),
            asked.number("lowest_entropy"),
            asked.number("highest_entropy"),
            asked.number("lowest_weight"),
            asked.number("highest_weight"),
            asked.one_of("status", Status),
            asked.one_of("judge", Verdict),
        )

    def rows(self, view: PoolView, fate: Fate) -> np.ndarray:
        """Those that pass: int64, ascending."""
        passed = _of_status(self.status, fate)
        if self.classes is not None:
            passed &= np.isin(view.pool.y, self.classes)
        ranges = (
            (view.pool.entropy, self.lowest_entropy, self.highest_entropy),
            (fate.weight, self.lowest_weight, self.highest_weight),
        )
        for values, low, high in ranges:
            if low is not None:
                passed &= values >= low
            if high is not None:
                passed &= values <= high
        if self.judge is not Verdict.ALL:
            agrees = view.scores.judged == view.pool.y
            asked = view.scores.judged != NOBODY
            passed &= asked & (agrees if self.judge is Verdict.AGREES else ~agrees)
        return np.flatnonzero(passed)


def _of_status(status: Status, fate: Fate) -> np.ndarray:
    if status is Status.SELECTED:
        return fate.weight > 0
    if status is Status.KEPT:
        return fate.kept
    if status is Status.REJECTED:
        return ~fate.kept
    if status is Status.MARKED:
        return fate.reason == Reason.BY_HAND
    return np.ones(len(fate.reason), dtype=bool)


def in_order(rows: np.ndarray, order: Order, view: PoolView, fate: Fate, *, descending: bool) -> np.ndarray:
    """`rows` sorted; equal ones stay in the order of the pool, and those without a rank come last either way."""
    if order is Order.ROW:
        return rows[::-1] if descending else rows
    if order is Order.ENTROPY_BY_CLASS:
        return _classes_in_turn(in_order(rows, Order.ENTROPY, view, fate, descending=descending), view.pool.y)
    columns = {
        Order.ENTROPY: view.pool.entropy,
        Order.WEIGHT: fate.weight,
        Order.RANK: fate.rank,
        Order.DISTANCE: view.scores.nearest_distance,
        Order.LOG_DENSITY: view.scores.log_density,
    }
    values = columns[order][rows]
    last = values < 0 if order is Order.RANK else ~np.isfinite(values)
    return rows[np.lexsort((-values if descending else values, last))]


def _classes_in_turn(rows: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The first of each class, then the second of each, and so on; each class keeps its order."""
    by_class = np.argsort(y[rows], kind="stable")
    counts = np.bincount(y[rows])
    turn = np.empty(len(rows), dtype=np.int64)
    turn[by_class] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows[np.lexsort((y[rows], turn))]
