"""How kernels are compiled: cached on disk beside the source, the interpreter's lock released, strict IEEE arithmetic.

No fast-math: it would let sums come out differently from one kernel, thread or machine to the next.
"""

from __future__ import annotations

from typing import Any

from numba import njit


def kernel(function: Any) -> Any:
    """Compile on the first call for the types it is called with; uncached where no folder can be written."""
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)
