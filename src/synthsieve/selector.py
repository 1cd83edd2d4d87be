"""The sieve in scikit-learn's manner: `fit`, `indices_`, `weights_`, `transform`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.utils.validation import check_is_fitted

from synthsieve.errors import SelectionError
from synthsieve.selection import door
from synthsieve.sieve import select


class CoresetSelector(TransformerMixin, BaseEstimator):
    """Select a weighted coreset of the rows given to `fit`.

    Args:
        classifier: any scikit-learn classifier with `predict_proba`; its cross-validated probabilities give
            entropies and gradients. None takes logistic regression.
        gradients: True if X already holds the gradients to choose by; then no classifier is trained.
        cv: folds of the cross-validation.
        budget, entropy_ceiling, keep_fraction, require_label, method, refine, memory_limit, n_jobs, seed: see `select`.

    Attributes:
        indices_: int64 (k,), selected rows.
        weights_: float64 (k,), how many rows each stands for.
        selection_: the whole `Selection`.
        classes_: the labels.
    """

    def __init__(
        self,
        *,
        classifier: Any = None,
        gradients: bool = False,
        cv: int = 5,
        budget: float | int = 0.1,
        entropy_ceiling: float | None = None,
        keep_fraction: float | None = None,
        require_label: bool = False,
        method: str = "auto",
        refine: bool = False,
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
        seed: int = 0,
    ) -> None:
        self.classifier = classifier
        self.gradients = gradients
        self.cv = cv
        self.budget = budget
        self.entropy_ceiling = entropy_ceiling
        self.keep_fraction = keep_fraction
        self.require_label = require_label
        self.method = method
        self.refine = refine
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.seed = seed

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CoresetSelector:
        """Select among the rows of X (n, features) with labels y (n,)."""
        points = door.matrix(X, "X")
        labels = door.any_labels(y)
        door.same_length(len(points), y=labels.indices)
        probabilities = None
        if not self.gradients:
            probabilities = out_of_fold_probabilities(
                points, labels.indices, classifier=self.classifier, cv=self.cv, seed=self.seed
            )
        self.selection_ = select(
            labels=y,
            classes=None if self.gradients else labels.names,
            probabilities=probabilities,
            gradients=points if self.gradients else None,
            sample_weight=sample_weight,
            budget=self.budget,
            entropy_ceiling=self.entropy_ceiling,
            keep_fraction=self.keep_fraction,
            require_label=self.require_label,
            method=self.method,
            refine=self.refine,
            memory_limit=self.memory_limit,
            n_jobs=self.n_jobs,
            seed=self.seed,
        )
        self.indices_, self.weights_ = self.selection_.indices, self.selection_.weights
        self.classes_ = np.asarray(labels.names)
        self.n_features_in_ = points.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """The selected rows of X, which must be the matrix given to `fit` or one with the same rows."""
        check_is_fitted(self, "indices_")
        door.same_length(self.selection_.num_rows, X=X)
        if hasattr(X, "iloc"):
            return X.iloc[self.indices_]
        return (np.asarray(X) if isinstance(X, list | tuple) else X)[self.indices_]

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """The selected rows of X."""
        return self.fit(X, y, **fit_params).transform(X)


def out_of_fold_probabilities(
    points: np.ndarray, indices: np.ndarray, *, classifier: Any = None, cv: int = 5, seed: int = 0
) -> np.ndarray:
    """Probabilities (n, num_classes) from a classifier that never saw the row it speaks of."""
    smallest = int(np.bincount(indices, minlength=1).min())
    if len(np.unique(indices)) < 2 or smallest < 2:
        raise SelectionError(
            "expected at least two classes of two rows to train a classifier, "
            f"got a smallest class of {smallest}: give logits or probabilities instead"
        )
    folds = StratifiedKFold(min(cv, smallest), shuffle=True, random_state=seed)
    model = LogisticRegression(max_iter=1000) if classifier is None else clone(classifier)
    return cross_val_predict(model, points, indices, cv=folds, method="predict_proba")
