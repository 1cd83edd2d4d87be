"""Refinement ends where no single exchange helps."""

import numpy as np
import pytest

from synthsieve.io.progress import NullProgress
from synthsieve.selection.budget import Target
from synthsieve.selection.greedy import greedy
from synthsieve.selection.kernels.facility_location import FacilityLocation
from synthsieve.selection.kernels.tiles import lay_out
from synthsieve.selection.kernels.workers import Workers
from synthsieve.selection.refinement import refine
from tests.selection.reference import bound, distances, gradients


def refined(points, count, weight, split=None):
    with Workers(1) as workers:
        location = FacilityLocation(lay_out(points, weight, split=split), workers)
        greedy(location, Target(count), NullProgress())
        before = [int(location.tiles.rows.flat[position]) for position in location.picks]
        swaps = refine(location, NullProgress())
        return before, [int(location.tiles.rows.flat[position]) for position in location.picks], swaps


@pytest.mark.parametrize("split", [None, 4])
@pytest.mark.parametrize("count", [1, 2, 12])
def test_no_exchange_lowers_the_bound_further(split, count):
    points = gradients(110, seed=count)
    weight = np.random.default_rng(0).integers(1, 5, 110).astype(float)
    before, after, swaps = refined(points, count, weight, split)
    matrix = distances(points, split)
    reached = bound(matrix, after, weight)
    assert len(set(after)) == count
    assert reached <= bound(matrix, before, weight) * (1 + 1e-12)
    assert (reached < bound(matrix, before, weight)) == (swaps > 0)
    for place in range(count):
        for candidate in set(range(110)) - set(after):
            exchanged = [*after[:place], candidate, *after[place + 1 :]]
            assert bound(matrix, exchanged, weight) >= reached * (1 - 1e-9)


@pytest.mark.parametrize("size", [1e-12, 1e-9])
def test_it_ends_where_second_nearest_picks_are_a_billion_times_farther(size):
    """Sums of such distances round; an exchange and its reverse both looked good, and went on forever."""
    rng = np.random.default_rng(0)
    near = rng.normal(size=(500, 2)) * size
    points = np.concatenate([near, rng.permutation(near) + 1.0, [[5.0, 0.0]]])
    for count in (3, 4, 6):
        before, after, _ = refined(points, count, np.ones(len(points)))
        matrix = distances(points)
        assert len(set(after)) == count
        assert bound(matrix, after) <= bound(matrix, before) * (1 + 1e-6)


def test_it_beats_greedy_by_a_percent_on_gradients():
    points = gradients(1_500)
    before, after, _ = refined(points, 150, np.ones(1_500))
    matrix = distances(points)
    assert bound(matrix, after) < 0.99 * bound(matrix, before)
