"""How kernels are compiled: cached on disk next to the source, without the GIL, with strict IEEE arithmetic.

No fast-math: sums could then differ between kernels, threads and machines. Kernels call each other across files, but
numba only checks whether a kernel's own file changed; here the cache is invalidated when any file with kernels changes.
"""

from __future__ import annotations

import hashlib
from functools import cache, partial
from pathlib import Path
from typing import Any

from numba import njit


def kernel(function: Any, *, fastmath: Any = False) -> Any:
    """Compile on the first call for the types it is called with; not cached if no folder is writable."""
    try:
        compiled = njit(cache=True, nogil=True, fastmath=fastmath)(function)
    except RuntimeError:
        return njit(nogil=True, fastmath=fastmath)(function)
    file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = (file._source_stamp, _stamp())
    return compiled


# For sums that may be rounded in any order, because they are checked in float64 afterwards.
approximate_kernel = partial(kernel, fastmath={"reassoc", "contract", "nsz", "nnan", "ninf"})


@cache
def _stamp() -> str:
    """A hash of every file that contains kernels."""
    texts = (path.read_bytes() for path in sorted(Path(__file__).parents[1].rglob("*.py")))
    return hashlib.sha256(
        b"".join(text for text in texts if b"import kernel" in text or b"_kernel" in text or b"numba" in text)
    ).hexdigest()
