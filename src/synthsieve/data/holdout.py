"""Rows held out for validation or test: stratified by class, whole groups at a time where there are groups."""

from __future__ import annotations

import numpy as np

from synthsieve.data.dataset import UNLABELED
from synthsieve.errors import DataError


def hold_out(
    y: np.ndarray,
    groups: np.ndarray | None,
    free: np.ndarray,
    *,
    fraction: float,
    part: str,
    generator: np.random.Generator,
) -> np.ndarray:
    """Sorted indices of about `fraction` of the free labelled rows, each class in proportion.

    Without groups the size is exact: floor(fraction x rows), at least 1. With groups, whole groups are taken while
    they fit, and it is as near as the groups allow.

    Args:
        y: (n,) labels, -1 = unlabelled; unlabelled rows are never held out.
        groups: (n,) or None.
        free: bool (n,), the rows that may be taken.
        part: what the rows are for, in errors.
    """
    rows = np.flatnonzero(free & (y != UNLABELED))
    if fraction == 0 or len(rows) == 0:
        return np.zeros(0, dtype=np.int64)
    quota = stratified_quota(np.bincount(y[rows]), fraction)
    if groups is None:
        order = generator.permutation(rows)
        order = order[np.argsort(y[order], kind="stable")]  # class by class, in random order within each
        of_class = y[order]
        first = np.cumsum(np.bincount(of_class)) - np.bincount(of_class)
        place = np.arange(len(order)) - first[of_class]
        return np.sort(order[place < quota[of_class]]).astype(np.int64)
    names, member = np.unique(groups[rows], return_inverse=True)
    table = np.zeros((len(names), len(quota)), dtype=np.int64)  # rows of each class in each group
    np.add.at(table, (member.reshape(-1), y[rows]), 1)
    chosen = choose_groups(table, quota, generator=generator)
    if not chosen.any():
        raise DataError(
            f"{part} needs a whole group of rows, but even the best of the {len(names)} groups is too large or would"
            f" take the last labels of a class: use more and smaller groups, or another {part}_fraction"
        )
    return np.sort(rows[chosen[member.reshape(-1)]]).astype(np.int64)


def stratified_quota(counts: np.ndarray, fraction: float) -> np.ndarray:
    """Rows to hold out of each class (num_classes,): in proportion, by largest remainder, one of each always left.

    sum = max(1, floor(fraction x sum(counts))), unless leaving one of each class allows fewer.
    """
    target = max(1, int(fraction * counts.sum() + 1e-9))
    exact = fraction * counts
    quota = np.minimum(np.floor(exact + 1e-9).astype(np.int64), np.maximum(counts - 1, 0))
    total = int(quota.sum())
    for c in np.argsort(-(exact - quota), kind="stable"):
        if total >= target:
            break
        if quota[c] < counts[c] - 1:
            quota[c] += 1
            total += 1
    return quota


def choose_groups(table: np.ndarray, quota: np.ndarray, *, generator: np.random.Generator) -> np.ndarray:
    """Which groups to hold out, bool (num_groups,).

    First, in random order, every group that fits into what is still wanted of every class; then, while it brings the
    counts nearer to the quota, the group that does so most. No class loses its last rows.
    """
    chosen = np.zeros(len(table), dtype=bool)
    wanted = quota.astype(np.int64).copy()
    most = np.maximum(table.sum(axis=0) - 1, 0)
    for g in generator.permutation(len(table)):
        if not wanted.any():
            break
        if (table[g] <= wanted).all():
            chosen[g] = True
            wanted -= table[g]
    while wanted.any():
        gain = np.abs(wanted).sum() - np.abs(wanted - table).sum(axis=1)
        leaves_some = (table[chosen].sum(axis=0) + table <= most).all(axis=1)
        gain[chosen | ~leaves_some] = 0
        best = int(np.argmax(gain))
        if gain[best] <= 0:
            break
        chosen[best] = True
        wanted -= table[best]
    return chosen
