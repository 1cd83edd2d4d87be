"""The methods that choose picks in one class: greedy facility location, coarse to fine, stochastic, random.

The plain greedy algorithm computes every candidate's gain at every step. A pick changes only the gains near the points
that it now represents, so only those are updated (`FacilityLocation.take`): the picks are exactly those of the plain
algorithm, for a small part of the work.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from synthsieve.io.progress import NullProgress, Progress
from synthsieve.selection.budget import Target
from synthsieve.selection.kernels.facility_location import FacilityLocation
from synthsieve.selection.kernels.lanes import LANES
from synthsieve.selection.kernels.tiles import Tiles, lay_out
from synthsieve.selection.kernels.workers import Workers
from synthsieve.selection.options import Method

# Stochastic greedy tries n/k log(1/0.01) candidates a pick, and reaches 1 - 1/e - 0.01 of the best in expectation.
_MISSED = 0.01
# Coarse to fine: a sixteenth of the picks is chosen among a quarter of the points, for sets of at least MIN_COARSE.
THINNING = 4
LEAD = 16
MIN_COARSE = 15_000
# Tiles of a cell of `fast`, which divides more than twice as many: 65,536 points. A power of two, so that a cell is a
# node of the tree (decision 0204).
CELL = 4_096
_FALL = 0.9  # from round to round, the gains in all cells fall to this part of the largest


def choose(
    method: Method,
    location: FacilityLocation,
    target: Target,
    workers: Workers,
    progress: Progress,
    report: Callable[[str], None],
    *,
    rng: np.random.Generator,
) -> None:
    """Choose picks by `method`, leaving them in `location`."""
    if method is Method.RANDOM:
        random(location, target, rng=rng)
    elif method is Method.STOCHASTIC:
        stochastic(location, target, progress, rng=rng)
    else:
        cells = -(-len(location.reach) // CELL)
        if method is Method.FAST and not location.picks and not target.bound and 2 < cells <= target.count // LEAD:
            location.restart(choose_in_cells(location, target.count, workers, progress, report))
        elif method is Method.FAST and not location.picks:
            location.restart(warm_start(location.tiles, target.count, workers, report, location.factor))
            if target.bound and target.reached(location):  # the coarse picks overshot: start from none
                location.restart(())
        greedy(location, target, progress)


def greedy(location: FacilityLocation, target: Target, progress: Progress) -> None:
    """Take the best candidate until the target is reached.

    pick = argmax_j sum_i w_i (reach_i - |g_i - g_j|)+, the lowest row among equals (CRAIG, Algorithm 1).
    """
    while not target.reached(location):
        location.sharpen()
        location.take(location.best())
        progress.update(len(location.picks), target.count)


def random(location: FacilityLocation, target: Target, *, rng: np.random.Generator) -> None:
    """Distinct points, each with the same probability: the control."""
    for position in rng.permutation(location.candidates()):
        if target.reached(location):
            break
        location.take(int(position))


def stochastic(location: FacilityLocation, target: Target, progress: Progress, *, rng: np.random.Generator) -> None:
    """Stochastic greedy: at each step the best of a small random sample of the points not yet picked."""
    left = location.candidates()
    size = math.ceil(len(left) / max(1, target.count) * math.log(1.0 / _MISSED))
    while len(left) and not target.reached(location):
        location.sharpen()
        drawn = np.sort(rng.choice(len(left), min(size, len(left)), replace=False))
        gains = location.gains_of(left[drawn])
        if location.factor is not None and location.picks:
            gains *= location.factor.ravel()[left[drawn]]
        best = drawn[int(np.argmax(gains))]
        location.take(int(left[best]))
        left[best] = left[-1]
        left = left[:-1]
        progress.update(len(location.picks), target.count)


def choose_in_cells(
    whole: FacilityLocation, count: int, workers: Workers, progress: Progress, report: Callable[[str], None]
) -> list[int]:
    """Positions of `count` picks, chosen in cells of neighbouring tiles, in each as if there were no others.

    All cells go on until their gains have fallen to the same level; then the picks of largest gain are kept.
    """
    size, single = len(whole.reach), Workers(1)
    cells = [whole.part(start, min(start + CELL, size), single) for start in range(0, size, CELL)]
    eligible = [cell.tiles.num_points if cell.factor is None else int((cell.factor > 0.0).sum()) for cell in cells]

    def last_gain(cell: FacilityLocation) -> float:
        return cell.taken_off[-1] * (1.0 if cell.factor is None else float(cell.factor.flat[cell.picks[-1]]))

    def grow(part: int, level: float) -> None:
        for cell, most in list(zip(cells, eligible, strict=True))[part :: workers.count]:
            if not cell.picks:
                share = count * most // sum(eligible)
                cell.restart(warm_start(cell.tiles, share, single, report, cell.factor))
            while len(cell.picks) < most and (not cell.picks or last_gain(cell) >= level):
                cell.sharpen()
                cell.take(cell.best())

    level, found = np.inf, 0
    while found < count:
        workers.share(partial(grow, level=level), workers.count)
        found = sum(len(cell.picks) for cell in cells)
        progress.update(min(found, count), count)
        unfinished = [cell for cell, most in zip(cells, eligible, strict=True) if len(cell.picks) < most]
        level = _FALL * max((last_gain(cell) for cell in unfinished), default=0.0)
    gains, turns, places = [], [], []
    for number, cell in enumerate(cells):
        picks = np.array(cell.picks, dtype=np.int64)
        lowered = np.array(cell.taken_off) * (1.0 if cell.factor is None else cell.factor.ravel()[picks])
        lowered[:1] = np.inf  # the first counts from an arbitrary length
        gains.append(np.minimum.accumulate(lowered))
        turns.append(np.arange(len(picks)))
        places.append(number * CELL * LANES + picks)
    order = np.lexsort((np.concatenate(turns), -np.concatenate(gains)))[:count]
    return np.concatenate(places)[order].tolist()


def warm_start(
    tiles: Tiles, count: int, workers: Workers, report: Callable[[str], None], factor: np.ndarray | None = None
) -> list[int]:
    """Positions of the first sixteenth of `count` picks, chosen on a quarter of the points; none for small sets.

    The first picks of greedy cost the most, yet any good spread does nearly as well. So they are chosen on every fourth
    point of the tree's order, each with the weight of its four neighbours, recursively. With a `factor` (tiles, 16) it
    is the point of largest factor among the four.
    """
    num_points = tiles.num_points
    if num_points < MIN_COARSE or count < 2 * LEAD:
        return []
    starts = np.arange(0, num_points, THINNING)
    weight = np.add.reduceat(tiles.weight.ravel()[:num_points], starts)
    kept, kept_factor = np.minimum(starts + THINNING // 2, num_points - 1), None
    if factor is not None:
        fours = np.zeros(len(starts) * THINNING)
        fours[:num_points] = factor.ravel()[:num_points]
        kept = np.minimum(starts + fours.reshape(-1, THINNING).argmax(axis=1), num_points - 1)
        kept_factor = fours[kept]
    coarse = lay_out(tiles.coords[kept // LANES, :, kept % LANES], weight, split=tiles.split)
    location = FacilityLocation(coarse, workers, report, kept_factor)
    location.restart(warm_start(coarse, count // LEAD, workers, report, location.factor))
    greedy(location, Target(count // LEAD), NullProgress())
    return [int(kept[coarse.rows.flat[position]]) for position in location.picks]
