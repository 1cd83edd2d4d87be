"""Quick picks: as many as the true ones, weights that sum to each class, and nearer to all samples than random ones."""

import numpy as np
import pytest

from synthsieve.gallery.preview import picks_on_a_line
from synthsieve.selection.gradients import residuals_of_logits


def residuals(n=2000, seed=0):
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(n, 4)) * 2
    logits[:, 1] += 6
    return residuals_of_logits(logits, np.full(n, 1))


def bound(points, picks):
    return np.linalg.norm(points[:, None] - points[picks][None], axis=2).min(axis=1).sum()


@pytest.mark.parametrize("count", [1, 2, 7, 200, 1999, 2000, 5000])
def test_picks_are_distinct_and_stand_for_every_sample_once(count):
    points = residuals()
    picks, weights = picks_on_a_line(points, 1, count)
    assert len(set(picks.tolist())) == len(picks) == min(count, 2000)
    assert weights.sum() == 2000
    assert (weights >= 1).all()


def test_quick_picks_beat_random_ones():
    points, generator = residuals(), np.random.default_rng(1)
    picks, _ = picks_on_a_line(points, 1, 100)
    assert bound(points, picks) < 0.9 * bound(points, generator.choice(2000, 100, replace=False))


def test_equal_samples_are_shared_out():
    picks, weights = picks_on_a_line(np.zeros((10, 3)), 0, 3)
    assert len(set(picks.tolist())) == 3
    assert weights.sum() == 10
    assert picks_on_a_line(np.zeros((1, 3)), 0, 1)[1].tolist() == [1.0]
