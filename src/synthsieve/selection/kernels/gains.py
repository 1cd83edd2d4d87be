"""The kernels of facility location: assign points to picks, and update the gain of every candidate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synthsieve.selection.kernels.compiled import kernel
from synthsieve.selection.kernels.lanes import (
    add_gains,
    boxes_within,
    lanes_within,
    lowest_bit,
    shift_gains,
    units_to_tile,
)
from synthsieve.selection.kernels.tiles import GROUP
from synthsieve.selection.kernels.vectors import LANES


class Space(NamedTuple):
    """The points as every kernel needs them: see `Tiles`; `scale` is units per length."""

    coords: np.ndarray
    norms: np.ndarray
    split: int
    scale: float
    low: np.ndarray
    high: np.ndarray
    group_low: np.ndarray
    group_high: np.ndarray
    weight: np.ndarray


class Served(NamedTuple):
    """Each point's distance to its nearest pick in units, that pick's ordinal, the largest reach of tile and group.

    `farthest` is (tiles / 16, 16), like the boxes side by side.
    """

    reach: np.ndarray
    nearest: np.ndarray
    farthest: np.ndarray
    group_farthest: np.ndarray


class Source(NamedTuple):
    """Points whose reach changed, in blocks of sixteen with their boxes."""

    coords: np.ndarray
    norms: np.ndarray
    low: np.ndarray
    high: np.ndarray
    weight: np.ndarray


@kernel
def beyond(low, high, box, other_low, other_high, other, limit):  # type: ignore[no-untyped-def]
    """Whether two boxes lie at least `limit` apart."""
    squared, most = 0.0, limit * limit
    for k in range(low.shape[1]):
        apart = max(low[box, k] - other_high[other, k], other_low[other, k] - high[box, k])
        if apart > 0.0:
            squared += apart * apart
            if squared >= most:
                return True
    return most == 0.0


@kernel
def serve(space, boxes_low, boxes_high, served_by, position, ordinal, changed, former):  # type: ignore[no-untyped-def]
    """Assign to a new pick every point that is nearer to it; returns how many and by how much that lowered L."""
    coords, norms, split, scale, _, _, group_low, group_high, weight = space
    reach, nearest, farthest, group_farthest = served_by
    boxed = split == coords.shape[1]
    block, lane = position // LANES, position % LANES
    here = np.empty((1, coords.shape[1]))
    here[0] = coords[block, :, lane]
    units = np.empty(LANES)
    served, taken_off = 0, 0.0
    for group in range(group_low.shape[0]):
        if boxed and beyond(here, here, 0, group_low, group_high, group, group_farthest[group] / scale):
            continue
        touched = False
        start, stop = group * GROUP, min((group + 1) * GROUP, coords.shape[0])
        for sixteen in range(start // LANES, (stop + LANES - 1) // LANES):
            tiles = (1 << min(LANES, stop - sixteen * LANES)) - 1
            if boxed:
                tiles = lanes_within(boxes_low, boxes_high, sixteen, here, here, 0, scale, farthest)
            while tiles:
                tile = sixteen * LANES + lowest_bit(tiles)
                tiles &= tiles - 1
                units_to_tile(coords, norms, tile, coords, norms, block, lane, split, scale, units)
                before = served
                for point in range(LANES):
                    if units[point] < reach[tile, point]:
                        taken_off += weight[tile, point] * (reach[tile, point] - units[point])
                        changed[served] = tile * LANES + point
                        former[served] = reach[tile, point]
                        reach[tile, point] = units[point]
                        nearest[tile, point] = ordinal
                        served += 1
                if served > before:
                    farthest[sixteen, tile % LANES] = reach[tile].max()
                    touched = True
        if touched:
            group_farthest[group] = farthest[start // LANES : (stop + LANES - 1) // LANES].max()
    return served, taken_off


@kernel
def gather(space, reach, changed, former):  # type: ignore[no-untyped-def]
    """The changed points as blocks of sixteen with their boxes, weights, former and present reach."""
    coords, norms, split, weight = space.coords, space.norms, space.split, space.weight
    count, dims = len(changed), coords.shape[1]
    blocks = (count + LANES - 1) // LANES
    source = np.full((blocks, dims, LANES), np.inf)
    source_norms = np.zeros((blocks, 2, LANES))
    low, high = np.full((blocks, dims), np.inf), np.full((blocks, dims), -np.inf)
    source_weight, old, new = np.zeros((blocks, LANES)), np.zeros((blocks, LANES)), np.zeros((blocks, LANES))
    for place in range(count):
        block, lane = place // LANES, place % LANES
        tile, point = changed[place] // LANES, changed[place] % LANES
        for k in range(dims):
            value = coords[tile, k, point]
            source[block, k, lane] = value
            low[block, k], high[block, k] = min(low[block, k], value), max(high[block, k], value)
        if split < dims:
            source_norms[block, :, lane] = norms[tile, :, point]
        source_weight[block, lane] = weight[tile, point]
        old[block, lane], new[block, lane] = former[place], reach[tile, point]
    return source, source_norms, low, high, source_weight, old, new


@kernel
def shift(  # type: ignore[no-untyped-def]
    space, source, boxes_low, boxes_high, old, new, rising, gains, best, first, step
):
    """Change the gains in every `step`-th group from `first` on by the change of the source points' reaches."""
    coords, norms, split, scale, low, high, group_low, group_high, _ = space
    points, source_norms, source_low, source_high, source_weight = source
    boxed = split == coords.shape[1]
    longest = np.empty(points.shape[0])
    for block in range(points.shape[0]):
        longest[block] = old[block].max() / scale
    every_lane = (1 << LANES) - 1
    for group in range(first, group_low.shape[0], step):
        start, stop = group * GROUP, min((group + 1) * GROUP, coords.shape[0])
        touched = rising
        for block in range(points.shape[0]):
            if boxed and beyond(source_low, source_high, block, group_low, group_high, group, longest[block]):
                continue
            for sixteen in range(start // LANES, (stop + LANES - 1) // LANES):
                tiles = every_lane if stop - sixteen * LANES >= LANES else (1 << (stop - sixteen * LANES)) - 1
                if boxed:
                    tiles = boxes_within(boxes_low, boxes_high, sixteen, source_low, source_high, block, longest[block])
                while tiles:
                    tile = sixteen * LANES + lowest_bit(tiles)
                    tiles &= tiles - 1
                    lanes = every_lane
                    if boxed:
                        lanes = lanes_within(points, points, block, low, high, tile, scale, old)
                    touched = touched or lanes != 0
                    while lanes:
                        lane = lowest_bit(lanes)
                        lanes &= lanes - 1
                        if source_weight[block, lane] > 0.0:
                            was = 0.0 if rising else old[block, lane]
                            shift_gains(
                                coords, norms, tile, points, source_norms, block, lane, split, scale,
                                gains, source_weight[block, lane], was, new[block, lane],
                            )  # fmt: skip
        if touched:
            best[group] = _largest(gains, start, stop)


@kernel
def add_all(space, reach, gains, first, step):  # type: ignore[no-untyped-def]
    """Add to `gains` (tiles, 16) those between every `step`-th group from `first` on and all later tiles, both ways.

    Over all groups each pair of points is computed once.
    """
    coords, norms, split, scale, _, _, group_low, _, weight = space
    source, others = np.empty((1, coords.shape[1], LANES)), np.empty((1, coords.shape[1], LANES))  # in float64
    of_source = np.empty((LANES, LANES))
    for group in range(first, group_low.shape[0], step):
        for block in range(group * GROUP, min((group + 1) * GROUP, coords.shape[0])):
            of_source[:] = 0.0
            source[0] = coords[block]
            source_norms = norms[block : block + 1]
            for lane in range(LANES):  # points of one tile
                if weight[block, lane] > 0.0:
                    shift_gains(
                        coords, norms, block, source, source_norms, 0, lane, split, scale,
                        gains, weight[block, lane], 0.0, reach[block, lane],
                    )  # fmt: skip
            for tile in range(block + 1, coords.shape[0]):
                one = slice(tile, tile + 1)
                others[0] = coords[tile]
                for lane in range(LANES):
                    add_gains(
                        others, norms[one], 0, source, source_norms, 0, lane, split, scale,
                        gains[one], weight[block, lane], reach[block, lane], weight[one], reach[one], of_source,
                    )  # fmt: skip
            for lane in range(LANES):
                gains[block, lane] += of_source[lane].sum()


@kernel
def best_of_groups(gains, best):  # type: ignore[no-untyped-def]
    for group in range(len(best)):
        best[group] = _largest(gains, group * GROUP, min((group + 1) * GROUP, len(gains)))


@kernel
def _largest(gains, start, stop):  # type: ignore[no-untyped-def]
    """The largest gain of the tiles from `start` to `stop`, lane by lane first: that is one vector operation a tile."""
    lanes = gains[start].copy()
    for tile in range(start + 1, stop):
        for lane in range(LANES):
            lanes[lane] = max(lanes[lane], gains[tile, lane])
    return lanes.max()


@kernel
def best(best, gains, rows):  # type: ignore[no-untyped-def]
    """The position of the largest gain, of the lowest row among equals."""
    largest = best.max()
    position, lowest = -1, np.int64(2**62)
    for group in range(len(best)):
        if best[group] == largest:
            for tile in range(group * GROUP, min((group + 1) * GROUP, len(gains))):
                for lane in range(LANES):
                    if gains[tile, lane] == largest and 0 <= rows[tile, lane] < lowest:
                        position, lowest = tile * LANES + lane, np.int64(rows[tile, lane])
    return position


@kernel
def best_weighted(best, gains, rows, factor, group_factor):  # type: ignore[no-untyped-def]
    """The position of the largest product of gain and factor, of the lowest row among equals; factors of 0 are out."""
    largest, position, lowest = -1.0, -1, np.int64(2**62)
    for group in np.argsort(-best * group_factor):
        if group_factor[group] == 0.0 or best[group] * group_factor[group] < largest:
            continue
        for tile in range(group * GROUP, min((group + 1) * GROUP, len(gains))):
            for lane in range(LANES):
                row = np.int64(rows[tile, lane])
                if row >= 0 and factor[tile, lane] > 0.0:
                    value = gains[tile, lane] * factor[tile, lane]
                    if value > largest or (value == largest and row < lowest):
                        largest, position, lowest = value, tile * LANES + lane, row
    return position


@kernel
def gains_of(space, served_by, positions, out, first, step):  # type: ignore[no-untyped-def]
    """Gains of the candidates at `positions`, each from the points that would be assigned to it."""
    coords, norms, split, scale, low, high, group_low, group_high, weight = space
    reach, _, farthest, group_farthest = served_by
    boxed = split == coords.shape[1]
    here = np.empty((1, coords.shape[1]))
    units = np.empty(LANES)
    for candidate in range(first, len(positions), step):
        block, lane = positions[candidate] // LANES, positions[candidate] % LANES
        here[0] = coords[block, :, lane]
        gain = 0.0
        for group in range(group_low.shape[0]):
            if boxed and beyond(here, here, 0, group_low, group_high, group, group_farthest[group] / scale):
                continue
            for tile in range(group * GROUP, min((group + 1) * GROUP, coords.shape[0])):
                limit = farthest[tile // LANES, tile % LANES] / scale
                if boxed and beyond(here, here, 0, low, high, tile, limit):
                    continue
                units_to_tile(coords, norms, tile, coords, norms, block, lane, split, scale, units)
                for point in range(LANES):
                    if units[point] < reach[tile, point]:
                        gain += np.rint(weight[tile, point] * (reach[tile, point] - units[point]))
        out[candidate] = gain
