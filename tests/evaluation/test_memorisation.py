"""Nearest neighbours are exact, copies are found, fresh draws are not accused."""

import json
import tracemalloc

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from scipy.stats import mannwhitneyu

from synthsieve.errors import DataError
from synthsieve.evaluation.memorisation import Verdict, copies_in_words, memorisation, nearest_distances


def draw(seed, *sizes, dims=6):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=(size, dims)) for size in sizes]


@pytest.mark.parametrize(("n", "m", "dims"), [(1, 1, 1), (300, 170, 3), (40, 900, 50)])
@pytest.mark.parametrize("block_rows", [17, 64, 1024])
def test_the_nearest_are_those_of_all_distances(n, m, dims, block_rows):
    points, references = draw(n, n, m, dims=dims)
    nearest = nearest_distances(points, references, block_rows=block_rows)
    everything = cdist(points, references)
    assert nearest.indices.tolist() == everything.argmin(axis=1).tolist()
    np.testing.assert_allclose(nearest.distances, everything.min(axis=1), rtol=1e-13)


@pytest.mark.parametrize("block_rows", [7, 50, 1000])
def test_equal_distances_go_to_the_lowest_row_whatever_the_block(block_rows):
    generator = np.random.default_rng(1)
    points, references = generator.integers(0, 3, (200, 3)) * 0.1, generator.integers(0, 3, (150, 3)) * 0.1
    nearest = nearest_distances(points, references, block_rows=block_rows)
    by_hand = ((points[:, None] - references[None]) ** 2).sum(axis=2)
    assert nearest.indices.tolist() == by_hand.argmin(axis=1).tolist()
    assert (nearest.distances[nearest.distances < 0.05] == 0).all()


@pytest.mark.parametrize("order", [1, -1])
def test_references_in_order_of_distance(order):
    """Each block nearer than the one before, or farther."""
    references = np.arange(3000.0)[::order, None]
    nearest = nearest_distances(np.array([[-1.0], [2999.4]]), references, block_rows=100)
    assert references[nearest.indices, 0].tolist() == [0, 2999]


@pytest.mark.parametrize(("offset", "scale"), [(1e7, 1.0), (0.0, 1e200), (0.0, 1e-200), (1e12, 1e6)])
def test_far_from_the_origin_and_in_odd_units(offset, scale):
    points, references = (offset + scale * part for part in draw(3, 200, 300))
    nearest = nearest_distances(points, references)
    tree, indices = cKDTree((references - offset) / scale).query((points - offset) / scale)
    assert nearest.indices.tolist() == indices.tolist()
    np.testing.assert_allclose(nearest.distances / scale, tree, rtol=1e-5)


def test_whole_numbers_and_float32_are_taken_as_they_are():
    points = np.array([[0, 255], [3, 4]], dtype=np.uint8)
    assert nearest_distances(points, points[1:]).distances.tolist() == [float(np.hypot(3, 251)), 0.0]
    assert nearest_distances(points.astype(np.float32), points).distances.tolist() == [0, 0]
    assert nearest_distances(points > 3, points > 3).distances.tolist() == [0, 0]


def test_memory_does_not_grow_with_the_product():
    points, references = draw(4, 6000, 6000, dims=4)
    tracemalloc.start()
    try:
        nearest_distances(points, references, block_rows=256)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8e6  # all distances would be 288 MB


def test_copies_of_training_rows_are_found():
    synthetic, train, held_out = draw(5, 1000, 2000, 1000)
    synthetic[::20] = train[:50]
    found = memorisation(synthetic, train, held_out)
    assert (found.duplicates, found.held_out_duplicates) == (50, 0)
    assert found.near_share >= 0.05
    assert found.synthetic_quantiles[0] == 0
    assert found.verdict is Verdict.COPIES
    assert found.in_words().startswith("copies suspected: ")


def figures(**changed):
    usual = {"verdict": "no sign of copies", "near_share": 0.013, "expected_share": 0.048, "duplicates": 0}
    return {**usual, "held_out_duplicates": 0, "num_synthetic": 300, "num_held_out": 200, **changed}


def test_the_sentence_gives_the_reason_for_the_verdict_first():
    shares = "1.3 % of the samples lie very near a training example, where 4.8 % of new real data would"
    assert copies_in_words(figures()) == f"no sign of copies: {shares}"
    one = copies_in_words(figures(verdict="copies suspected", duplicates=1))
    assert one.startswith("copies suspected: 1 of 300 samples equals a training example; the other samples show no")
    many = copies_in_words(figures(verdict="copies suspected", near_share=0.2))
    assert many.startswith("copies suspected: 20.0 % of the samples lie very near")
    both = copies_in_words(figures(verdict="copies suspected", near_share=0.2, duplicates=5))
    assert both.startswith("copies suspected: 5 of 300 samples equal a training example; 20.0 % of")
    repeated = copies_in_words(figures(duplicates=3, held_out_duplicates=2))
    assert "3 of 300 samples equal a training example, as 2 of 200 held-out examples do" in repeated
    assert "too few" in copies_in_words(figures(verdict="cannot tell", num_synthetic=9))


