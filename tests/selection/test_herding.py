"""Kernel herding."""

import numpy as np
import pytest

from synthsieve.selection import herding
from synthsieve.selection.herding import herd


@pytest.fixture
def cloud():
    return np.random.default_rng(0).normal(size=(400, 3))


def test_picks_are_distinct_and_the_first_is_the_densest(cloud):
    picked = herd(cloud, cloud, 400)
    assert sorted(picked) == list(range(400))
    assert np.linalg.norm(cloud[picked[0]]) < 0.6
    assert herd(cloud, cloud, 20).tolist() == picked[:20].tolist()


def test_picks_follow_the_target_and_not_the_points(cloud):
    target = cloud[:100] * 0.3 + [1.5, 0, 0]
    picked = cloud[herd(cloud, target, 15)]
    assert picked[:, 0].mean() > 0.8
    assert abs(picked[:, 1].mean()) < 0.3


def test_kernel_means_are_nearer_than_those_of_random_picks(cloud):
    def discrepancy(rows):
        kernel = lambda a, b: np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=2) / 4).mean()  # noqa: E731
        return kernel(cloud[rows], cloud[rows]) - 2 * kernel(cloud[rows], cloud)

    rng = np.random.default_rng(1)
    assert discrepancy(herd(cloud, cloud, 20)) < min(discrepancy(rng.permutation(400)[:20]) for _ in range(50))


def test_equal_points_are_picked_in_order():
    assert herd(np.ones((5, 2)), np.ones((5, 2)), 5).tolist() == [0, 1, 2, 3, 4]


def test_blocks_and_many_targets_change_nothing(cloud, monkeypatch):
    expected = herd(cloud, cloud[:7], 12)
    monkeypatch.setattr(herding, "BLOCK", 33)
    assert herd(cloud, cloud[:7], 12).tolist() == expected.tolist()
    monkeypatch.setattr(herding, "MAX_TARGET", 50)
    assert len(set(herd(cloud, cloud, 12))) == 12
