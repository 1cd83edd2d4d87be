"""Refinement: exchange a pick for another point as long as that lowers L (PAM's swaps, without a distance matrix).

Each point knows its nearest and its second nearest pick. Exchanging pick s for candidate x changes L by

    removal(s) - correction(s, x) - gain(x)

where removal(s) is what s's points lose when they turn to their second nearest, and the correction is what x saves
of that. Only points that x would serve at least second best enter, so only tiles near x are looked at. The first
exchange that helps is made (FasterPAM), until a whole round over the candidates finds none: a local optimum of L.
"""

from __future__ import annotations

import numpy as np

from synthsieve.progress import Progress
from synthsieve.selection.compiled import kernel
from synthsieve.selection.facility_location import FacilityLocation, beyond
from synthsieve.selection.lanes import LANES, units_to_tile
from synthsieve.selection.tiles import GROUP, lay_out

_TILES_PER_CALL = 64


def refine(location: FacilityLocation, progress: Progress) -> int:
    """Exchange picks until no exchange lowers L; leaves the picks in `location` and returns how many were exchanged.

    Distances to second nearest picks enter the sums, so units must not have been made finer than those can bear: a sum
    that rounds could call an exchange and its reverse both good, forever.
    """
    picks, bound = list(location.picks), location.bound
    with location.in_coarse_units():
        swaps = _exchange_all(location, progress)
    if swaps and location.bound > bound:  # what the coarse units took for better was not
        location.stand(picks)
        return 0
    return swaps


def _exchange_all(location: FacilityLocation, progress: Progress) -> int:
    exchange = _Exchange(location)
    swaps, quiet, tile = 0, 0, 0
    num_tiles = len(location.tiles.rows)
    while quiet < num_tiles:
        stop = min(tile + _TILES_PER_CALL, num_tiles)
        made, last = exchange.try_candidates(tile, stop)
        swaps += made
        quiet = stop - last if made else quiet + stop - tile
        progress.update(min(quiet, num_tiles), num_tiles, f"{swaps} exchanges")
        tile = stop % num_tiles
    if swaps:
        location.stand(exchange.picks.tolist())
    return swaps


