"""Boxes: every point in one, nearly equally many in each, equal points together."""

import json

import numpy as np
import pytest

from synthsieve.distributed.selection.partition import Splits, is_sampled, split


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 16])
def test_parts_are_nearly_equal(parts):
    points = np.random.default_rng(0).normal(size=(8_000, 4))
    splits = split(points[:4_000], parts)
    assert splits.num_leaves == parts
    sizes = np.bincount(splits.leaf_of(points), minlength=parts)
    assert sizes.sum() == len(points)
    assert sizes.min() > 0.8 * len(points) / parts
    assert Splits(json.loads(json.dumps(splits.tree))) == splits


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_equal_points_lie_together_and_heavy_ones_end_the_splitting(kind):
    points = np.random.default_rng(0).integers(0, 3, size=(1_000, 2)).astype(kind) / 3
    splits = split(points, 40)
    assert splits.num_leaves == 9
    leaf = splits.leaf_of(points)
    for one in range(9):
        assert len(np.unique(points[leaf == one], axis=0)) == 1
    assert split(np.zeros((50, 3)), 4).num_leaves == 1
    assert split(np.zeros((0, 3)), 4).leaf_of(np.ones((2, 3))).tolist() == [0, 0]


def test_a_sample_follows_from_rows_and_seed_alone():
    rows = np.arange(100_000)
    sampled = is_sampled(0, rows, 0.1, seed=0)
    assert abs(sampled.mean() - 0.1) < 4 * np.sqrt(0.09 / len(rows))
    assert np.array_equal(sampled[40_000:], is_sampled(40_000, rows[:60_000], 0.1, seed=0))
    assert not np.array_equal(sampled, is_sampled(0, rows, 0.1, seed=1))
    assert is_sampled(0, rows, 1.0, seed=0).all()
