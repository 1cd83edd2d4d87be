"""Facility location: who stands for whom, and what each further pick would gain.

    L(S) = sum_i w_i min_{j in S} |g_i - g_j|          CRAIG's bound on the gradient error; `reach` is the min
    gain(j) = L(S) - L(S + j) = sum_i w_i (reach_i - |g_i - g_j|)+

Distances count whole units (see `lanes`), so every sum here is exact: a gain kept up to date by differences equals one
computed afresh, whatever the order and the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from synthsieve.selection.compiled import kernel
from synthsieve.selection.lanes import LANES, boxes_within, lanes_within, lowest_bit, shift_gains, units_to_tile
from synthsieve.selection.tiles import GROUP, Tiles
from synthsieve.selection.workers import Workers

# A weighted sum of all distances stays below 2^52 units, well inside float64's integers; a single distance in d
# dimensions below 2^50 / (d + 8), so that the rounding of a box's bound, about d/2 in the last place, stays far below
# half a unit.
_LARGEST_SUM = 2.0**52
_LONGEST = 2.0**50
# Below this many pairs a second thread costs more than it brings.
_WORTH_SHARING = 500_000
# Coordinates copied at a time while gains are brought up to date: 17 MB of float64.
GATHERED_NUMBERS = 2**21
# Groups of tiles weighed between two reports of progress.
_GROUPS_PER_ROUND = 64


class FacilityLocation:
    """The state of a selection: the picks so far, each point's nearest pick, each candidate's exact gain.

    Attributes:
        tiles: the points.
        picks: positions (tile * 16 + lane) in pick order.
        reach: float64 (tiles, 16), units from each point to its nearest pick; before any pick, beyond every distance.
        nearest: int32 (tiles, 16), the ordinal of that pick; -1 before any.
        gains: float64 (tiles, 16), units each point would take off L; None until `best` asks for them.
        bound: L, in units.
        taken_off: what each pick took off L in its turn, in the points' own measure.
        unit: the length of a unit, in the points' own measure.
    """

    def __init__(self, tiles: Tiles, workers: Workers, report: Callable[[str], None] = lambda message: None) -> None:
        self.tiles = tiles
        self._workers = workers
        self._report = report
        self._total_weight = float(tiles.weight.sum())
        self._diameter = _diameter_at_most(tiles)
        self._scale = self._finest_scale(self._diameter, self._total_weight * self._diameter)
        self._changed = np.empty(tiles.rows.size, dtype=np.int32)
        self._former = np.empty(tiles.rows.size)
        self.stand(())

    @property
    def unit(self) -> float:
        return self.tiles.magnitude / self._scale

    @property
    def bound_at_most(self) -> float:
        """A number that L does not exceed, in the points' own measure: every rounding taken the unlucky way."""
        return (self.bound + self._total_weight) * self.unit

    def stand(self, picks: Iterable[int]) -> None:
        """Begin anew from `picks`: each point turns to its nearest; gains are unknown until asked for."""
        present = self.tiles.rows >= 0
        self.reach = np.where(present, self.out_of_reach, 0.0)
        self.nearest = np.full(self.tiles.rows.shape, -1, dtype=np.int32)
        self.gains: np.ndarray | None = None
        self._farthest = self.reach.max(axis=1)
        self._group_farthest = np.maximum.reduceat(self._farthest, np.arange(0, len(self._farthest), GROUP))
        self.bound = float((self.tiles.weight * self.reach).sum())
        self.picks: list[int] = []
        self.taken_off: list[float] = []
        for position in picks:
            self._serve(position)
        self.bound = float((self.tiles.weight * self.reach).sum())
        self._sharpen_below = self.bound / 256

    def best(self) -> int:
        """The position of the candidate of largest gain; among equals, the one of the lowest row."""
        if self.gains is None:
            self._weigh()
        assert self.gains is not None
        return int(_best(self._best, self.gains, self.tiles.rows))

    def take(self, position: int) -> None:
        """Make the point at `position` a pick, and bring the gains around it up to date."""
        changed, former = self._serve(position)
        if self.gains is not None:
            if 2 * len(changed) > self.tiles.rows.size:
                self._weigh()
            else:
                self.gains.flat[position] = -np.inf
                self._settle(changed, former)

    def gains_of(self, positions: np.ndarray) -> np.ndarray:
        """Units that each of a few candidates would take off L, without keeping everybody's gain."""
        out = np.zeros(len(positions))
        parts = self._parts(len(positions) * self.tiles.rows.size)

        def work(part: int) -> None:
            _gains_of(*self.space(), positions, self.reach, self._farthest, self._group_farthest, out, part, parts)

        self._workers.share(work, parts)
        return out

    def sharpen(self) -> None:
        """Once L has fallen so far that units sixteen times finer would fit, take those and begin anew from the picks.

        Without this, points a billion times closer to each other than to the rest would look alike.
        """
        if not self.picks or self.bound > self._sharpen_below:
            return
        self._sharpen_below = self.bound / 16
        longest = max(float(self.reach.max()), 0.5) / self._scale
        scale = self._finest_scale(longest, max(self.bound, 0.5 * self._total_weight) / self._scale)
        if scale >= 16 * self._scale:
            self._scale, picks = scale, self.picks
            self.stand(picks)

    @contextmanager
    def in_coarse_units(self) -> Iterator[None]:
        """Within the block, units so coarse that even a sum of everybody's longest distance is exact."""
        fine, coarse = self._scale, self._finest_scale(self._diameter, self._total_weight * self._diameter)
        if coarse >= fine:
            yield
            return
        self._scale = coarse
        self.stand(self.picks)
        try:
            yield
        finally:
            self._scale = fine
            self.stand(self.picks)

    def _finest_scale(self, longest: float, total: float) -> float:
        """The largest power of two, in units per length, that respects both limits."""
        if longest <= 0.0 or total <= 0.0:
            return 1.0
        dims = self.tiles.coords.shape[1]
        return 2.0 ** math.floor(math.log2(min(_LONGEST / (dims + 8) / longest, _LARGEST_SUM / total, 2.0**900)))

    @property
    def out_of_reach(self) -> float:
        """A reach, in units, beyond every distance: that of a point without a pick."""
        return math.ceil(self._diameter * self._scale) + 1.0

    def space(self) -> tuple[np.ndarray | float | int, ...]:
        """What every kernel must know of the points, in the kernels' order."""
        tiles = self.tiles
        boxes = (tiles.low, tiles.high, tiles.group_low, tiles.group_high)
        return (tiles.coords, tiles.norms, tiles.split, self._scale, *boxes, tiles.weight)

    def _parts(self, pairs: int) -> int:
        return self._workers.count if pairs > _WORTH_SHARING else 1

    def _serve(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """Add a pick and turn to it the points it is nearest to; return who they are and their former reach."""
        served, taken_off = _serve(
            *self.space(),
            position,
            len(self.picks),
            self.reach,
            self.nearest,
            self._farthest,
            self._group_farthest,
            self._changed,
            self._former,
        )
        self.picks.append(position)
        self.taken_off.append(taken_off * self.unit)
        self.bound -= taken_off
        return self._changed[:served], self._former[:served]

    def _weigh(self) -> None:
        """Compute every candidate's gain afresh: all reaches rise from nothing."""
        tiles = self.tiles
        if self.gains is None:
            self.gains, self._best = np.empty(tiles.rows.shape), np.empty(len(tiles.group_low))
        self.gains.fill(0.0)
        self.gains.flat[self.picks] = -np.inf
        points = (tiles.coords, tiles.norms, tiles.low, tiles.high, tiles.weight)
        rounds = max(1, len(tiles.group_low) // _GROUPS_PER_ROUND)
        for turn in range(rounds):
            self._report(f"weighing {len(self.picks)} picks' neighbours, {turn / rounds:.0%}")
            self._shift(points, self.reach, self.reach, rising=True, turn=turn, rounds=rounds)

    def _settle(self, changed: np.ndarray, former: np.ndarray) -> None:
        """Lower the gains around the points whose reach fell."""
        at_once = max(LANES, GATHERED_NUMBERS // self.tiles.coords.shape[1])
        for start in range(0, len(changed), at_once):  # sums are exact: the parts come to the same as the whole
            part = slice(start, start + at_once)
            *points, old, new = _gather(*self.space(), self.reach, changed[part], former[part])
            self._shift(points, old, new, rising=False)

    def _shift(
        self,
        points: Iterable[np.ndarray],
        old: np.ndarray,
        new: np.ndarray,
        *,
        rising: bool,
        turn: int = 0,
        rounds: int = 1,
    ) -> None:
        """Change the gains as the reaches of `points` went from `old` (from nothing if `rising`) to `new`."""
        parts = self._parts(old.size * self.tiles.rows.size // rounds)
        boxes = (self.tiles.boxes_low, self.tiles.boxes_high)

        def work(part: int) -> None:
            which = (turn + rounds * part, rounds * parts)
            _shift(*self.space(), *boxes, *points, old, new, rising, self.gains, self._best, *which)

        self._workers.share(work, parts)


def _diameter_at_most(tiles: Tiles) -> float:
    """A length no distance exceeds: the diagonal of the box around all points, or twice the longest outer product."""
    if tiles.boxed:
        return float(np.linalg.norm(tiles.high.max(axis=0) - tiles.low.min(axis=0)))
    return 2.0 * float(np.sqrt((tiles.norms[:, 0] * tiles.norms[:, 1]).max()))


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
def _serve(  # type: ignore[no-untyped-def]
    coords, norms, split, scale, low, high, group_low, group_high, weight,
    position, ordinal, reach, nearest, farthest, group_farthest, changed, former,
):  # fmt: skip
    """Turn to a new pick every point that it brings nearer; returns how many and what that took off L."""
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
        for tile in range(group * GROUP, min((group + 1) * GROUP, coords.shape[0])):
            if boxed and beyond(here, here, 0, low, high, tile, farthest[tile] / scale):
                continue
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
                farthest[tile] = reach[tile].max()
                touched = True
        if touched:
            group_farthest[group] = farthest[group * GROUP : (group + 1) * GROUP].max()
    return served, taken_off


@kernel
def _gather(  # type: ignore[no-untyped-def]
    coords, norms, split, scale, low, high, group_low, group_high, weight, reach, changed, former
):
    """The changed points as blocks of sixteen with their boxes, weights, former and present reach."""
    count, dims = len(changed), coords.shape[1]
    blocks = (count + LANES - 1) // LANES
    own = np.full((blocks, dims, LANES), np.inf, dtype=coords.dtype)
    own_norms = np.zeros((blocks, 2, LANES))
    own_low, own_high = np.full((blocks, dims), np.inf), np.full((blocks, dims), -np.inf)
    own_weight, old, new = np.zeros((blocks, LANES)), np.zeros((blocks, LANES)), np.zeros((blocks, LANES))
    for place in range(count):
        block, lane = place // LANES, place % LANES
        tile, point = changed[place] // LANES, changed[place] % LANES
        for k in range(dims):
            value = coords[tile, k, point]
            own[block, k, lane] = value
            own_low[block, k], own_high[block, k] = min(own_low[block, k], value), max(own_high[block, k], value)
        if split < dims:
            own_norms[block, :, lane] = norms[tile, :, point]
        own_weight[block, lane] = weight[tile, point]
        old[block, lane], new[block, lane] = former[place], reach[tile, point]
    return own, own_norms, own_low, own_high, own_weight, old, new


@kernel
def _shift(  # type: ignore[no-untyped-def]
    coords, norms, split, scale, low, high, group_low, group_high, weight, boxes_low, boxes_high,
    own, own_norms, own_low, own_high, own_weight, old, new, rising, gains, best, first, step,
):  # fmt: skip
    """Change the gains in every `step`-th group from `first` on by what the source points' reaches changed."""
    boxed = split == coords.shape[1]
    longest = np.empty(own.shape[0])
    for block in range(own.shape[0]):
        longest[block] = old[block].max() / scale
    everyone = (1 << LANES) - 1
    for group in range(first, group_low.shape[0], step):
        start, stop = group * GROUP, min((group + 1) * GROUP, coords.shape[0])
        touched = rising
        for block in range(own.shape[0]):
            if boxed and beyond(own_low, own_high, block, group_low, group_high, group, longest[block]):
                continue
            for sixteen in range(start // LANES, (stop + LANES - 1) // LANES):
                tiles = everyone if stop - sixteen * LANES >= LANES else (1 << (stop - sixteen * LANES)) - 1
                if boxed:
                    tiles = boxes_within(boxes_low, boxes_high, sixteen, own_low, own_high, block, longest[block])
                while tiles:
                    tile = sixteen * LANES + lowest_bit(tiles)
                    tiles &= tiles - 1
                    lanes = everyone
                    if boxed:
                        lanes = lanes_within(own, block, low, high, tile, scale, old)
                    touched = touched or lanes != 0
                    while lanes:
                        lane = lowest_bit(lanes)
                        lanes &= lanes - 1
                        if own_weight[block, lane] > 0.0:
                            was = 0.0 if rising else old[block, lane]
                            shift_gains(
                                coords, norms, tile, own, own_norms, block, lane, split, scale,
                                gains, own_weight[block, lane], was, new[block, lane],
                            )  # fmt: skip
        if touched:
            best[group] = _largest(gains, start, stop)


@kernel
def _largest(gains, start, stop):  # type: ignore[no-untyped-def]
    """The largest gain of the tiles from `start` to `stop`, lane by lane first: that is one vector operation a tile."""
    lanes = gains[start].copy()
    for tile in range(start + 1, stop):
        for lane in range(LANES):
            lanes[lane] = max(lanes[lane], gains[tile, lane])
    return lanes.max()


@kernel
def _best(best, gains, rows):  # type: ignore[no-untyped-def]
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
def _gains_of(  # type: ignore[no-untyped-def]
    coords, norms, split, scale, low, high, group_low, group_high, weight,
    positions, reach, farthest, group_farthest, out, first, step,
):  # fmt: skip
    """Gains of the candidates at `positions`, each from the points it would serve."""
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
                if boxed and beyond(here, here, 0, low, high, tile, farthest[tile] / scale):
                    continue
                units_to_tile(coords, norms, tile, coords, norms, block, lane, split, scale, units)
                for point in range(LANES):
                    if units[point] < reach[tile, point]:
                        gain += np.rint(weight[tile, point] * (reach[tile, point] - units[point]))
        out[candidate] = gain
