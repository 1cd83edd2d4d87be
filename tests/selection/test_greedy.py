"""Greedy picks what the plain algorithm picks, on easy and on hostile points."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthsieve.io.progress import NullProgress
from synthsieve.selection.budget import Target
from synthsieve.selection.greedy import choose, greedy
from synthsieve.selection.kernels import facility_location
from synthsieve.selection.kernels.facility_location import FacilityLocation
from synthsieve.selection.kernels.tiles import lay_out
from synthsieve.selection.kernels.workers import Workers
from synthsieve.selection.options import Method
from tests.selection.reference import distances, gradients, naive_greedy


def picks_of(points, count, weight=None, split=None, threads=1):
    weight = np.ones(len(points)) if weight is None else weight
    with Workers(threads) as workers:
        location = FacilityLocation(lay_out(points, weight, split=split), workers)
        greedy(location, Target(count), NullProgress())
        return [int(location.tiles.rows.flat[position]) for position in location.picks]


CASES = {
    "gaussian": lambda g: g.normal(size=(150, 4)),
    "skewed gradients": lambda g: gradients(170),
    "float32": lambda g: gradients(130, seed=5).astype(np.float32),
    "one dimension": lambda g: g.permutation(90).astype(float)[:, None],
    "far clusters": lambda g: np.concatenate([g.normal(size=(40, 3)) * 1e-4 + c * 1e3 for c in range(3)]),
    "an outlier": lambda g: np.concatenate([g.normal(size=(60, 3)) * 1e-4, [[1e6, 0.0, 0.0]]]),
    "many columns": lambda g: g.normal(size=(70, 60)),
    "fewer than a tile": lambda g: g.normal(size=(9, 2)),
    "exactly a tile": lambda g: g.normal(size=(16, 2)),
    "one point": lambda g: g.normal(size=(1, 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_picks_equal_the_plain_algorithms(name):
    points = CASES[name](np.random.default_rng(1))
    count = max(1, len(points) // 3)
    assert picks_of(points, count) == naive_greedy(distances(points), count)


@pytest.mark.parametrize("kind", ["whole", "fractional"])
def test_weighted_picks_equal_the_plain_algorithms(kind):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(120, 5))
    weight = rng.integers(1, 9, 120).astype(float) if kind == "whole" else rng.random(120) * 3
    assert picks_of(points, 30, weight) == naive_greedy(distances(points), 30, weight)


def test_outer_products_equal_their_materialised_form():
    rng = np.random.default_rng(4)
    points = rng.normal(size=(100, 9))
    assert picks_of(points, 25, split=4) == naive_greedy(distances(points, split=4), 25)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=2, max_size=60, unique=True), st.integers(1, 20))
def test_ties_go_to_the_lowest_row(values, count):
    """On a line of whole numbers every distance and every sum is exact, so ties are real ones."""
    points = np.array(values, dtype=float)[:, None]
    count = min(count, len(values))
    assert picks_of(points, count) == naive_greedy(distances(points), count)


def test_mirror_images_tie_exactly():
    """Irrational distances, summed in another order for every candidate, still tie: the four corners of a square."""
    corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]) * np.sqrt(2)
    others = np.random.default_rng(0).normal(size=(30, 2))
    mirrored = np.concatenate([corners, others, others * [1, -1], others * [-1, 1], -others]) * 0.37
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(mirrored))
        first = picks_of(mirrored[order], 2)[0]
        equal_rows = np.flatnonzero((np.abs(mirrored[order]) == np.abs(mirrored[order][first])).all(axis=1))
        assert first == equal_rows.min()


def test_threads_do_not_change_the_picks():
    points = gradients(3_000)
    assert picks_of(points, 60, threads=1) == picks_of(points, 60, threads=3)


def test_gains_kept_by_differences_equal_gains_computed_from_scratch():
    with Workers(1) as workers:
        location = FacilityLocation(lay_out(gradients(900), np.ones(900)), workers)
        greedy(location, Target(70), NullProgress())
        kept = location.gains.copy()
        location._compute_gains()
        assert np.array_equal(kept, location.gains)
        unpicked = np.setdiff1d(location.tiles.positions(), location.picks)
        assert np.array_equal(location.gains_of(unpicked), location.gains.ravel()[unpicked])


@pytest.mark.parametrize("split", [None, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pairs_computed_once_give_the_same_gains(monkeypatch, split, dtype):
    """Sums over all pairs, on any number of threads, equal those over the pairs that boxes leave, to the last bit."""
    rng, found = np.random.default_rng(2), []
    points, weight = rng.normal(size=(1_500, 9)).astype(dtype), rng.integers(0, 3, 1_500).astype(float)
    for limit, threads in ((1, 1), (1, 3), (-1, 1)):
        monkeypatch.setattr(facility_location, "_PICKS_WITHOUT_PRUNING", limit)
        with Workers(threads) as workers:
            location = FacilityLocation(lay_out(points, weight, split=split), workers)
            first = location.best()
            gains = location.gains.copy()
            location.restart([first])
            found.append((first, location.best(), gains[location.tiles.rows >= 0], location.gains.copy()))
    for one in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(one, found[0], strict=True))


@pytest.mark.parametrize("with_factor", [False, True])
def test_fast_in_cells(monkeypatch, with_factor):
    """A little longer than without cells, within the rows that may be picked, and the same on any number of threads."""
    monkeypatch.setattr("synthsieve.selection.greedy.CELL", 32)
    points, factor = gradients(3_000), np.ones(3_000)
    factor[::3] = 0.0 if with_factor else 1.0
    found = []
    for threads, method in ((1, Method.FAST), (3, Method.FAST), (1, Method.EXACT)):
        with Workers(threads) as workers:
            tiles = lay_out(points, np.ones(3_000))
            location = FacilityLocation(tiles, workers, factor=factor if with_factor else None)
            rng = np.random.default_rng(0)
            choose(method, location, Target(300), workers, NullProgress(), lambda message: None, rng=rng)
        found.append((tiles.rows.flat[location.picks].tolist(), location.bound))
    assert found[0] == found[1]
    assert len(set(found[0][0])) == 300
    assert factor[found[0][0]].all()
    assert found[2][1] < found[0][1] < 1.05 * found[2][1]


def test_a_bound_stops_at_the_first_pick_that_meets_it():
    points = gradients(400)
    matrix = distances(points)
    picks = naive_greedy(matrix, 200)
    lengths = [matrix[:, picks[: k + 1]].min(axis=1).sum() for k in range(200)]
    wanted = (lengths[40] + lengths[41]) / 2
    with Workers(1) as workers:
        location = FacilityLocation(lay_out(points, np.ones(400)), workers)
        greedy(location, Target(400, bound=wanted), NullProgress())
    assert len(location.picks) == 42
    assert sum(location.taken_off[1:]) == pytest.approx(lengths[0] - lengths[41], rel=1e-9)
