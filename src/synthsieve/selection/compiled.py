"""How kernels are compiled: cached on disk beside the source, the interpreter's lock released, strict IEEE arithmetic.

No fast-math: it would let sums come out differently from one kernel, thread or machine to the next.

Kernels call each other across files, and numba asks only whether a kernel's own file changed. Here the cache is good
only as long as no file with kernels has changed.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit


def kernel(function: Any) -> Any:
    """Compile on the first call for the types it is called with; uncached where no folder can be written."""
    try:
        compiled = njit(cache=True, nogil=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)
    file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = (file._source_stamp, _stamp())
    return compiled


@cache
def _stamp() -> str:
    """A hash of every file here that holds kernels or what they are made of."""
    texts = (path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return hashlib.sha256(b"".join(text for text in texts if b"import kernel" in text or b"numba" in text)).hexdigest()
