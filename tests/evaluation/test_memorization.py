"""Memorization: nearest neighbours are exact, copies are detected, new draws are not."""

import json
import tracemalloc

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from synthsieve.errors import DataError
from synthsieve.evaluation.memorization import CopyVerdict, describe_copies, memorization, nearest_distances
from tests.errors import raises


def draw(seed, *sizes, dims=6):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, dims)) for size in sizes]


@pytest.mark.parametrize(("n", "m", "dims"), [(1, 1, 1), (300, 170, 3), (40, 900, 50)])
def test_nearest_equals_brute_force(n, m, dims):
    points, references = draw(n, n, m, dims=dims)
    nearest = nearest_distances(points, references)
    everything = cdist(points, references)
    assert nearest.indices.tolist() == everything.argmin(axis=1).tolist()
    np.testing.assert_allclose(nearest.distances, everything.min(axis=1), rtol=1e-13)


def test_equal_rows_are_at_distance_zero():
    rng = np.random.default_rng(1)
    points, references = rng.integers(0, 3, (200, 3)) * 0.1, rng.integers(0, 3, (150, 3)) * 0.1
    nearest = nearest_distances(points + 1e5, references + 1e5)
    by_hand = np.abs(points[:, None] - references[None]).max(axis=2).min(axis=1)
    assert (nearest.distances[by_hand == 0] == 0).all()
    assert np.array_equal(points[by_hand == 0], references[nearest.indices[by_hand == 0]])


def test_ties_go_to_the_lowest_row():
    references = np.array([[2.0], [1.0], [-1.0], [1.0]])
    assert nearest_distances(np.zeros((1, 1)), references).indices.tolist() == [1]


@pytest.mark.parametrize("order", [1, -1])
def test_references_in_order_of_distance(order):
    references = np.arange(3000.0)[::order, None]
    nearest = nearest_distances(np.array([[-1.0], [2999.4]]), references)
    assert references[nearest.indices, 0].tolist() == [0, 2999]


@pytest.mark.parametrize(("offset", "scale"), [(1e7, 1.0), (0.0, 1e90), (0.0, 1e-90), (1e12, 1e6)])
def test_large_offsets_and_scales(offset, scale):
    points, references = (offset + scale * part for part in draw(3, 200, 300))
    nearest = nearest_distances(points, references)
    tree, indices = cKDTree((references - offset) / scale).query((points - offset) / scale)
    assert nearest.indices.tolist() == indices.tolist()
    np.testing.assert_allclose(nearest.distances / scale, tree, rtol=1e-5)


def test_integers_booleans_and_float32():
    points = np.array([[0, 255], [3, 4]], dtype=np.uint8)
    assert nearest_distances(points, points[1:]).distances.tolist() == [float(np.hypot(3, 251)), 0.0]
    assert nearest_distances(points.astype(np.float32), points).distances.tolist() == [0, 0]
    assert nearest_distances(points > 3, points > 3).distances.tolist() == [0, 0]


def test_memory_is_bounded():
    points, references = draw(4, 6000, 6000, dims=4)
    tracemalloc.start()
    try:
        nearest_distances(points, references)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8e6  # all distances would be 288 MB


def test_copies_are_detected():
    synthetic, train, held_out = draw(5, 1000, 2000, 1000)
    synthetic[::20] = train[:50]
    found = memorization(synthetic, train, held_out)
    assert (found.duplicates, found.held_out_duplicates) == (50, 0)
    assert found.near_share >= 0.05
    assert found.synthetic_quantiles[0] == 0
    assert found.verdict is CopyVerdict.COPIES
    assert found.describe().startswith("copies suspected: ")


def figures(**changed):
    usual = {"verdict": "no sign of copies", "near_share": 0.013, "expected_share": 0.048, "duplicates": 0}
    return {**usual, "held_out_duplicates": 0, "num_synthetic": 300, "num_held_out": 200, **changed}


def test_description_starts_with_the_verdict():
    shares = "1.3 % of the samples lie very near a training example, where 4.8 % of new real data would"
    assert describe_copies(figures()) == f"no sign of copies: {shares}"
    one = describe_copies(figures(verdict="copies suspected", duplicates=1))
    assert one.startswith("copies suspected: 1 of 300 samples equals a training example; the other samples show no")
    many = describe_copies(figures(verdict="copies suspected", near_share=0.2))
    assert many.startswith("copies suspected: 20.0 % of the samples lie very near")
    both = describe_copies(figures(verdict="copies suspected", near_share=0.2, duplicates=5))
    assert both.startswith("copies suspected: 5 of 300 samples equal a training example; 20.0 % of")
    repeated = describe_copies(figures(duplicates=3, held_out_duplicates=2))
    assert "3 of 300 samples equal a training example, as 2 of 200 held-out examples do" in repeated
    assert "too few" in describe_copies(figures(verdict="cannot tell", num_synthetic=9))


