"""Probabilities for rows without any: a cross-validated classifier trained on the rows themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from synthsieve.errors import SelectionError

CROSS_VALIDATED = (
    "no logits or probabilities given: used those of a cross-validated logistic regression on the features"
)
NOT_CROSS_VALIDATED = "no entropies: a class has too few rows to train a classifier that would give them"
MAX_CLASSES = 200  # with more, training would take far longer than the selection
TOO_MANY_CLASSES = f"no entropies: with more than {MAX_CLASSES} classes, pass logits or probabilities for those"


def can_train(labels: np.ndarray) -> bool:
    """Whether there are at least two classes, of two rows each, given class indices (n,)."""
    sizes = np.bincount(labels)
    return len(sizes) >= 2 and int(sizes.min()) >= 2


def out_of_fold_probabilities(
    features: np.ndarray, labels: np.ndarray, *, classifier: Any = None, cv: int = 5, seed: int = 0
) -> np.ndarray:
    """Probabilities (n, num_classes) of class indices (n,), each from a classifier that was not trained on that row."""
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    smallest = int(np.bincount(labels, minlength=1).min())
    if not can_train(labels):
        raise SelectionError(
            "expected at least two classes of two rows to train a classifier, "
            f"got a smallest class of {smallest}: give logits or probabilities instead",
            code="too-few-rows",
        )
    folds = StratifiedKFold(min(cv, smallest), shuffle=True, random_state=seed)
    model = LogisticRegression(max_iter=1000) if classifier is None else clone(classifier)
    return np.asarray(cross_val_predict(model, features, labels, cv=folds, method="predict_proba"))
