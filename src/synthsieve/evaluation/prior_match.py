"""Whether drawn latents are where the encoded examples are: a classifier that tells them apart, for each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

FOLDS = 4
MAX_ROWS = 500  # of each kind and class
MIN_ROWS = 20


@dataclass(frozen=True)
class PriorMatch:
    """The area under the ROC curve of boosted trees that tell drawn from encoded z, cross-validated; 0.5 is perfect.

    Attributes:
        auc: of each class, (num_classes,); None where it has fewer than MIN_ROWS of either kind.
    """

    auc: tuple[float | None, ...]

    @property
    def measured(self) -> list[float]:
        return [auc for auc in self.auc if auc is not None]

    @property
    def mean(self) -> float | None:
        """Over the classes that were measured; None without any."""
        return float(np.mean(self.measured)) if self.measured else None

    @property
    def worst(self) -> float | None:
        """The largest of them."""
        return max(self.measured, default=None)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"mean": self.mean, "worst": self.worst, "auc": list(self.auc)}

    def describe(self) -> str:
        """One line for people."""
        if self.mean is None:
            return f"prior match: not measured, no class has {MIN_ROWS} encoded examples"
        return (
            f"prior match: AUC {self.mean:.2f} on average, {self.worst:.2f} in the worst class "
            "(drawn against encoded latents; 0.5 is a perfect match)"
        )


def prior_match(
    drawn: np.ndarray, drawn_y: np.ndarray, encoded: np.ndarray, encoded_y: np.ndarray, *, num_classes: int, seed: int
) -> PriorMatch:
    """The match of drawn latents (n, d) of classes `drawn_y` (n,) with encoded ones (m, d) of `encoded_y` (m,).

    `encoded` are draws of q(z given x), one of each example: its means vary less than the prior should.
    """
    found = []
    for label in range(num_classes):
        kinds = [drawn[drawn_y == label][:MAX_ROWS], encoded[encoded_y == label][:MAX_ROWS]]
        size = min(map(len, kinds))
        found.append(_auc(kinds[0][:size], kinds[1][:size], seed) if size >= MIN_ROWS else None)
    return PriorMatch(tuple(found))


def _auc(drawn: np.ndarray, encoded: np.ndarray, seed: int) -> float:
    z, real = np.concatenate([drawn, encoded]), np.repeat([0, 1], len(drawn))
    trees = HistGradientBoostingClassifier(
        max_iter=50, max_leaf_nodes=8, min_samples_leaf=10, early_stopping=False, random_state=seed % 2**31
    )
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed % 2**31)
    score = cross_val_predict(trees, z, real, cv=folds, method="predict_proba")[:, 1]
    return float(roc_auc_score(real, score))
