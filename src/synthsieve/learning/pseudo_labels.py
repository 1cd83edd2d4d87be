"""Pseudo-labels: unlabelled x whose prediction is sure enough join the labelled ones, with the label predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from synthsieve.config import PseudoLabelSettings
from synthsieve.data.encoding import Encoding
from synthsieve.entropy import entropy_of_logits, filter_by_entropy
from synthsieve.model.classifier import GenerativeClassifier

BATCH = 1000


@dataclass(frozen=True)
class PseudoLabels:
    """Unlabelled rows taken in.

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
        """How many were taken in, and which share of them is right where the truth (n,) is known: for evaluation."""
        known = truth[self.rows] >= 0
        right = truth[self.rows][known] == self.y[known]
        return {
            "pseudo_labels": len(self.rows),
            "pseudo_labels_per_class": np.bincount(self.y, minlength=num_classes).tolist(),
            "pseudo_label_ceiling": float(self.ceiling),
            "pseudo_label_purity": float(right.mean()) if known.any() else None,
        }


@torch.no_grad()
def choose_pseudo_labels(
    model: GenerativeClassifier, encoding: Encoding, x: np.ndarray, rows: np.ndarray, *, settings: PseudoLabelSettings
) -> PseudoLabels:
    """Of the unlabelled `rows` of x, those predicted with entropy below the ceiling, or the surest of each class."""
    model.eval()
    logits = (
        torch.cat(
            [
                model.predict_logits(model.taken(encoding.encode(x[rows[start : start + BATCH]])))
                for start in range(0, len(rows), BATCH)
            ]
        )
        .cpu()
        .numpy()
    )
    y, entropy = logits.argmax(axis=1), entropy_of_logits(logits)
    if settings.entropy_ceiling is None:
        survivors = filter_by_entropy(entropy, y, keep_fraction=settings.keep_fraction, per_class=True)
        kept, ceiling = survivors.kept, survivors.ceiling
    else:
        kept, ceiling = entropy < settings.entropy_ceiling, settings.entropy_ceiling  # perhaps nobody, yet
    return PseudoLabels(rows[kept], y[kept], entropy[kept], ceiling)