def test_one_copy_among_many_is_found_after_float32_and_back():
    synthetic, train, held_out = draw(6, 1000, 2000, 1000)
    synthetic[3] = train[7].astype(np.float32)
    synthetic[4] = train[8] + 1e-3
    found = memorisation(synthetic + 100, train + 100, held_out + 100)
    assert found.duplicates == 1
    assert found.verdict is Verdict.COPIES


def test_near_copies_are_suspected_without_a_duplicate():
    synthetic, train, held_out = draw(7, 1000, 2000, 1000)
    synthetic[:100] = train[:100] + 0.01 * synthetic[:100]
    found = memorisation(synthetic, train, held_out)
    assert found.duplicates == 0
    assert found.near_share >= 0.1
    assert found.p_value < 1e-6
    assert found.verdict is Verdict.COPIES


def test_fresh_draws_are_near_as_often_as_expected():
    """The mean share of 200 data sets is 1 %; at most the stated share of them is accused."""
    seen = [memorisation(*draw(100 + seed, 300, 300, 299, dims=3)) for seed in range(200)]
    shares = np.array([one.near_share for one in seen])
    assert {one.expected_share for one in seen} == {0.01}
    assert abs(shares.mean() - 0.01) < 4 * shares.std() / np.sqrt(200)
    aucs = np.array([one.auc for one in seen])
    assert abs(aucs.mean() - 0.5) < 4 * aucs.std() / np.sqrt(200)
    assert sum(one.verdict is Verdict.COPIES for one in seen) <= 8  # 2 expected; more than 8 once in 5,000
    assert np.mean([one.p_value <= 0.2 for one in seen]) < 0.2 + 4 * np.sqrt(0.16 / 200)


def test_data_that_repeat_themselves_are_no_copies():
    generator = np.random.default_rng(8)
    synthetic, train, held_out = (generator.integers(0, 4, (size, 4)) for size in (500, 400, 500))
    found = memorisation(synthetic, train, held_out)
    assert found.duplicates > 100
    assert found.verdict is Verdict.NO_SIGN
    synthetic[:] = train[generator.integers(0, 400, 500)]
    assert memorisation(synthetic, train, held_out).verdict is Verdict.COPIES


def test_the_auc_is_mann_whitneys():
    synthetic, train, held_out = draw(9, 150, 100, 130)
    found = memorisation(0.8 * synthetic, train, held_out)
    ours, theirs = cdist(0.8 * synthetic, train).min(axis=1), cdist(held_out, train).min(axis=1)
    assert found.auc == pytest.approx(mannwhitneyu(theirs, ours).statistic / (150 * 130))
    assert found.auc > 0.6


def test_few_rows_cannot_tell():
    found = memorisation(*draw(10, 30, 200, 500))
    assert found.verdict is Verdict.CANNOT_TELL
    assert found.in_words().endswith("give at least 100 of each")
    assert memorisation(*draw(10, 500, 200, 30)).verdict is Verdict.CANNOT_TELL
    assert memorisation(*draw(10, 500, 200, 500)).verdict is Verdict.NO_SIGN


def test_blocks_do_not_matter():
    synthetic, train, held_out = draw(11, 200, 300, 150)
    synthetic[:5] = train[:5]
    first, *others = (memorisation(synthetic, train, held_out, block_rows=size) for size in (1000, 13, 33))
    assert all(other == first for other in others)


def test_as_dict_is_json():
    found = memorisation(*draw(12, 100, 100, 100))
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False)) == found.as_dict()
    nearest = nearest_distances(*draw(12, 3, 4))
    assert json.loads(json.dumps(nearest.as_dict())) == nearest.as_dict()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"train": np.zeros((5, 7))}, "as many features in `train` as in `synthetic`"),
        ({"held_out": np.full((5, 6), np.nan)}, "finite numbers in `held_out`, got NaN or infinity in 5 rows"),
        ({"synthetic": np.zeros((0, 6))}, "`synthetic` as a matrix"),
        ({"train": np.zeros((5, 2, 3))}, "`train` as a matrix"),
        ({"train": np.full((5, 6), "a")}, "`train` as a matrix"),
        ({"block_rows": 0}, "block_rows of at least 1"),
    ],
)
def test_bad_input_is_told(change, words):
    given = dict(zip(("synthetic", "train", "held_out"), draw(13, 20, 20, 20), strict=True)) | change
    with pytest.raises(DataError, match=words):
        memorisation(**given)
