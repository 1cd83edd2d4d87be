"""Metrics: equal to scikit-learn's, and to closed forms where it has none."""

import numpy as np
import pytest
from sklearn import metrics as peers

from synthsieve.errors import CheckpointError, DataError
from synthsieve.evaluation.answers import Answers, concatenate, read_answers, write_answers
from synthsieve.evaluation.metrics import default_metric, mean_metrics, measure, weighted_metric, wilson_interval
from synthsieve.settings import Metric
from tests.errors import raises


def made_up(num_classes=3, n=200, seed=0, digits=2):
    """Labels and probabilities with ties, some of them wrong."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, num_classes, n)
    logits = rng.normal(size=(n, num_classes)) + 1.5 * np.eye(num_classes)[y]
    p = np.exp(logits)
    p = np.round(p / p.sum(axis=1, keepdims=True), digits)
    return y, p / p.sum(axis=1, keepdims=True), rng


@pytest.mark.parametrize("num_classes", [2, 3, 5])
def test_metrics_equal_those_of_scikit_learn(num_classes):
    y, p, _ = made_up(num_classes)
    predicted, found = p.argmax(axis=1), measure(y, p)
    assert found.count == 200
    assert found.accuracy == pytest.approx(peers.accuracy_score(y, predicted))
    assert found.balanced_accuracy == pytest.approx(peers.balanced_accuracy_score(y, predicted))
    assert found.f1 == pytest.approx(peers.f1_score(y, predicted, average="macro"))
    assert found.log_loss == pytest.approx(peers.log_loss(y, np.maximum(p, 1e-12)), rel=1e-6)
    np.testing.assert_array_equal(found.confusion, peers.confusion_matrix(y, predicted))
    areas = [peers.roc_auc_score(y == c, p[:, c]) for c in range(num_classes)]
    precisions = [peers.average_precision_score(y == c, p[:, c]) for c in range(num_classes)]
    assert found.auroc == pytest.approx(np.mean(areas))
    assert found.average_precision == pytest.approx(np.mean(precisions))
    assert found.majority_accuracy == pytest.approx(np.bincount(y).max() / 200)


@pytest.mark.parametrize("metric", [metric for metric in Metric if metric is not Metric.AUTO])
def test_weights_equal_repeated_examples(metric):
    y, p, rng = made_up()
    weights = rng.integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    twice = weighted_metric(metric, y[rows], p[rows], np.ones(len(rows)))
    assert weighted_metric(metric, y, p, weights.astype(float)) == pytest.approx(twice)


def test_calibration_error_of_constant_confidence():
    p = np.tile([0.8, 0.2], (100, 1))
    assert measure(np.repeat([0, 1], [60, 40]), p).calibration_error == pytest.approx(0.2)
    assert measure(np.repeat([0, 1], [80, 20]), p).calibration_error == pytest.approx(0.0)


def test_class_never_predicted_or_absent():
    p = np.tile([0.6, 0.3, 0.1], (10, 1))
    found = measure(np.repeat([0, 1], [8, 2]), p)
    assert found.recall == (1.0, 0.0, None)
    assert found.never_predicted() == [1]
    assert found.balanced_accuracy == 0.5
    assert measure(np.zeros(5, dtype=int), p[:5]).auroc is None
    with raises(DataError, "empty"):
        measure(np.zeros(0, dtype=int), p[:0])


def test_default_metric_of_unbalanced_labels():
    assert default_metric(np.array([10, 20])) is Metric.ACCURACY
    assert default_metric(np.array([10, 21])) is Metric.BALANCED_ACCURACY
    assert default_metric(np.array([5, 0, 5])) is Metric.ACCURACY


def test_mean_metrics():
    each = [measure(*made_up(seed=seed)[:2]) for seed in (0, 1)]
    found = mean_metrics(each)
    assert found["accuracy"] == pytest.approx((each[0].accuracy + each[1].accuracy) / 2)
    assert np.sum(found["confusion"]) == 400
    assert found["count"] == 200


def test_answers_round_trip_and_concatenate(tmp_path):
    y, p, _ = made_up(n=10)
    even, odd = (Answers(np.arange(k, 10, 2), y[k::2], p[k::2].astype(np.float32)) for k in (0, 1))
    write_answers(tmp_path / "a.npz", {"test": even}, {"chosen": "C=1"})
    found, metadata = read_answers(tmp_path / "a.npz")
    assert metadata == {"chosen": "C=1"}
    assert list(found) == ["test"]
    np.testing.assert_array_equal(found["test"].right, even.right)
    whole = concatenate([odd, even])
    np.testing.assert_array_equal(whole.rows, np.arange(10))
    np.testing.assert_array_equal(whole.y, y)
    np.testing.assert_array_equal(whole.right, p.argmax(axis=1) == y)


@pytest.mark.parametrize(
    "wrong",
    [
        {"y": np.array([0, 5])},
        {"y": np.array([0.0, 1.0])},
        {"rows": np.array([0, 1, 2])},
        {"probabilities": np.array([[0.5, np.nan], [0.5, 0.5]])},
        {"probabilities": np.array([0.5, 0.5])},
    ],
)
def test_damaged_answers_are_refused(tmp_path, wrong):
    good = {"rows": np.array([3, 4]), "y": np.array([0, 1]), "probabilities": np.full((2, 2), 0.5)}
    write_answers(tmp_path / "a.npz", {"test": Answers(**{**good, **wrong})})
    with raises(CheckpointError, "damaged-answers"):
        read_answers(tmp_path / "a.npz")


def test_metrics_by_hand():
    p = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.6, 0.4, 0.0]])
    found = measure(np.array([0, 1, 1]), p)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.log_loss == pytest.approx(-np.log([0.9, 0.8, 0.4]).mean())
    assert found.recall == (1.0, 0.5, None)
    assert found.count == 3
    assert found.as_row("test") == {
        "test_accuracy": found.accuracy,
        "test_balanced_accuracy": 0.75,
        "test_cross_entropy": found.log_loss,
    }


def test_log_loss_is_finite():
    assert np.isfinite(measure(np.array([1]), np.array([[1.0, 0.0]])).log_loss)


def test_wilson_interval_coverage():
    rng = np.random.default_rng(0)
    covered = 0
    for right in rng.binomial(200, 0.93, size=4000):
        low, high = wilson_interval(right / 200, 200)
        covered += low <= 0.93 <= high
    # 95 % nominal; the binomial's steps move it a little. Five standard errors of 4,000 trials are 1.7 points.
    assert abs(covered / 4000 - 0.95) < 0.02


@pytest.mark.parametrize("accuracy", [0.0, 1.0])
def test_interval_within_bounds(accuracy):
    low, high = wilson_interval(accuracy, 10)
    assert 0 <= low < high <= 1


def test_describe():
    y = np.repeat([0, 1], 500)
    p = np.eye(2)[np.where(np.arange(1000) < 50, 1 - y, y)]
    assert measure(y, p).describe("test") == "test accuracy 95.0 % (95 % interval 93.5 to 96.2, 1,000 examples)"
