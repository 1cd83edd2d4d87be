"""Distances from one point to a tile of sixteen: vector code, or plain loops where that does not compile.

`vectors` generates LLVM code through numba's internal interfaces, which may change. `plain` computes the same, more
slowly (decision 0207).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synthsieve.selection.kernels import plain, vectors
from synthsieve.selection.kernels.vectors import LANES


def implementation(vector: Any) -> Any:
    """`vector` if its code compiles with this numba and gives the right distances, else `plain`."""
    coords, norms, out = np.zeros((1, 2, LANES)), np.zeros((1, 2, LANES)), np.zeros(LANES)
    coords[0, :, 1] = 3.0, 4.0
    try:
        vector.probe(coords, norms, out)
    except Exception:  # numba and llvmlite fail in many ways
        return plain
    return vector if out[0] == 40.0 and out[1] == 0.0 else plain


_chosen = implementation(vectors)
units_to_tile, shift_gains, add_gains = _chosen.units_to_tile, _chosen.shift_gains, _chosen.add_gains
boxes_within, lanes_within, lowest_bit = _chosen.boxes_within, _chosen.lanes_within, _chosen.lowest_bit
