"""Accuracy of a classifier, with an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from synthsieve.data.dataset import Dataset
from synthsieve.data.modalities.encoding import Encoding
from synthsieve.data.splits import Split
from synthsieve.evaluation.predict import probabilities
from synthsieve.models.classifier import GenerativeClassifier


@dataclass(frozen=True)
class Scores:
    """Scores of a classifier on labelled examples."""

    accuracy: float  # share of examples whose most probable class is correct
    cross_entropy: float  # mean -log p(correct class), nats
    per_class: tuple[float, ...]  # accuracy within each class; NaN for a class without examples
    count: int  # number of examples

    @property
    def balanced_accuracy(self) -> float:
        """Mean accuracy over the classes that have examples."""
        return float(np.nanmean(self.per_class))

    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the accuracy, over the choice of examples."""
        return wilson_interval(self.accuracy, self.count)

    def describe(self, part: str) -> str:
        """`test accuracy 95.3 % (94.1 to 96.2, 359 examples)`."""
        low, high = self.interval()
        return (
            f"{part} accuracy {100 * self.accuracy:.1f} % "
            f"(95 % interval {100 * low:.1f} to {100 * high:.1f}, {self.count} examples)"
        )

    def as_row(self, prefix: str) -> dict[str, float]:
        return {
            f"{prefix}_accuracy": self.accuracy,
            f"{prefix}_balanced_accuracy": self.balanced_accuracy,
            f"{prefix}_cross_entropy": self.cross_entropy,
        }


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of `count` examples."""
    interval = stats.binomtest(round(share * count), count).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def score_classifier(model: GenerativeClassifier, encoding: Encoding, x: np.ndarray, y: np.ndarray) -> Scores:
    """The model's scores on x (n, *shape), as stored, and y (n,)."""
    return score_probabilities(probabilities(model, encoding, x, check=False), y)


def score_part(
    model: GenerativeClassifier, encoding: Encoding, dataset: Dataset, split: Split, part: str
) -> Scores | None:
    """The model's scores on the split's `test` or `validation` rows; None where there are none."""
    x, y = part_of(dataset, split, part)
    return score_classifier(model, encoding, x, y) if len(y) else None


def part_of(dataset: Dataset, split: Split, part: str) -> tuple[np.ndarray, np.ndarray]:
    """x (n, *shape), as stored, and y (n,) of the split's `test` or `validation` rows."""
    if part == "test":
        rows, separate = split.test, dataset.test if split.test_is_own else None
    else:
        rows, separate = split.validation, dataset.validation if split.validation_is_own else None
    examples = dataset.train if separate is None else separate
    return examples.x[rows], examples.y[rows]


def score_probabilities(p: np.ndarray, y: np.ndarray) -> Scores:
    """The scores of predicted probabilities (n, num_classes) against y (n,)."""
    correct = p.argmax(axis=1) == y
    per_class = [float(correct[y == c].mean()) if (y == c).any() else math.nan for c in range(p.shape[1])]
    of_correct = p[np.arange(len(y)), y]
    cross_entropy = float(-np.log(np.maximum(of_correct, 1e-12)).mean())
    return Scores(float(correct.mean()), cross_entropy, tuple(per_class), len(y))
