"""The sieve as a scikit-learn estimator: `fit`, `indices_`, `weights_`, `transform` and `fit_resample`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from synthsieve.errors import SelectionError
from synthsieve.selection import door
from synthsieve.sieve import select
from synthsieve.sieve_judge import out_of_fold_probabilities


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
        weights_: float64 (k,), how many rows each stands for; they sum to each class's size.
        loss_weights_: float64 (k,), the same scaled to mean 1, as `sample_weight` of a fit on the selected rows.
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
        self.loss_weights_ = self.selection_.loss_weights
        self.classes_ = np.asarray(labels.names)
        self.n_features_in_ = points.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """The selected rows of X, which must be the matrix given to `fit` or one with the same rows."""
        check_is_fitted(self, "indices_")
        return _picked(X, self.indices_, self.selection_.num_rows)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """The selected rows of X."""
        return self.fit(X, y, **fit_params).transform(X)

    def fit_resample(self, X: Any, y: Any, **fit_params: Any) -> tuple[Any, Any]:
        """The selected rows of X and of y; `loss_weights_` has their weights, in the same order."""
        self.fit(X, y, **fit_params)
        return self.transform(X), _picked(y, self.indices_, self.selection_.num_rows)


def _picked(values: Any, rows: np.ndarray, num_rows: int) -> Any:
    """Some rows of an array, a sparse matrix, a frame, an Arrow table or a list."""
    length = values.shape[0] if hasattr(values, "shape") else len(values)
    if length != num_rows:
        raise SelectionError(f"expected the {num_rows} rows given to fit, got {length}: pass the same rows")
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if hasattr(values, "tocsr"):
        return values.tocsr()[rows]
    if hasattr(values, "take") and hasattr(values, "schema"):  # an Arrow table
        return values.take(rows)
    return (np.asarray(values) if isinstance(values, list | tuple) else values)[rows]
