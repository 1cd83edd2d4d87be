"""Facility location: which pick represents which point, and the gain of each further pick.

    L(S) = sum_i w_i min_{j in S} |g_i - g_j|          CRAIG's bound on the gradient error; `reach` is the min
    gain(j) = L(S) - L(S + j) = sum_i w_i (reach_i - |g_i - g_j|)+

Distances are whole numbers of units (see `vectors`), so every sum here is exact: a gain updated by differences equals
one computed from scratch, whatever the order and the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from synthsieve.selection.kernels import gains
from synthsieve.selection.kernels.gains import Served, Source, Space
from synthsieve.selection.kernels.lanes import LANES
from synthsieve.selection.kernels.tiles import GROUP, Tiles
from synthsieve.selection.kernels.workers import Workers

# A weighted sum of all distances stays below 2^52 units, well inside float64's integers; a single distance in d
# dimensions below 2^50 / (d + 8), so that the rounding of a box's bound, about d/2 in the last place, stays far below
# half a unit.
_LARGEST_SUM = 2.0**52
_MAX_LENGTH = 2.0**50
# Below this many pairs a second thread is slower.
_WORTH_SHARING = 500_000
# Coordinates copied at a time while gains are updated: 17 MB of float64.
GATHERED_NUMBERS = 2**21
# Up to so many picks nearly all points are nearer to each other than to a pick.
_PICKS_WITHOUT_PRUNING = 1
# Groups of tiles between two reports of progress.
_GROUPS_PER_ROUND = 64


class FacilityLocation:
    """The state of a selection: the picks so far, each point's nearest pick, each candidate's exact gain.

    Attributes:
        tiles: the points.
        picks: positions (tile * 16 + lane) in pick order.
        reach: float64 (tiles, 16), units from each point to its nearest pick; before any pick, beyond every distance.
        nearest: int32 (tiles, 16), the ordinal of that pick; -1 before any.
        gains: float64 (tiles, 16), units by which each point would lower L; None before the first `best`.
        bound: L, in units.
        taken_off: by how much each pick lowered L, in the scale of the input.
        unit: the length of a unit, in the scale of the input.
    """

    def __init__(
        self,
        tiles: Tiles,
        workers: Workers,
        report: Callable[[str], None] = lambda message: None,
        factor: np.ndarray | None = None,
    ) -> None:
        """`factor` (n,), by row: what gains are multiplied by when picks are compared; 0 for points never to pick.

        The gains of the first pick count from an arbitrary length, so that only zeros matter there.
        """
        self.tiles = tiles
        self.factor = None if factor is None else np.where(tiles.rows >= 0, factor[tiles.rows], 0.0)
        self._workers = workers
        self._report = report
        self._total_weight = float(tiles.weight.sum())
        self._diameter = _diameter_bound(tiles)
        self._scale = self._finest_scale(self._diameter, self._total_weight * self._diameter)
        self._changed = np.empty(tiles.rows.size, dtype=np.int32)
        self._former = np.empty(tiles.rows.size)
        self.restart(())

    def part(self, start: int, stop: int, workers: Workers) -> FacilityLocation:
        """The tiles from `start` to `stop` as a selection of their own, without picks; see `Tiles.part`."""
        part, places = FacilityLocation(self.tiles.part(start, stop), workers), slice(start * LANES, stop * LANES)
        part.factor = None if self.factor is None else self.factor[start:stop]
        part._changed, part._former = self._changed[places], self._former[places]  # no memory of its own
        return part

    @property
    def unit(self) -> float:
        return self.tiles.magnitude / self._scale

    @property
    def upper_bound(self) -> float:
        """An upper bound of L in the scale of the input: all roundings at their worst."""
        return (self.bound + self._total_weight) * self.unit

    def restart(self, picks: Iterable[int]) -> None:
        """Start again from `picks`: each point is assigned to its nearest; gains are computed when needed."""
        self.reach = np.where(self.tiles.rows >= 0, self.out_of_reach, 0.0)
        self.nearest = np.full(self.tiles.rows.shape, -1, dtype=np.int32)
        self.gains: np.ndarray | None = None
        farthest = np.zeros(self.tiles.boxes_low.shape[::2])
        farthest.flat[: len(self.reach)] = self.reach.max(axis=1)
        groups = np.maximum.reduceat(farthest.ravel(), np.arange(0, len(self.reach), GROUP))
        self._served = Served(self.reach, self.nearest, farthest, groups)
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
            self._compute_gains()
        assert self.gains is not None
        if self.factor is None:
            return int(gains.best(self._best, self.gains, self.tiles.rows))
        factor = self.factor if self.picks else np.sign(self.factor)
        largest = np.maximum.reduceat(factor.max(axis=1), np.arange(0, len(factor), GROUP))
        return int(gains.best_weighted(self._best, self.gains, self.tiles.rows, factor, largest))

    def candidates(self) -> np.ndarray:
        """The positions of all points that may be picked and are not yet, by row: int64 (m,)."""
        positions = self.tiles.positions()
        if self.factor is not None:
            positions = positions[self.factor.ravel()[positions] > 0.0]
        return positions[~np.isin(positions, self.picks)] if self.picks else positions

    def take(self, position: int) -> None:
        """Make the point at `position` a pick, and update the gains around it."""
        changed, former = self._serve(position)
        if self.gains is not None:
            if 2 * len(changed) > self.tiles.rows.size:
                self._compute_gains()
            else:
                self.gains.flat[position] = -np.inf
                self._lower_gains(changed, former)

    def gains_of(self, positions: np.ndarray) -> np.ndarray:
        """Units by which each of a few candidates would lower L, without computing the gains of all points."""
        out = np.zeros(len(positions))
        parts = self._parts(len(positions) * self.tiles.rows.size)

        def work(part: int) -> None:
            gains.gains_of(self.space(), self._served, positions, out, part, parts)

        self._workers.share(work, parts)
        return out

    def sharpen(self) -> None:
        """Switch to finer units once L is so low that units sixteen times finer fit.

        Otherwise points a billion times closer to each other than to the rest could not be distinguished.
        """
        if not self.picks or self.bound > self._sharpen_below:
            return
        self._sharpen_below = self.bound / 16
        longest = max(float(self.reach.max()), 0.5) / self._scale
        scale = self._finest_scale(longest, max(self.bound, 0.5 * self._total_weight) / self._scale)
        if scale >= 16 * self._scale:
            self._scale, picks = scale, self.picks
            self.restart(picks)

    @contextmanager
    def in_coarse_units(self) -> Iterator[None]:
        """Within the block, units so coarse that even the sum of the longest distances of all points is exact."""
        fine, coarse = self._scale, self._finest_scale(self._diameter, self._total_weight * self._diameter)
        if coarse >= fine:
            yield
            return
        self._scale = coarse
        self.restart(self.picks)
        try:
            yield
        finally:
            self._scale = fine
            self.restart(self.picks)

    def _finest_scale(self, longest: float, total: float) -> float:
        """The largest power of two, in units per length, that respects both limits."""
        if longest <= 0.0 or total <= 0.0:
            return 1.0
        dims = self.tiles.coords.shape[1]
        return 2.0 ** math.floor(math.log2(min(_MAX_LENGTH / (dims + 8) / longest, _LARGEST_SUM / total, 2.0**900)))

    @property
    def out_of_reach(self) -> float:
        """A reach, in units, beyond every distance: that of a point without a pick."""
        return math.ceil(self._diameter * self._scale) + 1.0

    def space(self) -> Space:
        tiles = self.tiles
        boxes = (tiles.low, tiles.high, tiles.group_low, tiles.group_high)
        return Space(tiles.coords, tiles.norms, tiles.split, self._scale, *boxes, tiles.weight)

    def _boxes(self) -> tuple[np.ndarray, np.ndarray]:
        return self.tiles.boxes_low, self.tiles.boxes_high

    def _parts(self, pairs: int) -> int:
        return self._workers.count if pairs > _WORTH_SHARING else 1

    def _serve(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """Add a pick and assign the points it is nearest to; return their positions and their former reach."""
        served, taken_off = gains.serve(
            self.space(), *self._boxes(), self._served, position, len(self.picks), self._changed, self._former
        )
        self.picks.append(position)
        self.taken_off.append(taken_off * self.unit)
        self.bound -= taken_off
        return self._changed[:served], self._former[:served]

    def _compute_gains(self) -> None:
        """Compute every candidate's gain from scratch: all reaches rise from zero."""
        tiles = self.tiles
        if self.gains is None:
            self.gains, self._best = np.empty(tiles.rows.shape), np.empty(len(tiles.group_low))
        if len(self.picks) <= _PICKS_WITHOUT_PRUNING:
            return self._add_all_gains()
        self.gains.fill(0.0)
        self.gains.flat[self.picks] = -np.inf
        source = Source(tiles.coords, tiles.norms, tiles.low, tiles.high, tiles.weight)
        rounds = max(1, len(tiles.group_low) // _GROUPS_PER_ROUND)
        for turn in range(rounds):
            self._report(f"computing gains, {turn / rounds:.0%}")
            self._shift(source, self.reach, self.reach, rising=True, turn=turn, rounds=rounds)

    def _add_all_gains(self) -> None:
        """The same, each pair of points once: faster where boxes exclude hardly any pair."""
        assert self.gains is not None
        parts = self._parts(self.tiles.rows.size**2)
        sums = [self.gains, *(np.empty_like(self.gains) for _ in range(parts - 1))]
        for total in sums:
            total.fill(0.0)
        rounds = max(1, len(self.tiles.group_low) // _GROUPS_PER_ROUND)
        for turn in range(rounds):
            self._report(f"computing gains, {turn / rounds:.0%}")

            def work(part: int, turn: int = turn) -> None:
                gains.add_all(self.space(), self.reach, sums[part], turn + rounds * part, rounds * parts)

            self._workers.share(work, parts)
        for total in sums[1:]:
            self.gains += total
        self.gains.flat[self.picks] = -np.inf
        gains.best_of_groups(self.gains, self._best)

    def _lower_gains(self, changed: np.ndarray, former: np.ndarray) -> None:
        """Lower the gains around the points whose reach fell."""
        at_once = max(LANES, GATHERED_NUMBERS // self.tiles.coords.shape[1])
        for start in range(0, len(changed), at_once):  # sums are exact, so parts give the same as the whole
            part = slice(start, start + at_once)
            *source, old, new = gains.gather(self.space(), self.reach, changed[part], former[part])
            self._shift(Source(*source), old, new, rising=False)

    def _shift(
        self, source: Source, old: np.ndarray, new: np.ndarray, *, rising: bool, turn: int = 0, rounds: int = 1
    ) -> None:
        """Change the gains by the reaches of `source` going from `old` (from zero if `rising`) to `new`."""
        parts = self._parts(old.size * self.tiles.rows.size // rounds)

        def work(part: int) -> None:
            which = (turn + rounds * part, rounds * parts)
            gains.shift(self.space(), source, *self._boxes(), old, new, rising, self.gains, self._best, *which)

        self._workers.share(work, parts)


def _diameter_bound(tiles: Tiles) -> float:
    """A length no distance exceeds: the diagonal of the box around all points, or twice the longest outer product."""
    if tiles.boxed:
        return float(np.linalg.norm(tiles.high.max(axis=0) - tiles.low.min(axis=0)))
    return 2.0 * float(np.sqrt((tiles.norms[:, 0] * tiles.norms[:, 1]).max()))
