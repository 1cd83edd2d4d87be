"""Memory stated up front, in bytes, before anything is allocated."""

from __future__ import annotations

import re

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.selection.door import one_of
from synthsieve.selection.methods import Method
from synthsieve.selection.multilevel import THINNING

# Code, threads and buffers that do not grow with the points.
_FIXED = 24_000_000
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def estimate_memory(n: int, d: int, k: int, *, method: Method | str = Method.FAST, refine: bool = False) -> int:
    """Bytes a selection of `k` among `n` points of `d` numbers needs beyond the points themselves, in one class.

    A point costs its coordinates in float64, its box's share, and its weight, reach, nearest pick and gain.
    """
    method = one_of(Method, method, "method")
    layout = n * (8 * d + 2 * d + 12)
    state = n * (8 + 4 + 4 + 8)
    gains = 0 if method in (Method.STOCHASTIC, Method.RANDOM) else 8 * n
    coarse = (layout + state + gains) // (THINNING - 1) if method in (Method.FAST, Method.AUTO) else 0
    second = n * (8 + 8 + 8 + 1) + k * (9 * d + 24) if refine else 0
    return _FIXED + layout + max(state + gains + second, coarse) + n * 24 + k * 24


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
