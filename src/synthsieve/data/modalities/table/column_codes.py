"""The encoding of one column as network input, and its inverse: one class per column type.

A code is fitted on training rows. A number's block is (score, one slot for each state), where a state is `missing` or a
frequent value (spike), such as the 0 of a capital gain; without a state the score is the cell. A category's block is
one slot for each of its most frequent values, one slot shared by all others, and one for missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri

MAX_KNOTS = 256
SPIKE_SHARE = 0.05  # of the rows; a value as frequent as this is a state
MIN_AT_SPIKE = 3  # rows, so that not every value of a small table is a state
MAX_SPIKES = 20
MAX_SLOTS = 100
SHARED_DEPTH = 0.1  # a rare category's slot is 1 - SHARED_DEPTH position, its position among the rare ones
DATE_STEPS = (86_400, 3_600, 60, 1, 1e-3, 1e-6)  # seconds
DATE_UNIT = re.compile(r"\w+\[(s|ms|us|ns)\b")
UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Code(Protocol):
    """The map of one column to its block of network inputs."""

    @property
    def size(self) -> int:
        """The number of network inputs; 0 for a constant column."""
        ...

    def encode(self, cells: np.ndarray) -> np.ndarray:
        """float64 (n,), NaN = missing -> (n, size)."""
        ...

    def decode(self, block: np.ndarray) -> np.ndarray:
        """(n, size), ones and zeros or probabilities in the slots -> float64 (n,)."""
        ...

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class FixedCode:
    """A column that is constant in the training rows, or missing throughout (NaN)."""

    value: float

    @property
    def size(self) -> int:
        return 0

    def encode(self, cells: np.ndarray) -> np.ndarray:
        return np.zeros((len(cells), 0))

    def decode(self, block: np.ndarray) -> np.ndarray:
        return np.full(len(block), self.value)

    def to_json(self) -> dict[str, Any]:
        return {"code": "fixed", "value": None if np.isnan(self.value) else self.value}


@dataclass(frozen=True, eq=False)
class NumberCode:
    """Numbers as normal scores of their rank among the training rows; frequent values and missing as states.

    score(v) = Phi^-1((rows below v + half of those at v) / rows) at the knots, linear between them: monotone, with an
    exact inverse within the range of the training rows, to which other values are clipped.

    Attributes:
        knots: float64 (k,), distinct values of training rows, ascending.
        scores: float64 (k,), ascending.
        spikes: float64 (s,), values that are states.
        missing: whether missing is a state (some training row is missing). Else a missing cell gets score 0.
        continuous: whether training rows have other values than the spikes.
        decimals: digits to which decoded values are rounded; None: not rounded.
        step: decoded values are first rounded to multiples of it, such as the days of a timestamp; 1: not rounded.
    """

    knots: np.ndarray
    scores: np.ndarray
    spikes: np.ndarray
    missing: bool
    continuous: bool
    decimals: int | None
    step: float = 1.0

    @classmethod
    def fit(cls, cells: np.ndarray, decimals: int | None, step: float = 1.0) -> NumberCode:
        known = cells[~np.isnan(cells)]
        values, counts = np.unique(known, return_counts=True)
        ranks = (np.cumsum(counts) - 0.5 * counts) / len(known)
        often = np.argsort(-counts, kind="stable")[:MAX_SPIKES]
        fewest = max(SPIKE_SHARE * len(cells), MIN_AT_SPIKE)
        spikes = np.sort(values[often[counts[often] >= fewest]]) if len(values) > 1 else values
        kept = _spread(ranks)
        missing = len(known) < len(cells)
        return cls(values[kept], ndtri(ranks[kept]), spikes, missing, len(spikes) < len(values), decimals, step)

    @property
    def size(self) -> int:
        return 1 + int(self.missing) + len(self.spikes)

    @property
    def state_scores(self) -> tuple[float, ...]:
        """The score of each state: 0 for missing, then those of the spikes."""
        return (0.0,) * self.missing + tuple(self._score(self.spikes).tolist())

    def encode(self, cells: np.ndarray) -> np.ndarray:
        missing = np.isnan(cells)
        values = np.where(missing, self.knots[0], cells)
        if not self.continuous:
            values = self.spikes[np.abs(self._score(values)[:, None] - self._score(self.spikes)).argmin(axis=1)]
        block = np.zeros((len(cells), self.size))
        block[:, 0] = np.where(missing, 0.0, self._score(values))
        if self.missing:
            block[:, 1] = missing
        block[:, 1 + self.missing :] = (values[:, None] == self.spikes) & ~missing[:, None]
        return block

    def decode(self, block: np.ndarray) -> np.ndarray:
        states = block[:, 1:].astype(np.float64)
        none = 1 - states.sum(axis=1) if self.continuous else np.full(len(block), -np.inf)
        chosen = np.concatenate([none[:, None], states], axis=1).argmax(axis=1)
        # Scores as float32, like the blocks: the score of a knot decodes to exactly that knot.
        values = np.interp(block[:, 0], self.scores.astype(np.float32), self.knots)
        if self.step != 1:
            values = np.rint(values / self.step) * self.step
        if self.decimals is not None:
            values = np.clip(np.round(values, self.decimals), self.knots[0], self.knots[-1])
        of_state = np.array([0.0, *[np.nan] * self.missing, *self.spikes])
        return np.where(chosen == 0, values, of_state[chosen])

    def to_json(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in ("knots", "scores", "spikes")}
        flags = {"missing": self.missing, "continuous": self.continuous, "decimals": self.decimals}
        return {"code": "number", **arrays, **flags, "step": self.step}

    def _score(self, values: np.ndarray) -> np.ndarray:
        return np.interp(values, self.knots, self.scores)


@dataclass(frozen=True, eq=False)
class CategoryCode:
    """Categories as slots: the most frequent of the training rows, then one for all others, then one for missing.

    In the shared slot a rare category has the value 1 - 0.1 position, where each rare category occupies an interval of
    [0, 1] as long as its share of the rows: a uniform position decodes to each with its frequency. A category that is
    not in the training rows, or a missing cell if none is missing there, is all zeros.

    Attributes:
        kept: int64 (k,), category indices with their own slot, in the order of the schema.
        rare: int64 (r,), category indices that share a slot, from the rarest to the most frequent.
        edges: float64 (r + 1,), from 0 to 1: the ends of the intervals of the rare ones; empty without them.
        missing: whether missing has a slot.
    """

    kept: np.ndarray
    rare: np.ndarray
    edges: np.ndarray
    missing: bool

    @classmethod
    def fit(cls, cells: np.ndarray) -> CategoryCode:
        known = cells[~np.isnan(cells)].astype(np.int64)
        values, counts = np.unique(known, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        rare = order[MAX_SLOTS:][::-1]
        edges = np.concatenate([[0.0], np.cumsum(counts[rare]) / counts[rare].sum()]) if len(rare) else np.empty(0)
        return cls(np.sort(values[order[:MAX_SLOTS]]), values[rare], edges, len(known) < len(cells))

    @property
    def size(self) -> int:
        return len(self.kept) + (len(self.rare) > 0) + int(self.missing)

    @property
    def shared(self) -> int:
        """The slot of the rare categories; -1 without them."""
        return len(self.kept) if len(self.rare) else -1

    def encode(self, cells: np.ndarray) -> np.ndarray:
        missing = np.isnan(cells)
        index = np.where(missing, -1, cells).astype(np.int64)
        block = np.zeros((len(cells), self.size))
        block[:, : len(self.kept)] = index[:, None] == self.kept
        if len(self.rare):
            order = np.argsort(self.rare)
            at = order[np.searchsorted(self.rare, index, sorter=order).clip(max=len(order) - 1)]
            middle = (self.edges[:-1] + self.edges[1:]) / 2
            block[:, self.shared] = np.where(self.rare[at] == index, 1 - SHARED_DEPTH * middle[at], 0.0)
        if self.missing:
            block[:, -1] = missing
        return block

    def decode(self, block: np.ndarray) -> np.ndarray:
        chosen = block.argmax(axis=1)
        of_slot = np.concatenate([self.kept, [0] if len(self.rare) else [], [np.nan] if self.missing else []])
        values = of_slot[chosen]
        if len(self.rare):
            position = (1 - block[:, self.shared].astype(np.float64)) / SHARED_DEPTH
            at = np.searchsorted(self.edges, position, side="right") - 1
            values = np.where(chosen == self.shared, self.rare[at.clip(0, len(self.rare) - 1)], values)
        return values.astype(np.float64)

    def to_json(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in ("kept", "rare", "edges")}
        return {"code": "category", **arrays, "missing": self.missing}


def fit_code(cells: np.ndarray, *, is_category: bool, decimals: int | None = None, step: float = 1.0) -> Code:
    """The code of a column, fitted on the cells of training rows: float64 (n,), n at least 1."""
    known = cells[~np.isnan(cells)]
    if not len(known) or (len(known) == len(cells) and (known == known[0]).all()):
        return FixedCode(float(known[0]) if len(known) else float("nan"))
    return CategoryCode.fit(cells) if is_category else NumberCode.fit(cells, decimals, step)


def read_code(value: dict[str, Any]) -> Code:
    """The code from `to_json`; KeyError, TypeError or ValueError if it is damaged."""
    if value["code"] == "fixed":
        return FixedCode(float("nan") if value["value"] is None else float(value["value"]))
    if value["code"] == "category":
        kept, rare = (np.asarray(value[name], dtype=np.int64) for name in ("kept", "rare"))
        edges = np.asarray(value["edges"], dtype=np.float64)
        if kept.ndim != 1 or (len(edges) != len(rare) + 1 if len(rare) else len(edges) != 0) or not len(kept):
            raise ValueError("inconsistent slots of a category")
        return CategoryCode(kept, rare, edges, bool(value["missing"]))
    knots, scores, spikes = (np.asarray(value[name], dtype=np.float64) for name in ("knots", "scores", "spikes"))
    rising = len(knots) and len(knots) == len(scores) and (np.diff(knots) > 0).all() and (np.diff(scores) > 0).all()
    if value["code"] != "number" or not rising or not np.isfinite([*knots, *scores, *spikes]).all():
        raise ValueError("the knots of a number must be finite and ascending")
    decimals = None if value["decimals"] is None else int(value["decimals"])
    step = float(value.get("step", 1.0))
    if not 0 < step < np.inf:
        raise ValueError(f"the step of a number must be positive, not {step}")
    return NumberCode(knots, scores, spikes, bool(value["missing"]), bool(value["continuous"]), decimals, step)


def _spread(ranks: np.ndarray) -> np.ndarray:
    """Indices of at most `MAX_KNOTS` ranks (k,), evenly spread, the first and the last among them."""
    if len(ranks) <= MAX_KNOTS:
        return np.arange(len(ranks))
    even = np.searchsorted(ranks, np.linspace(0, 1, MAX_KNOTS)).clip(max=len(ranks) - 1)
    return np.unique([0, *even, len(ranks) - 1])


def date_step(counts: np.ndarray, arrow: str) -> float:
    """The longest of a day, an hour, ... of which every count is a multiple, in the unit of the counts; 1 if none.

    `counts` (n,) are dates as `cells` counts them, of the Arrow type `arrow`.
    """
    unit = DATE_UNIT.match(arrow)
    if unit is None or not len(counts):
        return 1.0
    per_second = UNITS_PER_SECOND["us" if arrow.startswith("timestamp[ns") else unit[1]]
    steps = [float(round(seconds * per_second)) for seconds in DATE_STEPS if seconds * per_second >= 1]
    return next((step for step in steps if not (counts % step).any()), 1.0)
