"""Labels of a classifier for rows that have none: the label, how sure it is, a weight, and which rows to leave out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.errors import InputError
from synthsieve.selection.entropy import entropy_of_probabilities

MIN_PROBABILITY = 0.5  # below it no class is more probable than all others together
MIN_SOFT_PROBABILITY = 0.01  # of a class of a soft label; further ones cost time and change little


@dataclass(frozen=True, eq=False)
class LabeledRows:
    """Rows with the labels that a classifier gave them.

    Attributes:
        y: (n,) the most probable label of each row, in the type of the labels it was trained on.
        probability: float64 (n,), of that label.
        entropy: float64 (n,), of the prediction, in nats.
        weight: float64 (n,), for `sample_weight`: the probability, or 0 for a rejected row.
        rejected: bool (n,).
        reason: (n,) why a row is rejected; empty text for the others.
    """

    y: np.ndarray
    probability: np.ndarray
    entropy: np.ndarray
    weight: np.ndarray
    rejected: np.ndarray
    reason: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    @property
    def kept(self) -> np.ndarray:
        """Rows that are not rejected: int64, ascending."""
        return np.flatnonzero(~self.rejected)

    def columns(self, label: str = "label") -> dict[str, list[Any]]:
        """The columns of a table, as plain values."""
        names = ("probability", "entropy", "weight", "rejected", "reason")
        return {label: self.y.tolist(), **{name: getattr(self, name).tolist() for name in names}}


@dataclass(frozen=True, eq=False)
class SoftLabels:
    """Probabilities as labels with weights: each row once for every class that it may have.

    Attributes:
        rows: int64 (m,), ascending: train on X[rows].
        y: (m,) the label, in the type of the labels the classifier was trained on.
        weight: float64 (m,), for `sample_weight`: the probability of the label.
    """

    rows: np.ndarray
    y: np.ndarray
    weight: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)


def soft_labels(
    probabilities: np.ndarray, classes: np.ndarray, *, min_probability: float = MIN_SOFT_PROBABILITY
) -> SoftLabels:
    """Soft labels from probabilities (n, num_classes), of the classes that are at least as probable as the limit."""
    _check_limit(min_probability, MIN_SOFT_PROBABILITY)
    rows, chosen = np.nonzero(probabilities >= min_probability)
    return SoftLabels(rows, np.asarray(classes)[chosen], probabilities[rows, chosen])


def label_rows(
    probabilities: np.ndarray,
    classes: np.ndarray,
    *,
    min_probability: float = MIN_PROBABILITY,
    y: np.ndarray | None = None,
) -> LabeledRows:
    """Labels from probabilities (n, num_classes); rows whose label is less probable than the limit are rejected.

    `y` (n,), indices of `classes`, are labels that are already known; None takes the most probable.
    """
    _check_limit(min_probability, MIN_PROBABILITY)
    chosen = probabilities.argmax(axis=1) if y is None else y
    probability = probabilities[np.arange(len(chosen)), chosen]
    rejected = probability < min_probability
    return LabeledRows(
        y=np.asarray(classes)[chosen],
        probability=probability,
        entropy=entropy_of_probabilities(probabilities),
        weight=np.where(rejected, 0.0, probability),
        rejected=rejected,
        reason=np.where(rejected, f"no class has a probability of {min_probability:g}", ""),
    )


def _check_limit(min_probability: float, default: float) -> None:
    if not 0 <= min_probability <= 1:
        raise InputError(
            f"min_probability must be between 0 and 1, got {min_probability:g}: {default:g} is the default",
            code="invalid-parameter",
        )
