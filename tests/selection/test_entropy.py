"""Entropy, exact far below float32, and the filter's reasons."""

import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthsieve.errors import SelectionError
from synthsieve.selection.entropy import (
    PrecisionWarning,
    Reason,
    entropy_of_logits,
    entropy_of_probabilities,
    filter_by_entropy,
    search_ceiling,
)
from tests.errors import raises


def exact_entropy(logits):
    mpmath.mp.dps = 80
    powers = [mpmath.exp(mpmath.mpf(float(value))) for value in logits]
    total = sum(powers)
    return -sum(power / total * mpmath.log(power / total) for power in powers if power > 0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-40, 40), min_size=2, max_size=6))
def test_entropy_of_logits_to_ten_digits(logits):
    assert entropy_of_logits(np.array([logits]))[0] == pytest.approx(float(exact_entropy(logits)), rel=1e-10)


@pytest.mark.parametrize("rest", [1e-3, 1e-7, 1e-10, 1e-14])
def test_entropy_where_one_minus_p_vanishes_in_float32(rest):
    logits = np.array([[0.0, np.log(rest / 2), np.log(rest / 2)]])
    exact = float(exact_entropy(logits[0]))
    assert entropy_of_logits(logits)[0] == pytest.approx(exact, rel=1e-10)
    p = np.array([[1.0 - rest, rest / 2, rest / 2]])
    assert entropy_of_probabilities(p)[0] == pytest.approx(rest - rest * np.log(rest / 2), rel=1e-3)


def test_known_entropies():
    assert entropy_of_logits(np.zeros((1, 7)))[0] == pytest.approx(np.log(7))
    assert entropy_of_logits(np.array([[1e4, 0.0]]))[0] == 0.0
    assert entropy_of_probabilities(np.array([[0.25] * 4, [1.0, 0, 0, 0]])).tolist() == pytest.approx([np.log(4), 0.0])


def test_float32_probabilities_warn_below_what_they_resolve():
    p = np.array([[1.0, 0.0]], dtype=np.float32)
    with pytest.warns(PrecisionWarning, match="float32 probabilities"):
        entropy_of_probabilities(p, entropy_ceiling=1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        entropy_of_probabilities(p, entropy_ceiling=1e-3)
        entropy_of_probabilities(p.astype(np.float64), entropy_ceiling=1e-9)


def test_every_rejected_row_keeps_its_reason():
    entropy, labels = np.array([0.1, 0.5, 0.2, 0.05]), np.array([0, 0, 1, 1])
    survivors = filter_by_entropy(entropy, labels, entropy_ceiling=0.2, predicted=np.array([0, 0, 1, 0]))
    assert survivors.reason.tolist() == [Reason.KEPT, Reason.HIGH_ENTROPY, Reason.HIGH_ENTROPY, Reason.OTHER_LABEL]
    assert survivors.ceiling == 0.2
    assert all(Reason(code).describe() for code in survivors.reason)


def test_kept_fractions_overall_and_per_class():
    entropy, labels = np.array([1.0, 2, 3, 4, 10, 11, 12, 13]), np.repeat([0, 1], 4)
    assert np.flatnonzero(filter_by_entropy(entropy, labels, keep_fraction=0.5).kept).tolist() == [0, 1, 2, 3]
    per_class = filter_by_entropy(entropy, labels, keep_fraction=0.5, keep_per_class=True)
    assert np.flatnonzero(per_class.kept).tolist() == [0, 1, 4, 5]
    ties = filter_by_entropy(np.zeros(10), np.zeros(10, dtype=int), keep_fraction=0.3)
    assert np.flatnonzero(ties.kept).tolist() == [0, 1, 2]


def test_auto_takes_the_best_ceiling_and_the_lowest_among_equals():
    found = search_ceiling(np.linspace(0, 1, 100), lambda ceiling: -abs(ceiling - 0.4))
    assert found.ceiling == pytest.approx(0.4, abs=0.01)
    assert len(found.scores) == len(found.ceilings)
    assert search_ceiling(np.ones(3), lambda ceiling: 1.0, ceilings=[3.0, 1.0, 2.0]).ceiling == 1.0


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"entropy_ceiling": 0.01}, "no-survivors"),
        ({"entropy_ceiling": 0.5, "keep_fraction": 0.5}, "two-filters"),
        ({"entropy_ceiling": 0.0}, "entropy-ceiling"),
        ({"keep_fraction": 1.5}, "keep-fraction"),
        ({"keep_per_class": True}, "keep-fraction"),
        ({"entropy_ceiling": 9.0, "predicted": np.array([1, 1])}, "no-survivors"),
    ],
)
def test_invalid_filters(options, code):
    with raises(SelectionError, code):
        filter_by_entropy(np.array([0.1, 0.3]), np.zeros(2, dtype=int), **options)


def test_invalid_ceiling_search():
    with raises(SelectionError, "ceiling-score"):
        search_ceiling(np.ones(3), lambda ceiling: float("nan"))
    with raises(SelectionError, "ceilings"):
        search_ceiling(np.ones(3), lambda ceiling: 1.0, ceilings=[])
