"""Accuracy, its interval and its description."""

import math

import numpy as np
import pytest

from synthsieve.evaluation.accuracy import Scores, score_probabilities


def test_scores_by_hand():
    p = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.6, 0.4, 0.0]])
    scores = score_probabilities(p, np.array([0, 1, 1]))
    assert scores.accuracy == pytest.approx(2 / 3)
    assert scores.cross_entropy == pytest.approx(-(math.log(0.9) + math.log(0.8) + math.log(0.4)) / 3)
    assert scores.per_class[:2] == (1.0, 0.5)
    assert math.isnan(scores.per_class[2])
    assert scores.count == 3


def test_cross_entropy_is_finite():
    assert math.isfinite(score_probabilities(np.array([[1.0, 0.0]]), np.array([1])).cross_entropy)


def test_wilson_interval_coverage():
    rng = np.random.default_rng(0)
    covered = 0
    for right in rng.binomial(200, 0.93, size=4000):
        low, high = Scores(right / 200, 0.0, (), 200).interval()
        covered += low <= 0.93 <= high
    # 95 % nominal; the binomial's steps move it a little. Five standard errors of 4,000 trials are 1.7 points.
    assert abs(covered / 4000 - 0.95) < 0.02


@pytest.mark.parametrize("accuracy", [0.0, 1.0])
def test_interval_within_bounds(accuracy):
    low, high = Scores(accuracy, 0.0, (), 10).interval()
    assert 0 <= low < high <= 1


def test_describe():
    assert Scores(0.95, 0.1, (), 1000).describe("test") == (
        "test accuracy 95.0 % (95 % interval 93.5 to 96.2, 1000 examples)"
    )