def test_copy_through_float32_is_detected():
    synthetic, train, held_out = draw(6, 1000, 2000, 1000)
    synthetic[3] = train[7].astype(np.float32)
    synthetic[4] = train[8] + 1e-3
    found = memorization(synthetic + 100, train + 100, held_out + 100)
    assert found.duplicates == 1
    assert found.verdict is CopyVerdict.COPIES


def test_near_copies_are_detected():
    synthetic, train, held_out = draw(7, 1000, 2000, 1000)
    synthetic[:100] = train[:100] + 0.01 * synthetic[:100]
    found = memorization(synthetic, train, held_out)
    assert found.duplicates == 0
    assert found.near_share >= 0.1
    assert found.p_value < 1e-6
    assert found.verdict is CopyVerdict.COPIES


def test_samples_without_noise_are_near_all_examples_but_no_copies():
    """Data on a plane with noise beside it; samples have none, so each is near examples, seen in training or not."""
    rng = np.random.default_rng(14)
    plane = [np.pad(rng.normal(size=(size, 2)), [(0, 0), (0, 8)]) for size in (1000, 1000, 1000)]
    train, held_out = (part + 0.3 * rng.normal(size=part.shape) for part in plane[1:])
    found = memorization(plane[0], train, held_out)
    assert found.near_share > 0.05
    assert found.p_value < 1e-6
    assert abs(found.reached_share - found.reached_held_out_share) < 0.05
    assert found.verdict is CopyVerdict.NO_SIGN
    assert "of held-out examples" in found.describe()
    plane[0][:100] = train[:100] + 0.01 * rng.normal(size=(100, 10))
    again = memorization(plane[0], train, held_out)
    assert again.reached_share > again.reached_held_out_share
    assert again.verdict is CopyVerdict.COPIES


def test_new_draws_are_near_at_the_expected_rate():
    """The mean share of 200 data sets is 1 %; at most the stated share of them is accused."""
    seen = [memorization(*draw(100 + seed, 300, 300, 299, dims=3)) for seed in range(200)]
    shares = np.array([one.near_share for one in seen])
    assert {one.expected_share for one in seen} == {0.01}
    assert abs(shares.mean() - 0.01) < 4 * shares.std() / np.sqrt(200)
    aucs = np.array([one.auc for one in seen])
    assert abs(aucs.mean() - 0.5) < 4 * aucs.std() / np.sqrt(200)
    assert sum(one.verdict is CopyVerdict.COPIES for one in seen) <= 8  # 2 expected; more than 8 once in 5,000
    assert np.mean([one.p_value <= 0.2 for one in seen]) < 0.2 + 4 * np.sqrt(0.16 / 200)


def test_repetitive_data_are_not_copies():
    rng = np.random.default_rng(8)
    synthetic, train, held_out = (rng.integers(0, 4, (size, 4)) for size in (500, 400, 500))
    found = memorization(synthetic, train, held_out)
    assert found.duplicates > 100
    assert found.verdict is CopyVerdict.NO_SIGN
    synthetic[:] = train[rng.integers(0, 400, 500)]
    assert memorization(synthetic, train, held_out).verdict is CopyVerdict.COPIES


def test_auc_equals_brute_force():
    synthetic, train, held_out = draw(9, 150, 100, 130)
    found = memorization(0.8 * synthetic, train, held_out)
    near, far = cdist(0.8 * synthetic, train).min(axis=1), cdist(held_out, train).min(axis=1)
    assert found.auc == pytest.approx((near[:, None] < far).mean())
    assert found.auc > 0.6


def test_few_rows_cannot_tell():
    found = memorization(*draw(10, 30, 200, 500))
    assert found.verdict is CopyVerdict.CANNOT_TELL
    assert found.describe().endswith("give at least 100 of each")
    assert memorization(*draw(10, 500, 200, 30)).verdict is CopyVerdict.CANNOT_TELL
    assert memorization(*draw(10, 500, 200, 500)).verdict is CopyVerdict.NO_SIGN


def test_as_dict_is_json():
    found = memorization(*draw(12, 100, 100, 100))
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False)) == found.as_dict()
    nearest = nearest_distances(*draw(12, 3, 4))
    assert json.loads(json.dumps(nearest.as_dict())) == nearest.as_dict()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"train": np.zeros((5, 7))}, "feature-mismatch"),
        ({"held_out": np.full((5, 6), np.nan)}, "non-finite"),
        ({"held_out": np.full((5, 6), 1e200)}, "non-finite"),
        ({"synthetic": np.zeros((0, 6))}, "not-a-matrix"),
        ({"train": np.zeros((5, 2, 3))}, "not-a-matrix"),
        ({"train": np.full((5, 6), "a")}, "not-a-matrix"),
    ],
)
def test_bad_input_is_refused(change, code):
    given = dict(zip(("synthetic", "train", "held_out"), draw(13, 20, 20, 20), strict=True)) | change
    with raises(DataError, code):
        memorization(**given)
