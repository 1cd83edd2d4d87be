"""Pseudo-labels: unlabelled x that are predicted with low entropy join the labelled ones, with the predicted label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.data.modalities.encoding import Encoding
from synthsieve.evaluation.predict import latents_and_logits
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.selection.entropy import entropy_of_logits, filter_by_entropy
from synthsieve.settings import PseudoLabelSettings


@dataclass(frozen=True)
class PseudoLabels:
    """Unlabelled rows with a predicted label.

    Attributes:
        rows: int64 (k,), rows of the training examples, ascending.
        y: int64 (k,), the class predicted for each.
        entropy: float64 (k,), of that prediction, in nats.
        ceiling: the entropy they all lie below.
    """

    rows: np.ndarray
    y: np.ndarray
    entropy: np.ndarray
    ceiling: float

    def figures(self, truth: np.ndarray, num_classes: int) -> dict[str, Any]:
        """How many there are, and the share that is correct where the true labels (n,) are known: for evaluation."""
        known = truth[self.rows] >= 0
        correct = truth[self.rows][known] == self.y[known]
        return {
            "pseudo_labels": len(self.rows),
            "pseudo_labels_per_class": np.bincount(self.y, minlength=num_classes).tolist(),
            "pseudo_label_ceiling": float(self.ceiling),
            "pseudo_label_purity": float(correct.mean()) if known.any() else None,
        }


def choose_pseudo_labels(
    model: GenerativeClassifier, encoding: Encoding, x: np.ndarray, rows: np.ndarray, *, settings: PseudoLabelSettings
) -> PseudoLabels:
    """Of the unlabelled `rows` of x, those predicted with entropy below the ceiling, or the lowest of each class."""
    _, logits = latents_and_logits(model, encoding, x[rows])
    y, entropy = logits.argmax(axis=1), entropy_of_logits(logits)
    if settings.entropy_ceiling is None:
        survivors = filter_by_entropy(entropy, y, keep_fraction=settings.keep_fraction, keep_per_class=True)
        kept, ceiling = survivors.kept, survivors.ceiling
    else:
        kept, ceiling = entropy < settings.entropy_ceiling, settings.entropy_ceiling  # may keep none, early on
    return PseudoLabels(rows[kept], y[kept], entropy[kept], ceiling)