class _Exchange:
    """Nearest and second nearest picks of all points, and the picks themselves in tiles of their own ("slots")."""

    def __init__(self, location: FacilityLocation) -> None:
        tiles = location.tiles
        picks = np.array(location.picks, dtype=np.int64)
        self.picks = picks.copy()
        chosen = tiles.coords[picks // LANES, :, picks % LANES]
        slots = lay_out(chosen, np.ones(len(picks)), split=tiles.split)
        # The slots' own power of two is undone: distances must count the same units as everywhere else.
        self._slot_coords = np.full(slots.coords.shape, np.inf, dtype=tiles.coords.dtype)
        self._slot_norms = np.zeros((len(slots.rows), 2, LANES))
        self._slot_picks = slots.rows.copy()  # which pick, by ordinal, lies in each slot
        for slot, ordinal in enumerate(slots.rows.flat):
            if ordinal >= 0:
                self._slot_coords[slot // LANES, :, slot % LANES] = chosen[ordinal]
                if not tiles.boxed:
                    place = picks[ordinal]
                    self._slot_norms[slot // LANES, :, slot % LANES] = tiles.norms[place // LANES, :, place % LANES]
        self._slot_of = slots.positions().astype(np.int32)
        self._slot_low = self._slot_coords.min(axis=2).astype(np.float64)
        present = np.where(np.isfinite(self._slot_coords), self._slot_coords, -np.inf)
        self._slot_high = present.max(axis=2).astype(np.float64)

        shape = tiles.rows.shape
        present = tiles.rows >= 0
        self._first = np.where(present, location.out_of_reach, 0.0)
        self._second = self._first.copy()
        self._nearest = np.full((2, *shape), -1, dtype=np.int32)
        self._removal = np.zeros(len(picks))
        self._is_pick = np.zeros(shape, dtype=np.bool_)
        self._is_pick.flat[picks] = True
        self._out_of_reach = location.out_of_reach
        self._space = location.space()
        num_tiles = len(shape) and shape[0]
        _search_all(*self._space, *self._state())
        self._farthest = self._second.max(axis=1)
        self._group_farthest = np.maximum.reduceat(self._farthest, np.arange(0, num_tiles, GROUP))

    def _state(self) -> tuple[np.ndarray | float, ...]:
        return (
            self._slot_coords, self._slot_norms, self._slot_picks, self._slot_of, self._slot_low, self._slot_high,
            self._first, self._second, self._nearest, self._removal, self._out_of_reach,
        )  # fmt: skip

    def try_candidates(self, start: int, stop: int) -> tuple[int, int]:
        """Try every point of the tiles from `start` to `stop`; returns how many exchanges, and the last one's tile."""
        bounds = (self._farthest, self._group_farthest)
        return _try_candidates(*self._space, *self._state(), *bounds, self._is_pick, self.picks, start, stop)


@kernel
def _search(  # type: ignore[no-untyped-def]
    coords, norms, split, scale, slot_coords, slot_norms, slot_picks, slot_low, slot_high,
    tile, lane, hint_a, hint_b, out_of_reach, units, found, who,
):  # fmt: skip
    """The two picks nearest to a point, into `found` and `who`; the hinted slot tiles are looked into first."""
    boxed = split == coords.shape[1]
    here = np.empty((1, coords.shape[1]))
    here[0] = coords[tile, :, lane]
    found[0] = found[1] = out_of_reach
    who[0] = who[1] = -1
    for turn in range(-2, slot_coords.shape[0]):
        slots = hint_a if turn == -2 else hint_b if turn == -1 else turn
        if (turn >= 0 and slots in (hint_a, hint_b)) or (turn == -1 and hint_a == hint_b):
            continue
        if turn >= 0 and boxed and beyond(here, here, 0, slot_low, slot_high, slots, (found[1] + 1.0) / scale):
            continue
        units_to_tile(slot_coords, slot_norms, slots, coords, norms, tile, lane, split, scale, units)
        for slot in range(LANES):
            pick = slot_picks[slots, slot]
            if pick < 0:
                continue
            if units[slot] < found[0] or (units[slot] == found[0] and pick < who[0]):
                found[1], who[1] = found[0], who[0]
                found[0], who[0] = units[slot], pick
            elif units[slot] < found[1] or (units[slot] == found[1] and pick < who[1]):
                found[1], who[1] = units[slot], pick


@kernel
def _search_all(  # type: ignore[no-untyped-def]
    coords, norms, split, scale, low, high, group_low, group_high, weight,
    slot_coords, slot_norms, slot_picks, slot_of, slot_low, slot_high, first, second, nearest, removal, out_of_reach,
):  # fmt: skip
    units, found, who = np.empty(LANES), np.empty(2), np.empty(2, dtype=np.int32)
    hint_a, hint_b = 0, 0
    for tile in range(coords.shape[0]):
        for lane in range(LANES):
            if weight[tile, lane] == 0.0 and not np.isfinite(coords[tile, 0, lane]):
                continue
            _search(
                coords, norms, split, scale, slot_coords, slot_norms, slot_picks, slot_low, slot_high,
                tile, lane, hint_a, hint_b, out_of_reach, units, found, who,
            )  # fmt: skip
            first[tile, lane], second[tile, lane] = found[0], found[1]
            nearest[0, tile, lane], nearest[1, tile, lane] = who[0], who[1]
            hint_a = slot_of[who[0]] // LANES
            hint_b = slot_of[who[1]] // LANES if who[1] >= 0 else hint_a
            removal[who[0]] += np.rint(weight[tile, lane] * found[1]) - np.rint(weight[tile, lane] * found[0])


@kernel
def _try_candidates(  # type: ignore[no-untyped-def]
    coords, norms, split, scale, low, high, group_low, group_high, weight,
    slot_coords, slot_norms, slot_picks, slot_of, slot_low, slot_high, first, second, nearest, removal, out_of_reach,
    farthest, group_farthest, is_pick, picks, start, stop,
):  # fmt: skip
    boxed = split == coords.shape[1]
    here, units = np.empty((1, coords.shape[1])), np.empty(LANES)
    correction, concerned = np.zeros(len(picks)), np.empty(len(picks), dtype=np.int64)
    swaps, last = 0, start
    cheapest = np.argmin(removal)
    for block in range(start, stop):
        for lane in range(LANES):
            if is_pick[block, lane] or not np.isfinite(coords[block, 0, lane]):
                continue
            here[0] = coords[block, :, lane]
            gain, num_concerned = 0.0, 0
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
                                concerned[num_concerned] = pick
                                num_concerned += 1
                                correction[pick] = 1e-3  # concerned, even when the saving rounds to nothing
                            own, other = np.rint(count * first[tile, point]), np.rint(count * second[tile, point])
                            if units[point] < first[tile, point]:
                                gain += own - np.rint(count * units[point])
                                correction[pick] += other - own
                            else:
                                correction[pick] += other - np.rint(count * units[point])
            out, change = cheapest, removal[cheapest] - gain
            for place in range(num_concerned):
                pick = concerned[place]
                with_it = removal[pick] - np.rint(correction[pick] - 1e-3) - gain
                if with_it < change or (with_it == change and pick < out):
                    out, change = pick, with_it
                correction[pick] = 0.0
            if change < 0.0:
                _swap(
                    coords, norms, split, scale, low, high, group_low, group_high, weight,
                    slot_coords, slot_norms, slot_picks, slot_of, slot_low, slot_high, first, second, nearest, removal,
                    out_of_reach, farthest, group_farthest, is_pick, picks, out, block, lane,
                )  # fmt: skip
                cheapest = np.argmin(removal)
                swaps, last = swaps + 1, block
    return swaps, last


@kernel
def _swap(  # type: ignore[no-untyped-def]
    coords, norms, split, scale, low, high, group_low, group_high, weight,
    slot_coords, slot_norms, slot_picks, slot_of, slot_low, slot_high, first, second, nearest, removal,
    out_of_reach, farthest, group_farthest, is_pick, picks, out, block, lane,
):  # fmt: skip
    """Put the candidate into the slot of pick `out`, and let everyone concerned look again for their two nearest."""
    boxed = split == coords.shape[1]
    former = picks[out]
    is_pick[former // LANES, former % LANES] = False
    is_pick[block, lane] = True
    picks[out] = block * LANES + lane
    slots, slot = slot_of[out] // LANES, slot_of[out] % LANES
    left, come = np.empty((1, coords.shape[1])), np.empty((1, coords.shape[1]))
    left[0] = slot_coords[slots, :, slot]
    come[0] = coords[block, :, lane]
    slot_coords[slots, :, slot] = come[0]
    if not boxed:
        slot_norms[slots, :, slot] = norms[block, :, lane]
    for k in range(coords.shape[1]):
        slot_low[slots, k] = min(slot_low[slots, k], come[0, k])
        slot_high[slots, k] = max(slot_high[slots, k], come[0, k])

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
                    hint = slot_of[stays] // LANES if stays >= 0 else slots
                    _search(
                        coords, norms, split, scale, slot_coords, slot_norms, slot_picks, slot_low, slot_high,
                        tile, point, slots, hint, out_of_reach, spare, found, who,
                    )  # fmt: skip
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
