"""Metrics of a classifier on labelled examples.

All metrics are of the probabilities (n, num_classes) and the labels (n,); higher is better for all but log-loss and
calibration error. Averages over classes count every class that occurs among the labels once (macro averages).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats

from synthsieve.errors import DataError
from synthsieve.settings import Metric

UNBALANCED = 2.0  # ratio of the largest to the smallest class above which classes are unbalanced
CALIBRATION_BINS = 10
SMALLEST_PROBABILITY = 1e-12
NOT_AVERAGED = ("count", "recall", "confusion")

METRIC_NAMES = {
    Metric.ACCURACY: "accuracy",
    Metric.BALANCED_ACCURACY: "balanced accuracy",
    Metric.F1: "macro F1",
    Metric.AUROC: "AUROC",
    Metric.AVERAGE_PRECISION: "average precision",
    Metric.LOG_LOSS: "log-loss",
}


@dataclass(frozen=True)
class Metrics:
    """Metrics of a classifier on labelled examples."""

    count: int  # number of examples
    accuracy: float  # share of examples whose most probable class is correct
    balanced_accuracy: float  # the same within each class, averaged over classes
    f1: float  # F1 of each class, averaged
    # area under the ROC curve of each class against the rest, averaged; None where only one class occurs
    auroc: float | None
    average_precision: float | None  # area under the precision-recall curve of each class, averaged; None likewise
    log_loss: float  # mean -log p(true class), in nats
    calibration_error: float  # |accuracy - confidence|, averaged over ten bins of confidence with about equal counts
    majority_accuracy: float  # accuracy of always predicting the most frequent class of these examples
    # share of each class's examples that are predicted as that class; None for a class without examples
    recall: tuple[float | None, ...]
    # (num_classes, num_classes) counts; row = true class, column = predicted class
    confusion: tuple[tuple[int, ...], ...]
    calibration_error_before: float | None = None  # that of the model's own probabilities, where they were calibrated

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for JSON."""
        plain = asdict(self)
        return {**plain, "recall": list(self.recall), "confusion": [list(row) for row in self.confusion]}

    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the accuracy, over the choice of examples."""
        return wilson_interval(self.accuracy, self.count)

    def describe(self, part: str) -> str:
        """`test accuracy 95.3 % (95 % interval 94.1 to 96.2, 359 examples)`."""
        low, high = self.interval()
        interval = f"95 % interval {100 * low:.1f} to {100 * high:.1f}"
        return f"{part} accuracy {100 * self.accuracy:.1f} % ({interval}, {self.count:,} examples)"

    def as_row(self, prefix: str) -> dict[str, float]:
        """The figures that the history of a training has."""
        return {
            f"{prefix}_accuracy": self.accuracy,
            f"{prefix}_balanced_accuracy": self.balanced_accuracy,
            f"{prefix}_cross_entropy": self.log_loss,
        }

    def never_predicted(self) -> list[int]:
        """Classes with examples of which none is predicted as that class."""
        return [c for c, share in enumerate(self.recall) if share == 0.0]


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of `count` examples."""
    interval = stats.binomtest(round(share * count), count).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def measure(y: np.ndarray, probabilities: np.ndarray, uncalibrated: np.ndarray | None = None) -> Metrics:
    """Every metric of `probabilities` (n, num_classes) against the labels `y` (n,).

    `uncalibrated` are those before calibration, (n, num_classes), where they differ.
    """
    if not len(y):
        message = "metrics need at least one labelled example, got none: give a test set with labels"
        raise DataError(message, code="empty")
    num_classes = probabilities.shape[1]
    predicted = probabilities.argmax(axis=1)
    confusion = np.zeros((num_classes, num_classes), dtype=np.int64)
    np.add.at(confusion, (y, predicted), 1)
    counts = confusion.sum(axis=1)
    recall = [float(confusion[c, c] / counts[c]) if counts[c] else None for c in range(num_classes)]

    def averaged(metric: Metric) -> float:
        return weighted_metric(metric, y, probabilities, np.ones(len(y)))

    auroc, precision = averaged(Metric.AUROC), averaged(Metric.AVERAGE_PRECISION)
    return Metrics(
        count=len(y),
        accuracy=float((predicted == y).mean()),
        balanced_accuracy=averaged(Metric.BALANCED_ACCURACY),
        f1=averaged(Metric.F1),
        auroc=None if math.isnan(auroc) else auroc,
        average_precision=None if math.isnan(precision) else precision,
        log_loss=float(log_losses(y, probabilities).mean()),
        calibration_error=calibration_error(y, probabilities),
        majority_accuracy=float(counts.max() / len(y)),
        recall=tuple(recall),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
        calibration_error_before=None if uncalibrated is None else calibration_error(y, uncalibrated),
    )


