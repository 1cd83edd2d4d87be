"""Equal rows are merged into one with a multiplicity, so that no duplicate is ever picked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synthsieve.selection.kernels.compiled import kernel


@dataclass(frozen=True)
class Distinct:
    """The first row of each group of equal rows, int32 (m,), ascending, and the group of each row, int32 (n,)."""

    rows: np.ndarray
    which: np.ndarray


def distinct_rows(points: np.ndarray, rows: np.ndarray) -> Distinct:
    """Find the distinct rows among `points[rows]`; -0.0 equals 0.0."""
    hashes = _hashes(points, rows)
    first = _first_equal(points, rows, hashes, np.argsort(hashes, kind="stable"))
    is_first = first == np.arange(len(rows))
    groups = (np.cumsum(is_first) - 1).astype(np.int32)
    return Distinct(rows[is_first].astype(np.int32), groups[first])


@kernel
def _hashes(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A 64-bit number for each row, equal for equal rows: a polynomial in the bits of its entries."""
    hashes = np.empty(len(rows), dtype=np.uint64)
    bits = np.empty(1)
    as_integer = bits.view(np.uint64)
    for place in range(len(rows)):
        mixed = np.uint64(1469598103934665603)
        for k in range(points.shape[1]):
            bits[0] = points[rows[place], k] + 0.0
            mixed = (mixed ^ as_integer[0]) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        hashes[place] = mixed
    return hashes


@kernel
def _first_equal(points: np.ndarray, rows: np.ndarray, hashes: np.ndarray, order: np.ndarray) -> np.ndarray:
    """For each row the place of the first equal one, searched among rows with the same hash, which are adjacent."""
    first = np.full(len(rows), -1, dtype=np.int32)
    start = 0
    while start < len(order):
        if first[order[start]] < 0:
            first[order[start]] = order[start]
            place = start + 1
            while place < len(order) and hashes[order[place]] == hashes[order[start]]:
                if first[order[place]] < 0:
                    equal = True
                    for k in range(points.shape[1]):
                        equal = equal and points[rows[order[start]], k] == points[rows[order[place]], k]
                    if equal:
                        first[order[place]] = order[start]
                place += 1
        start += 1
    return first
