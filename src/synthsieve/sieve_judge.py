"""A judge for those who bring none: cross-validated probabilities of a classifier trained on the rows themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.selection import door

JUDGED = "no logits or probabilities given: a cross-validated logistic regression judged the features"


def judged(features: np.ndarray, labels: Any, seed: int) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Probabilities (n, num_classes) from features (n, f) alone, and the label of each column."""
    told = door.any_labels(labels)
    door.same_length(len(features), labels=told.indices)
    return out_of_fold_probabilities(features, told.indices, seed=seed), told.names


def out_of_fold_probabilities(
    points: np.ndarray, indices: np.ndarray, *, classifier: Any = None, cv: int = 5, seed: int = 0
) -> np.ndarray:
    """Probabilities (n, num_classes) from a classifier that never saw the row it speaks of."""
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    smallest = int(np.bincount(indices, minlength=1).min())
    if len(np.unique(indices)) < 2 or smallest < 2:
        raise SelectionError(
            "expected at least two classes of two rows to train a classifier, "
            f"got a smallest class of {smallest}: give logits or probabilities instead"
        )
    folds = StratifiedKFold(min(cv, smallest), shuffle=True, random_state=seed)
    model = LogisticRegression(max_iter=1000) if classifier is None else clone(classifier)
    return np.asarray(cross_val_predict(model, points, indices, cv=folds, method="predict_proba"))
