"""Which samples are shown, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from synthsieve.evaluation.predict import NO_ORACLE
from synthsieve.results.gallery.query import QueryParams
from synthsieve.results.pool_view import PoolView
from synthsieve.selection.entropy import Reason
from synthsieve.training.pool import Outcomes


class Status(StrEnum):
    """What a selection did with a sample. `rejected` includes those rejected by hand."""

    ALL = "all"
    SELECTED = "selected"
    KEPT = "kept"
    REJECTED = "rejected"
    BY_HAND = "by_hand"


class Agreement(StrEnum):
    """Whether the oracle predicts the sample's label."""

    ALL = "all"
    AGREES = "agrees"
    DISAGREES = "disagrees"


class Order(StrEnum):
    """What samples are sorted by."""

    ENTROPY_BY_CLASS = "entropy_by_class"  # sorted within each class, alternating between classes
    ENTROPY = "entropy"
    WEIGHT = "weight"
    RANK = "rank"
    DISTANCE = "distance"
    LOG_DENSITY = "log_density"
    ROW = "row"


@dataclass(frozen=True)
class Filter:
    """Conditions on the samples that are shown; None is no condition. Ranges include both ends."""

    classes: np.ndarray | None
    entropy: tuple[float | None, float | None]
    weight: tuple[float | None, float | None]
    status: Status
    oracle: Agreement

    @classmethod
    def from_query(cls, query: QueryParams, num_classes: int) -> Filter:
        return cls(
            query.rows("classes", num_classes) if query.values.get("classes") else None,
            (query.number("lowest_entropy"), query.number("highest_entropy")),
            (query.number("lowest_weight"), query.number("highest_weight")),
            query.one_of("status", Status),
            query.one_of("oracle", Agreement),
        )

    def rows(self, view: PoolView, outcomes: Outcomes) -> np.ndarray:
        """Rows that meet all conditions: int64, ascending."""
        passed = {
            Status.ALL: np.ones(len(view), dtype=bool),
            Status.SELECTED: outcomes.weight > 0,
            Status.KEPT: outcomes.kept,
            Status.REJECTED: ~outcomes.kept,
            Status.BY_HAND: outcomes.reason == Reason.BY_HAND,
        }[self.status]
        if self.classes is not None:
            passed &= np.isin(view.pool.y, self.classes)
        for values, (low, high) in ((view.pool.entropy, self.entropy), (outcomes.weight, self.weight)):
            if low is not None:
                passed &= values >= low
            if high is not None:
                passed &= values <= high
        if self.oracle is not Agreement.ALL:
            predicted = view.pool.oracle_class
            agrees = predicted == view.pool.y
            passed &= (predicted != NO_ORACLE) & (agrees == (self.oracle is Agreement.AGREES))
        return np.flatnonzero(passed)


def in_order(rows: np.ndarray, order: Order, view: PoolView, outcomes: Outcomes, *, descending: bool) -> np.ndarray:
    """`rows` sorted, stably; rows without a rank or with a non-finite value come last in both directions."""
    if order is Order.ROW:
        return rows[::-1] if descending else rows
    if order is Order.ENTROPY_BY_CLASS:
        return _alternate_classes(in_order(rows, Order.ENTROPY, view, outcomes, descending=descending), view.pool.y)
    columns = {
        Order.ENTROPY: view.pool.entropy,
        Order.WEIGHT: outcomes.weight,
        Order.RANK: outcomes.rank,
        Order.DISTANCE: view.nearest_distance,
        Order.LOG_DENSITY: view.pool.log_density,
    }
    values = columns[order][rows]
    last = values < 0 if order is Order.RANK else ~np.isfinite(values)
    return rows[np.lexsort((-values if descending else values, last))]


def _alternate_classes(rows: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The first row of each class, then the second of each, and so on; each class keeps its order."""
    by_class = np.argsort(y[rows], kind="stable")
    counts = np.bincount(y[rows])
    position = np.empty(len(rows), dtype=np.int64)
    position[by_class] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows[np.lexsort((y[rows], position))]
