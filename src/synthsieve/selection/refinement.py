"""Refinement: exchange a pick for another point as long as that lowers L (PAM's swaps, without a distance matrix).

The nearest and second nearest pick of each point are known. Exchanging pick s for candidate x changes L by

    removal(s) - correction(s, x) - gain(x)

where removal(s) is the loss when the points of s go to their second nearest pick, and the correction is what x saves of
that. Only points for which x would be at least second nearest matter, so only tiles near x are visited. The first
exchange that helps is made (FasterPAM), until a whole round over the candidates finds none: a local optimum of L.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synthsieve.io.progress import Progress
from synthsieve.selection.kernels.compiled import kernel
from synthsieve.selection.kernels.facility_location import FacilityLocation
from synthsieve.selection.kernels.gains import beyond
from synthsieve.selection.kernels.lanes import LANES, units_to_tile
from synthsieve.selection.kernels.tiles import GROUP, lay_out

_TILES_PER_CALL = 64


def refine(location: FacilityLocation, progress: Progress) -> int:
    """Exchange picks until no exchange lowers L; leaves the picks in `location` and returns how many were exchanged.

    Distances to second nearest picks enter the sums, so units are coarse enough for those sums to be exact: with
    rounding, an exchange and its reverse could both seem to help, forever.
    """
    picks, bound = list(location.picks), location.bound
    with location.in_coarse_units():
        swaps = _exchange_all(location, progress)
    if swaps and location.bound > bound:  # better in coarse units only
        location.restart(picks)
        return 0
    return swaps


def _exchange_all(location: FacilityLocation, progress: Progress) -> int:
    slots, space = _slots_of(location), location.space()
    state = _state_of(location, slots)
    swaps, quiet, tile = 0, 0, 0
    num_tiles = len(location.tiles.rows)
    while quiet < num_tiles:
        stop = min(tile + _TILES_PER_CALL, num_tiles)
        made, last = _try_candidates(space, slots, state, tile, stop)
        swaps += made
        quiet = stop - last if made else quiet + stop - tile
        progress.update(min(quiet, num_tiles), num_tiles, f"{swaps} exchanges")
        tile = stop % num_tiles
    if swaps:
        location.restart(state.picks.tolist())
    return swaps


class _Slots(NamedTuple):
    """The picks in tiles: coordinates, norms, the pick in each slot by ordinal, the slot of each pick, boxes."""

    coords: np.ndarray
    norms: np.ndarray
    picks: np.ndarray
    of_pick: np.ndarray
    low: np.ndarray
    high: np.ndarray


class _State(NamedTuple):
    """Units to the two nearest picks of each point, their ordinals, the loss when a pick is removed, the largest second
    distance of each tile and group, which points are picks, the positions of the picks."""

    first: np.ndarray
    second: np.ndarray
    nearest: np.ndarray
    removal: np.ndarray
    out_of_reach: float
    farthest: np.ndarray
    group_farthest: np.ndarray
    is_pick: np.ndarray
    picks: np.ndarray


def _slots_of(location: FacilityLocation) -> _Slots:
    tiles = location.tiles
    picks = np.array(location.picks, dtype=np.int64)
    chosen = tiles.coords[picks // LANES, :, picks % LANES]
    laid_out = lay_out(chosen, np.ones(len(picks)), split=tiles.split)
    # Not laid_out.coords, which are scaled by a power of two: all distances must be in the same units.
    coords = np.full(laid_out.coords.shape, np.inf, dtype=tiles.coords.dtype)
    norms = np.zeros((len(laid_out.rows), 2, LANES))
    for slot, ordinal in enumerate(laid_out.rows.flat):
        if ordinal >= 0:
            coords[slot // LANES, :, slot % LANES] = chosen[ordinal]
            if not tiles.boxed:
                place = picks[ordinal]
                norms[slot // LANES, :, slot % LANES] = tiles.norms[place // LANES, :, place % LANES]
    low = coords.min(axis=2).astype(np.float64)
    high = np.where(np.isfinite(coords), coords, -np.inf).max(axis=2).astype(np.float64)
    return _Slots(coords, norms, laid_out.rows.copy(), laid_out.positions().astype(np.int32), low, high)


def _state_of(location: FacilityLocation, slots: _Slots) -> _State:
    shape = location.tiles.rows.shape
    picks = np.array(location.picks, dtype=np.int64)
    first = np.where(location.tiles.rows >= 0, location.out_of_reach, 0.0)
    farthest, group_farthest = np.zeros(shape[0]), np.zeros(-(-shape[0] // GROUP))
    is_pick = np.zeros(shape, dtype=np.bool_)
    is_pick.flat[picks] = True
    state = _State(
        first, first.copy(), np.full((2, *shape), -1, dtype=np.int32), np.zeros(len(picks)), location.out_of_reach,
        farthest, group_farthest, is_pick, picks,
    )  # fmt: skip
    _search_all(location.space(), slots, state)
    farthest[:] = state.second.max(axis=1)
    group_farthest[:] = np.maximum.reduceat(farthest, np.arange(0, shape[0], GROUP))
    return state


@kernel
def _search(  # type: ignore[no-untyped-def]
    space, slots, tile, lane, hint_a, hint_b, out_of_reach, units, found, who
):
    """The two picks nearest to a point, into `found` and `who`; the hinted slot tiles are searched first."""
    coords, norms, split, scale = space.coords, space.norms, space.split, space.scale
    boxed = split == coords.shape[1]
    here = np.empty((1, coords.shape[1]))
    here[0] = coords[tile, :, lane]
    found[0] = found[1] = out_of_reach
    who[0] = who[1] = -1
    for turn in range(-2, slots.coords.shape[0]):
        block = hint_a if turn == -2 else hint_b if turn == -1 else turn
        if (turn >= 0 and block in (hint_a, hint_b)) or (turn == -1 and hint_a == hint_b):
            continue
        if turn >= 0 and boxed and beyond(here, here, 0, slots.low, slots.high, block, (found[1] + 1.0) / scale):
            continue
        units_to_tile(slots.coords, slots.norms, block, coords, norms, tile, lane, split, scale, units)
        for slot in range(LANES):
            pick = slots.picks[block, slot]
            if pick < 0:
                continue
            if units[slot] < found[0] or (units[slot] == found[0] and pick < who[0]):
                found[1], who[1] = found[0], who[0]
                found[0], who[0] = units[slot], pick
            elif units[slot] < found[1] or (units[slot] == found[1] and pick < who[1]):
                found[1], who[1] = units[slot], pick


@kernel
def _search_all(space, slots, state):  # type: ignore[no-untyped-def]
    coords, weight = space.coords, space.weight
    first, second, nearest, removal = state.first, state.second, state.nearest, state.removal
    units, found, who = np.empty(LANES), np.empty(2), np.empty(2, dtype=np.int32)
    hint_a, hint_b = 0, 0
    for tile in range(coords.shape[0]):
        for lane in range(LANES):
            if weight[tile, lane] == 0.0 and not np.isfinite(coords[tile, 0, lane]):
                continue
            _search(space, slots, tile, lane, hint_a, hint_b, state.out_of_reach, units, found, who)
            first[tile, lane], second[tile, lane] = found[0], found[1]
            nearest[0, tile, lane], nearest[1, tile, lane] = who[0], who[1]
            hint_a = slots.of_pick[who[0]] // LANES
            hint_b = slots.of_pick[who[1]] // LANES if who[1] >= 0 else hint_a
            removal[who[0]] += np.rint(weight[tile, lane] * found[1]) - np.rint(weight[tile, lane] * found[0])


@kernel
def _try_candidates(space, slots, state, start, stop):  # type: ignore[no-untyped-def]
    """Try every point of the tiles from `start` to `stop`; returns how many exchanges, and the last one's tile."""
    coords, norms, split, scale, low, high, group_low, group_high, weight = space
    first, second, nearest, removal, _, farthest, group_farthest, is_pick, picks = state
    boxed = split == coords.shape[1]
    here, units = np.empty((1, coords.shape[1])), np.empty(LANES)
    correction, affected = np.zeros(len(picks)), np.empty(len(picks), dtype=np.int64)
    swaps, last = 0, start
    cheapest = np.argmin(removal)
    for block in range(start, stop):
        for lane in range(LANES):
            if is_pick[block, lane] or not np.isfinite(coords[block, 0, lane]):
                continue
            here[0] = coords[block, :, lane]
            gain, num_affected = 0.0, 0
            for group in range(group_low.shape[0]):
                if boxed and beyond(here, here, 0, group_low, group_high, group, group_farthest[group] / scale):
                    continue
                for tile in range(group * GROUP, min((group + 1) * GROUP, coords.shape[0])):
                    if boxed and beyond(here, here, 0, low, high, tile, farthest[tile] / scale):
                        continue
                    units_to_tile(coords, norms, tile, coords, norms, block, lane, split, scale, units)
                    for point in range(LANES):
                        if units[point] < second[tile, point]:
                            pick = nearest[0, tile, point]
                            count = weight[tile, point]
                            if correction[pick] == 0.0:
                                affected[num_affected] = pick
                                num_affected += 1
                                correction[pick] = 1e-3  # affected, even when the saving rounds to nothing
                            one, other = np.rint(count * first[tile, point]), np.rint(count * second[tile, point])
                            if units[point] < first[tile, point]:
                                gain += one - np.rint(count * units[point])
                                correction[pick] += other - one
                            else:
                                correction[pick] += other - np.rint(count * units[point])
            out, change = cheapest, removal[cheapest] - gain
            for place in range(num_affected):
                pick = affected[place]
                with_it = removal[pick] - np.rint(correction[pick] - 1e-3) - gain
                if with_it < change or (with_it == change and pick < out):
                    out, change = pick, with_it
                correction[pick] = 0.0
            if change < 0.0:
                _swap(space, slots, state, out, block, lane)
                cheapest = np.argmin(removal)
                swaps, last = swaps + 1, block
    return swaps, last


