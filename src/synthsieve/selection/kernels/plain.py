"""The functions of `vectors` as plain numba loops: for versions of numba that cannot compile those."""

from __future__ import annotations

import math

import numpy as np

from synthsieve.selection.kernels.compiled import kernel
from synthsieve.selection.kernels.vectors import LANES


@kernel
def _units(coords, norms, tile, point, source, source_norms, block, lane, split, scale):  # type: ignore[no-untyped-def]
    """Units between one source point and one point of a tile; see `vectors.units`."""
    dg = dh = 0.0
    for k in range(coords.shape[1]):
        apart = np.float64(coords[tile, k, point]) - np.float64(source[block, k, lane])
        if k < split:
            dg += apart * apart
        else:
            dh += apart * apart
    if split < coords.shape[1]:
        g, h = norms[tile, 0, point], norms[tile, 1, point]
        g_source, h_source = source_norms[block, 0, lane], source_norms[block, 1, lane]
        squared = dg * (0.5 * (h + h_source)) + 0.5 * (g + g_source) * dh - 0.5 * (dg * dh)
        squared += 0.5 * ((g - g_source) * (h - h_source))
        dg = 0.0 if squared < 0.0 else squared
    return np.rint(math.sqrt(dg) * scale)


@kernel
def units_to_tile(  # type: ignore[no-untyped-def]
    coords, norms, tile, source, source_norms, block, lane, split, scale, out
):
    for point in range(LANES):
        out[point] = _units(coords, norms, tile, point, source, source_norms, block, lane, split, scale)


@kernel
def shift_gains(  # type: ignore[no-untyped-def]
    coords, norms, tile, source, source_norms, block, lane, split, scale, gains, weight, old, new
):
    for point in range(LANES):
        units = _units(coords, norms, tile, point, source, source_norms, block, lane, split, scale)
        was = old - units if old > units else 0.0
        now = new - units if new > units else 0.0
        gains[tile, point] += np.rint(weight * now) - np.rint(weight * was)


@kernel
def add_gains(  # type: ignore[no-untyped-def]
    coords, norms, tile, source, source_norms, block, lane, split, scale, gains, weight, reach,
    weights, reaches, of_source,
):  # fmt: skip
    for point in range(LANES):
        units = _units(coords, norms, tile, point, source, source_norms, block, lane, split, scale)
        if reach > units:
            gains[tile, point] += np.rint(weight * (reach - units))
        if reaches[tile, point] > units:
            of_source[lane, point] += np.rint(weights[tile, point] * (reaches[tile, point] - units))


@kernel
def lowest_bit(bits):  # type: ignore[no-untyped-def]
    place = 0
    while bits & 1 == 0:
        bits >>= 1
        place += 1
    return place


@kernel
def boxes_within(boxes_low, boxes_high, sixteen, low, high, box, limit):  # type: ignore[no-untyped-def]
    bits = 0
    for other in range(LANES):
        squared = 0.0
        for k in range(low.shape[1]):
            apart = max(boxes_low[sixteen, k, other] - high[box, k], low[box, k] - boxes_high[sixteen, k, other], 0.0)
            squared += apart * apart
        if squared < limit * limit:
            bits |= 1 << other
    return bits


@kernel
def lanes_within(near, far, block, low, high, box, scale, reach):  # type: ignore[no-untyped-def]
    bits = 0
    for lane in range(LANES):
        squared = 0.0
        for k in range(low.shape[1]):
            outside = max(low[box, k] - far[block, k, lane], near[block, k, lane] - high[box, k], 0.0)
            squared += outside * outside
        if math.sqrt(squared) * scale < reach[block, lane]:
            bits |= 1 << lane
    return bits
