"""Memory stated up front, in bytes, before anything is allocated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.selection.door import one_of
from synthsieve.selection.facility_location import GATHERED_NUMBERS
from synthsieve.selection.methods import Method
from synthsieve.selection.multilevel import THINNING

# Code, threads and buffers that do not grow with the points: blocks of rows (see `blocks`) and what they become.
_FIXED = 24_000_000
# Label, entropy, reason, predicted class, order, rows and assignment of each row, and what the result holds of it.
_BYTES_A_ROW = 80
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def estimate_memory(n: int, d: int, k: int, *, method: Method | str = Method.FAST, refine: bool = False) -> int:
    """Bytes a selection of `k` among `n` points of `d` numbers needs beyond the points themselves, in one class.

    A point costs its coordinates in float64, its box's share, and its weight, reach, nearest pick and gain.
    """
    method = one_of(Method, method, "method")
    layout = n * (8 * d + 2 * d + 12)
    state = n * (8 + 4 + 4 + 8)
    greedy = method not in (Method.STOCHASTIC, Method.RANDOM)
    gains = 8 * n + 9 * min(n * d // 2, GATHERED_NUMBERS) if greedy else 0
    coarse = n // THINNING * (18 * d + 56) * THINNING // (THINNING - 1) if method in (Method.FAST, Method.AUTO) else 0
    second = n * (8 + 8 + 8 + 1) + k * (9 * d + 24) if refine else 0
    return _FIXED + layout + max(state + gains + second, coarse, n * d) + n * 24 + k * 24


@dataclass(frozen=True)
class Plan:
    """How the classes are worked on.

    Attributes:
        methods: of each class.
        classes_at_once: how many classes at a time; threads: how many share the work in one.
        memory_bytes: about what it takes, beyond points given as an array.
        notes: a sentence for every concession to the memory limit.
    """

    methods: tuple[Method, ...]
    classes_at_once: int
    threads: int
    memory_bytes: int
    notes: tuple[str, ...]


def make_plan(
    sizes: Sequence[int],
    counts: Sequence[int],
    dims: int,
    *,
    method: Method,
    refine: bool,
    memory_limit: int | None,
    threads: int,
    reserved_bytes: int = 0,
    bytes_a_row: int = 0,
    called: Sequence[str] | None = None,
) -> Plan:
    """Methods and threads that stay within the memory limit, and a note for every concession.

    Args:
        sizes, counts: rows and picks of each class; dims: numbers of a point.
        reserved_bytes: what is held already and counts within the limit.
        bytes_a_row: what the points take, where they are made class by class.
        called: the name of each class, for notes.
    """
    methods = [method.for_size(size) for size in sizes]

    def need(place: int) -> int:
        size, count = sizes[place], min(counts[place], sizes[place])
        return size * bytes_a_row + estimate_memory(size, dims, count, method=methods[place], refine=refine)

    def total() -> int:
        return reserved_bytes + sum(sorted(needs)[-at_once:])

    needs = [need(place) for place in range(len(sizes))]
    at_once, notes = min(threads, len(sizes)), []
    if memory_limit is not None:
        limit = f"memory_limit={in_megabytes(memory_limit)}"
        if at_once > 1 and total() > memory_limit:
            at_once = 1
            notes.append(f"one class at a time, to stay within {limit}")
        lean = []
        for place in [place for place, needed in enumerate(needs) if reserved_bytes + needed > memory_limit]:
            if methods[place] in (Method.EXACT, Method.FAST):
                lean.append((place, reserved_bytes + needs[place], methods[place]))
                methods[place] = Method.STOCHASTIC
                needs[place] = need(place)
            if reserved_bytes + needs[place] > memory_limit:
                raise SelectionError(
                    f"expected each class to fit into {limit}, but {sizes[place]:,} points of {dims:,} numbers need "
                    f"{in_megabytes(reserved_bytes + needs[place])} even with {methods[place]}: raise the limit or "
                    "select in parts"
                )
        names = [str(place) for place in range(len(sizes))] if called is None else called
        notes += [
            f"class {names[place]}: {before} needs {in_megabytes(needed)}, over {limit}: took stochastic"
            for place, needed, before in lean
        ]
    return Plan(tuple(methods), at_once, threads if at_once == 1 else 1, total(), tuple(notes))


def estimate_filter(num_rows: int) -> int:
    """Bytes that checking and filtering `num_rows` rows needs, and that stay until the end: some numbers a row."""
    return num_rows * _BYTES_A_ROW


def estimate_curvature(num_rows: int, num_classes: int) -> int:
    """Bytes that preconditioning takes: gradients of all classes, averaged and divided, and a diagonal a class."""
    return 8 * num_classes * (4 * num_rows + 4 * num_classes)


def bytes_in(limit: int | float | str | None) -> int | None:
    """`"1.5GB"` -> 1500000000; numbers are bytes already."""
    if limit is None:
        return None
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*([A-Za-z]*)\s*", limit)
        if match is None or match[2].upper() not in _UNITS:
            raise SelectionError(f"expected memory_limit like '500MB' or '2GiB', got {limit[:50]!r}: try '1GB'")
        limit = float(match[1]) * _UNITS[match[2].upper()]
    number = isinstance(limit, int | float | np.integer | np.floating) and not isinstance(limit, bool)
    if not (number and 0 < limit < float("inf")):
        raise SelectionError(
            f"expected memory_limit as a number of bytes above 0, got {str(limit)[:50]}: try '1GB', or leave it out"
        )
    return int(limit)


def in_megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