@kernel
def _swap(space, slots, state, out, block, lane):  # type: ignore[no-untyped-def]
    """Put the candidate into the slot of pick `out`, and search the two nearest picks of all affected points again."""
    coords, norms, split, scale, low, high, group_low, group_high, weight = space
    first, second, nearest, removal, out_of_reach, farthest, group_farthest, is_pick, picks = state
    boxed = split == coords.shape[1]
    former = picks[out]
    is_pick[former // LANES, former % LANES] = False
    is_pick[block, lane] = True
    picks[out] = block * LANES + lane
    slot_tile, slot = slots.of_pick[out] // LANES, slots.of_pick[out] % LANES
    left, come = np.empty((1, coords.shape[1])), np.empty((1, coords.shape[1]))
    left[0] = slots.coords[slot_tile, :, slot]
    come[0] = coords[block, :, lane]
    slots.coords[slot_tile, :, slot] = come[0]
    if not boxed:
        slots.norms[slot_tile, :, slot] = norms[block, :, lane]
    for k in range(coords.shape[1]):
        slots.low[slot_tile, k] = min(slots.low[slot_tile, k], come[0, k])
        slots.high[slot_tile, k] = max(slots.high[slot_tile, k], come[0, k])

    units, spare, found, who = np.empty(LANES), np.empty(LANES), np.empty(2), np.empty(2, dtype=np.int32)
    for group in range(group_low.shape[0]):
        limit = (group_farthest[group] + 1.0) / scale
        if boxed and (
            beyond(left, left, 0, group_low, group_high, group, limit)
            and beyond(come, come, 0, group_low, group_high, group, limit)
        ):
            continue
        touched = False
        for tile in range(group * GROUP, min((group + 1) * GROUP, coords.shape[0])):
            limit = (farthest[tile] + 1.0) / scale
            if boxed and (
                beyond(left, left, 0, low, high, tile, limit) and beyond(come, come, 0, low, high, tile, limit)
            ):
                continue
            units_to_tile(coords, norms, tile, coords, norms, block, lane, split, scale, units)
            touched = True
            for point in range(LANES):
                one, two = nearest[0, tile, point], nearest[1, tile, point]
                if one < 0:
                    continue
                count = weight[tile, point]
                if one == out or two == out:
                    stays = two if one == out else one
                    hint = slots.of_pick[stays] // LANES if stays >= 0 else slot_tile
                    _search(space, slots, tile, point, slot_tile, hint, out_of_reach, spare, found, who)
                elif units[point] < first[tile, point]:
                    found[0], found[1], who[0], who[1] = units[point], first[tile, point], out, one
                elif units[point] < second[tile, point]:
                    found[0], found[1], who[0], who[1] = first[tile, point], units[point], one, out
                else:
                    continue
                removal[one] -= np.rint(count * second[tile, point]) - np.rint(count * first[tile, point])
                removal[who[0]] += np.rint(count * found[1]) - np.rint(count * found[0])
                first[tile, point], second[tile, point] = found[0], found[1]
                nearest[0, tile, point], nearest[1, tile, point] = who[0], who[1]
            farthest[tile] = second[tile].max()
        if touched:
            group_farthest[group] = farthest[group * GROUP : (group + 1) * GROUP].max()
