"""What each class is to reach, from one budget over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.selection.options import SelectionOptions


class Location(Protocol):
    """The state of a selection: `FacilityLocation` or `DenseLocation`."""

    picks: list[int]

    @property
    def upper_bound(self) -> float: ...


@dataclass(frozen=True)
class Target:
    """When to stop: after `count` picks, or as soon as L is at most `bound`, whichever comes first.

    At least one point is picked, however large the bound.
    """

    count: int
    bound: float = 0.0

    def reached(self, location: Location) -> bool:
        near_enough = self.bound > 0.0 and bool(location.picks) and location.upper_bound <= self.bound
        return near_enough or len(location.picks) >= self.count


def class_targets(options: SelectionOptions, sizes: np.ndarray, weights: np.ndarray) -> list[Target]:
    """A target for each class, of `sizes` (c,) rows with total sample weights `weights` (c,)."""
    if options.epsilon is not None:
        shares = weights / weights.sum() if weights.sum() > 0 else np.full(len(sizes), 1.0 / len(sizes))
        parts = zip(sizes, shares, strict=True)  # a class without weight adds nothing to L: one pick will do
        return [Target(int(size), options.epsilon * share) if share > 0 else Target(1) for size, share in parts]
    if isinstance(options.budget, int | np.integer):
        if options.budget < len(sizes):
            raise SelectionError(
                f"expected a budget of at least one pick for each of {len(sizes)} classes, got {options.budget}: "
                "raise it",
                code="budget",
            )
        return [Target(int(count)) for count in share_out(min(int(options.budget), int(sizes.sum())), sizes)]
    return [Target(max(1, int(np.floor(options.budget * size + 0.5)))) for size in sizes]


def share_out(count: int, sizes: np.ndarray) -> np.ndarray:
    """`count` picks over classes in proportion to `sizes`, at least one each, by largest remainder."""
    ideal = np.maximum(1.0, count * sizes / sizes.sum())
    shares = np.minimum(np.floor(ideal).astype(np.int64), sizes)
    missing = count - int(shares.sum())
    step = 1 if missing > 0 else -1
    while missing:  # each round adds, or removes, one of each class that can, those furthest from their ideal first
        able = np.flatnonzero(shares < sizes if step > 0 else shares > 1)
        furthest = able[np.argsort((shares[able] - ideal[able]) * step, kind="stable")][: abs(missing)]
        shares[furthest] += step
        missing -= step * len(furthest)
    return shares
