"""Calibrated probabilities: the temperature is recovered, the predicted class stays, few rows change little."""

import json
import math

import numpy as np
import pytest

from synthsieve.models.calibration import Calibration, combine, fit_temperature, match_shares, softmax


def labelled(n: int, factor: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities whose logits are `factor` times those that drew the labels."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.standard_normal((n, 4))
    p = softmax(logits)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return softmax(factor * logits), y


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_a_known_temperature_is_recovered(factor):
    p, y = labelled(20_000, factor)
    # Over seeds log T has a standard deviation of 0.01 here.
    assert math.log(fit_temperature(p, y)) == pytest.approx(math.log(factor), abs=0.05)


def test_calibration_keeps_the_class_and_sums_to_one():
    p, _ = labelled(1000, 5.0)
    for temperature in (0.3, 2.5, 20.0):
        found = Calibration(temperature, 10, "validation").apply(p)
        assert (found.argmax(axis=1) == p.argmax(axis=1)).all()
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    assert Calibration().apply(p) is p


def test_probabilities_of_zero_stay_finite():
    p = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = Calibration(3.0, 10, "validation").apply(p)
    assert np.isfinite(found).all()
    assert (found.argmax(axis=1) == [0, 1]).all()
    assert fit_temperature(p, np.array([0, 1])) == pytest.approx(1.0, abs=1e-3)


def test_few_rows_hardly_change_it():
    p = softmax(np.array([[2.0, 0.0], [0.0, 2.0]]))
    assert fit_temperature(p[:0], np.zeros(0, dtype=int)) == 1.0
    assert 0.8 < fit_temperature(p, np.array([0, 1])) < 1.0  # both right: the score alone would take T = 0.1
    assert fit_temperature(np.full((3, 2), np.nan), np.array([0, 1, 0])) == 1.0


def test_cross_fitted_temperatures_are_averaged_by_rows():
    parts = [Calibration(2.0, 30, "validation"), Calibration(0.5, 10, "validation"), Calibration()]
    found = combine(parts)
    assert (found.temperature, found.rows, found.source) == (pytest.approx(math.sqrt(2), abs=1e-4), 40, "cross-fitting")
    assert combine([Calibration()]) == Calibration()


def test_offsets_move_the_mean_prediction_to_the_shares():
    p, _ = labelled(2000, 2.0)
    shares = np.array([0.22, 0.24, 0.25, 0.29])
    offsets = match_shares(p, shares)
    np.testing.assert_allclose(softmax(np.log(p) + offsets).mean(axis=0), shares, atol=1e-4)
    assert offsets.sum() == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(match_shares(p, p.mean(axis=0)), 0, atol=1e-3)
    assert not match_shares(np.full((5, 4), np.nan), shares).any()
    assert not match_shares(p[:0], shares).any()


def test_offsets_of_certain_predictions_are_bounded():
    offsets = match_shares(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0.5, 0.5]))
    assert (np.abs(offsets) <= 1).all()


def test_it_is_stored_as_plain_values():
    made = Calibration(1.7, 143, "validation", (0.5, -0.5), (0.9, 0.1))
    assert Calibration.from_dict(json.loads(json.dumps(made.as_dict())), 2) == made
    with pytest.raises(ValueError, match="number of classes"):
        Calibration.from_dict(made.as_dict(), 3)
    with pytest.raises(ValueError, match="temperature above 0"):
        Calibration.from_dict({**made.as_dict(), "temperature": 0.0}, 2)
