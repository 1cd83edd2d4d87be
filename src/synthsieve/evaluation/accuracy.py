"""How often the classifier is right, with an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from synthsieve.data.dataset import Dataset
from synthsieve.data.encoding import Encoding
from synthsieve.data.splits import Split
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.randomness import torch_stream

BATCH = 1000


@dataclass(frozen=True)
class Scores:
    """Figures of a classifier on labelled examples.

    Attributes:
        accuracy: share of examples whose most probable class is right.
        cross_entropy: mean -log p(right class), nats.
        per_class: accuracy within each class; NaN for a class without examples.
        count: number of examples.
    """

    accuracy: float
    cross_entropy: float
    per_class: tuple[float, ...]
    count: int

    @property
    def balanced_accuracy(self) -> float:
        """Mean accuracy over the classes that have examples."""
        return float(np.nanmean(self.per_class))

    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the accuracy, over the choice of examples."""
        return wilson_interval(self.accuracy, self.count)

    def in_words(self, part: str) -> str:
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
    z, n, p = 1.959964, count, share
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


@torch.no_grad()
def probabilities(model: GenerativeClassifier, encoding: Encoding, x: np.ndarray, *, seed: int = 0) -> np.ndarray:
    """p(y given x) of each example: float64 (n, num_classes). `seed` matters only when q is sampled."""
    model.eval()
    generator = torch_stream(seed, "prediction")
    parts = [
        model.predict_proba(
            model.taken(encoding.encode(x[start : start + BATCH])), draws=16, generator=generator
        ).double()
        for start in range(0, len(x), BATCH)
    ]
    return torch.cat(parts).cpu().numpy()


def score_classifier(model: GenerativeClassifier, encoding: Encoding, x: np.ndarray, y: np.ndarray) -> Scores:
    """The model's figures on x (n, *shape), as stored, and y (n,)."""
    return score_probabilities(probabilities(model, encoding, x), y)


def score_part(
    model: GenerativeClassifier, encoding: Encoding, dataset: Dataset, split: Split, part: str
) -> Scores | None:
    """The model's figures on the split's `test` or `validation` rows; None where there are none."""
    x, y = part_of(dataset, split, part)
    return score_classifier(model, encoding, x, y) if len(y) else None


def part_of(dataset: Dataset, split: Split, part: str) -> tuple[np.ndarray, np.ndarray]:
    """x (n, *shape), as stored, and y (n,) of the split's `test` or `validation` rows."""
    rows, is_own, own = (
        (split.test, split.test_is_own, dataset.test)
        if part == "test"
        else (split.validation, split.validation_is_own, dataset.validation)
    )
    examples = own if is_own and own is not None else dataset.train
    return examples.x[rows], examples.y[rows]


def score_probabilities(p: np.ndarray, y: np.ndarray) -> Scores:
    """The figures of predicted probabilities (n, num_classes) against y (n,)."""
    right = p.argmax(axis=1) == y
    per_class = [float(right[y == c].mean()) if (y == c).any() else math.nan for c in range(p.shape[1])]
    chosen = p[np.arange(len(y)), y]
    return Scores(float(right.mean()), float(-np.log(np.maximum(chosen, 1e-12)).mean()), tuple(per_class), len(y))
