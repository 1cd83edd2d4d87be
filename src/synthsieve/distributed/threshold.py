"""The exact threshold of a fraction to keep, over rows that never meet in one memory.

The order of entropies is that of their bits. Each pass over the blocks counts the next sixteen bits of those that
still may be the m-th lowest, so four passes find it exactly. Among rows of the very same entropy the earlier are kept,
as `entropy.filter_by_entropy` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from synthsieve.distributed.engine import Engine
from synthsieve.distributed.job import Job, block_name
from synthsieve.distributed.scoring import counts
from synthsieve.entropy import Reason

_BITS = 16
_PASSES = 64 // _BITS
_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True)
class Threshold:
    """Who is kept of a group (a class, or everybody).

    Attributes:
        key: rows whose entropy has lower bits are kept; None: all are.
        ties: how many rows of exactly these bits are kept in each block.
    """

    key: int | None
    ties: tuple[int, ...] = ()


def keys_of(entropy: np.ndarray) -> np.ndarray:
    """uint64 (n,), ordered as the numbers are; -0.0 counts as 0.0."""
    bits = (np.asarray(entropy, dtype=np.float64) + 0.0).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def thresholds(job: Job, engine: Engine, sizes: np.ndarray, eligible: np.ndarray) -> list[Threshold]:
    """A threshold for each group, of `sizes` (g,) rows of which `eligible` (g,) may be kept at all."""
    fraction = job.sieving.keep_fraction
    assert fraction is not None
    wanted = np.maximum(1, np.ceil(fraction * sizes - 1e-9)).astype(np.int64)
    rank = {group: int(wanted[group]) for group in range(len(sizes)) if wanted[group] < eligible[group]}
    prefix = dict.fromkeys(rank, 0)
    for level in range(_PASSES if rank else 0):
        for _ in engine.blocks(partial(count_digits, job, level, prefix), len(job.blocks)):
            pass
        group, digit, times = _merged(job)
        for one in rank:
            mine = group == one
            below = np.concatenate([[0], np.cumsum(times[mine])])
            place = int(np.searchsorted(below, rank[one], side="left")) - 1
            rank[one] -= int(below[place])
            prefix[one] = prefix[one] << _BITS | int(digit[mine][place])
    found = {one: Threshold(prefix[one], _first(rank[one], _ties(job, one, prefix[one]))) for one in rank}
    return [found.get(one, Threshold(None)) for one in range(len(sizes))]


def count_digits(job: Job, level: int, prefix: dict[int, int], number: int) -> dict[str, Any]:
    """Leave, for each group, how often each value of the next bits occurs among rows that begin with its prefix."""
    group, key = _groups_and_keys(job, number)
    shift = np.uint64(64 - _BITS * level)
    digit = (key >> np.uint64(64 - _BITS * (level + 1))) & np.uint64((1 << _BITS) - 1)
    found = []
    for one, begins in prefix.items():
        rows = group == one
        if level:
            rows &= key >> shift == np.uint64(begins)
        values, times = np.unique(digit[rows], return_counts=True)
        found.append(np.stack([np.full(len(values), one), values.astype(np.int64), times]))
    job.work.save(f"digits/{number:06d}", counts=np.concatenate(found, axis=1))
    return {}


def sift(job: Job, found: list[Threshold], number: int) -> dict[str, Any]:
    """Reject whoever lies above the threshold of their group; return the counts that are now final."""
    label, entropy, reason, other = (
        np.array(job.work.load(block_name(number), key)) for key in ("label", "entropy", "reason", "other")
    )
    group, keys = label if job.sieving.keep_per_class else np.zeros_like(label), keys_of(entropy)
    eligible = reason == Reason.KEPT
    for one, threshold in enumerate(found):
        if threshold.key is not None:
            rows = np.flatnonzero(eligible & (group == one))
            limit = np.uint64(threshold.key)
            reason[rows[keys[rows] > limit]] = Reason.HIGH_ENTROPY
            reason[rows[keys[rows] == limit][threshold.ties[number] :]] = Reason.HIGH_ENTROPY
    job.work.save(block_name(number), reason=reason)
    return counts(label, reason, entropy, other)


def _groups_and_keys(job: Job, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the rows that may be kept."""
    label, entropy, reason = (job.work.load(block_name(number), key) for key in ("label", "entropy", "reason"))
    rows = reason == Reason.KEPT
    group = label[rows] if job.sieving.keep_per_class else np.zeros(int(rows.sum()), dtype=np.int32)
    return group, keys_of(entropy[rows])


def _digits(job: Job, number: int) -> np.ndarray:
    return np.array(job.work.load(f"digits/{number:06d}", "counts"))


def _merged(job: Job) -> np.ndarray:
    """The counts of all blocks together: group, digit and how often, int64 (3, m), sorted by group and digit."""
    merged = np.zeros((3, 0), dtype=np.int64)
    for number in range(len(job.blocks)):
        group, digit, times = np.concatenate([merged, _digits(job, number)], axis=1)
        pairs, which = np.unique(group << _BITS | digit, return_inverse=True)
        totals = np.zeros(len(pairs), dtype=np.int64)
        np.add.at(totals, which, times)
        merged = np.stack([pairs >> _BITS, pairs & (1 << _BITS) - 1, totals])
    return merged


def _ties(job: Job, one: int, key: int) -> list[int]:
    """How many rows of a group have exactly these bits, block by block, from the counts of the last pass."""
    found = []
    for number in range(len(job.blocks)):
        group, digit, times = _digits(job, number)
        found.append(int(times[(group == one) & (digit == key & (1 << _BITS) - 1)].sum()))
    return found


def _first(count: int, available: list[int]) -> tuple[int, ...]:
    """The first `count` of what is available, block by block."""
    taken = []
    for number in available:
        taken.append(min(number, count))
        count -= taken[-1]
    return tuple(taken)