def mean_metrics(each: Sequence[Metrics]) -> dict[str, Any]:
    """Every metric averaged over repetitions, as plain numbers; confusion tables are summed."""

    def mean(values: Sequence[float | None]) -> float | None:
        defined = [value for value in values if value is not None]
        return float(np.mean(defined)) if defined else None

    found = {name: mean([getattr(one, name) for one in each]) for name in vars(each[0]) if name not in NOT_AVERAGED}
    recall = [mean(values) for values in zip(*(one.recall for one in each), strict=True)]
    confusion = np.sum([one.confusion for one in each], axis=0).tolist()
    return {"count": each[0].count, **found, "recall": recall, "confusion": confusion}


def default_metric(counts: np.ndarray) -> Metric:
    """Balanced accuracy where one class has more than twice the labels of another, else accuracy."""
    present = counts[counts > 0]
    unbalanced = len(present) and present.max() > UNBALANCED * present.min()
    return Metric.BALANCED_ACCURACY if unbalanced else Metric.ACCURACY


def log_losses(y: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """-log p(true class) of each example, in nats: float64 (n,)."""
    chosen = probabilities[np.arange(len(y)), y].astype(np.float64)
    return np.asarray(-np.log(np.maximum(chosen, SMALLEST_PROBABILITY)))


def calibration_error(y: np.ndarray, probabilities: np.ndarray) -> float:
    """Expected calibration error of the predicted class over bins of confidence with about equal counts."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    edges = np.quantile(confidence, np.linspace(0, 1, CALIBRATION_BINS + 1)[1:-1])
    bins = np.searchsorted(edges, confidence, side="right")  # equal confidences share a bin
    gaps = np.bincount(bins, weights=right) - np.bincount(bins, weights=confidence)
    return float(np.abs(gaps).sum() / len(y))


def weighted_metric(metric: Metric, y: np.ndarray, probabilities: np.ndarray, weights: np.ndarray) -> float:
    """A metric where example i counts `weights[i]` times; NaN where it is undefined. Log-loss is negated."""
    if metric is Metric.LOG_LOSS:
        return float(-np.average(log_losses(y, probabilities), weights=weights))
    predicted, num_classes = probabilities.argmax(axis=1), probabilities.shape[1]
    if metric is Metric.ACCURACY:
        return float(np.average(predicted == y, weights=weights))
    totals = np.bincount(y, weights=weights, minlength=num_classes)
    present = np.flatnonzero(totals > 0)
    hits = np.bincount(y, weights=weights * (predicted == y), minlength=num_classes)
    if metric is Metric.BALANCED_ACCURACY:
        return float((hits[present] / totals[present]).mean())
    if metric is Metric.F1:
        called = np.bincount(predicted, weights=weights, minlength=num_classes)
        return float((2 * hits[present] / (totals[present] + called[present])).mean())
    if len(present) < 2:
        return math.nan
    curve = _auroc if metric is Metric.AUROC else _average_precision
    return float(np.mean([curve(y == c, probabilities[:, c], weights) for c in present]))


# scikit-learn has both curves too, but checks its input at length in each of the bootstrap's thousands of calls.


def _auroc(positive: np.ndarray, score: np.ndarray, weights: np.ndarray) -> float:
    """P(score of a positive > score of a negative), ties counting one half."""
    positives, negatives = _by_score(positive, score, weights)
    below = np.cumsum(negatives) - negatives
    return float((positives * (below + negatives / 2)).sum() / (positives.sum() * negatives.sum()))


def _average_precision(positive: np.ndarray, score: np.ndarray, weights: np.ndarray) -> float:
    """sum over thresholds of (recall_n - recall_n-1) precision_n, from the highest score down."""
    positives, negatives = (part[::-1] for part in _by_score(positive, score, weights))
    found, predicted = np.cumsum(positives), np.cumsum(positives + negatives)
    precision = np.divide(found, predicted, out=np.zeros_like(found), where=predicted > 0)
    return float((positives * precision).sum() / positives.sum())


def _by_score(positive: np.ndarray, score: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weight of positives and of negatives at each distinct score, ascending."""
    _, place = np.unique(score, return_inverse=True)
    positives = np.bincount(place, weights=weights * positive)
    return positives, np.bincount(place, weights=weights) - positives
