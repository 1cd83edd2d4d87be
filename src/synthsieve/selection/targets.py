"""What each class is to reach, from one budget over all of them."""

from __future__ import annotations

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.selection.budget import Budget
from synthsieve.selection.greedy import Target


def targets_of(budget: Budget, sizes: np.ndarray, weights: np.ndarray) -> list[Target]:
    """A target for each class, of `sizes` (c,) rows that together count `weights` (c,)."""
    if budget.bound is not None:
        shares = weights / weights.sum() if weights.sum() > 0 else np.full(len(sizes), 1.0 / len(sizes))
        parts = zip(sizes, shares, strict=True)  # a class without weight adds nothing to L: one pick will do
        return [Target(int(size), budget.bound * share) if share > 0 else Target(1) for size, share in parts]
    if budget.fraction is not None:
        return [Target(max(1, int(np.floor(budget.fraction * size + 0.5)))) for size in sizes]
    assert budget.count is not None
    if budget.count < len(sizes):
        raise SelectionError(
            f"expected a budget of at least one pick for each of {len(sizes)} classes, got {budget.count}: raise it"
        )
    return [Target(int(count)) for count in shared_out(min(budget.count, int(sizes.sum())), sizes)]


def shared_out(count: int, sizes: np.ndarray) -> np.ndarray:
    """`count` picks over classes in proportion to `sizes`, at least one each, by largest remainder."""
    ideal = np.maximum(1.0, count * sizes / sizes.sum())
    shares = np.minimum(np.floor(ideal).astype(np.int64), sizes)
    missing = count - int(shares.sum())
    step = 1 if missing > 0 else -1
    while missing:  # a round gives, or takes, one of each class that can, those furthest from their ideal first
        able = np.flatnonzero(shares < sizes if step > 0 else shares > 1)
        furthest = able[np.argsort((shares[able] - ideal[able]) * step, kind="stable")][: abs(missing)]
        shares[furthest] += step
        missing -= step * len(furthest)
    return shares
