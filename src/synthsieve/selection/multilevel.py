"""Coarse to fine: the first picks from a thinned-out set, the rest from everybody.

The first picks of greedy see the whole space and cost the most, yet any good spread does nearly as well there. So a
sixteenth of the picks is chosen on every fourth point of the tree's order, each counting for its four neighbours (and a
sixteenth of those on a sixteenth of the points, and so on). From them greedy goes on with exact gains over all points.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from synthsieve.progress import Silent
from synthsieve.selection.facility_location import FacilityLocation
from synthsieve.selection.greedy import Target, greedy
from synthsieve.selection.lanes import LANES
from synthsieve.selection.tiles import Tiles, lay_out
from synthsieve.selection.workers import Workers

THINNING = 4
LEAD = 16
# Below this, greedy from scratch is quick.
SMALL = 15_000


def warm_start(tiles: Tiles, count: int, workers: Workers, report: Callable[[str], None]) -> list[int]:
    """Positions of the first sixteenth of `count` picks, chosen on a quarter of the points; none for small sets."""
    if tiles.num_points < SMALL or count < 2 * LEAD:
        return []
    kept, weight = _thin(tiles)
    coarse = lay_out(_points_at(tiles, kept), weight, split=tiles.split)
    location = FacilityLocation(coarse, workers, report)
    location.stand(warm_start(coarse, count // LEAD, workers, report))
    greedy(location, Target(count // LEAD), Silent())
    return [int(kept[coarse.rows.flat[position]]) for position in location.picks]


def _thin(tiles: Tiles) -> tuple[np.ndarray, np.ndarray]:
    """Positions of every fourth point in tree order, and the weight of the four it stands for."""
    num_points = tiles.num_points
    starts = np.arange(0, num_points, THINNING)
    weight = np.add.reduceat(tiles.weight.ravel()[:num_points], starts)
    middle = np.minimum(starts + THINNING // 2, num_points - 1)
    return middle, weight


def _points_at(tiles: Tiles, positions: np.ndarray) -> np.ndarray:
    return tiles.coords[positions // LANES, :, positions % LANES]
