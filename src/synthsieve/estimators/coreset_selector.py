"""The selection as a scikit-learn estimator: `fit`, `indices_`, `weights_`, `transform` and `fit_resample`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from synthsieve.errors import SelectionError
from synthsieve.selection import validation
from synthsieve.selection.cross_validation import out_of_fold_probabilities
from synthsieve.selection.options import SelectionOptions
from synthsieve.selection.rows import rows_at
from synthsieve.selection.select import select

_NOT_OPTIONS = ("classifier", "gradients", "embeddings", "cv")


class CoresetSelector(TransformerMixin, BaseEstimator):
    """Select a weighted coreset of the rows given to `fit`.

    Args:
        classifier: any scikit-learn classifier with `predict_proba`; its cross-validated probabilities give
            entropies and gradients. Logistic regression if None.
        gradients: True if X already holds the gradients to choose by; then no classifier is trained.
        embeddings: True if the selection is to cover X itself, in each class, or as a whole if `fit` gets no y; see
            `metric`. The classifier then gives entropies only.
        cv: folds of the cross-validation.
        Others: see `SelectionOptions`.

    Attributes:
        indices_: int64 (k,), selected rows.
        weights_: float64 (k,), how many rows each represents; they sum to each class's size.
        loss_weights_: float64 (k,), the same scaled to mean 1, as `sample_weight` of a fit on the selected rows.
        selection_: the whole `Selection`.
        classes_: the labels.
    """

    def __init__(
        self,
        *,
        classifier: Any = None,
        gradients: bool = False,
        embeddings: bool = False,
        cv: int = 5,
        budget: float | int = 0.1,
        epsilon: float | None = None,
        entropy_ceiling: float | None = None,
        keep_fraction: float | None = None,
        keep_per_class: bool = False,
        require_label: bool | None = None,
        method: str = "auto",
        refine: bool = False,
        metric: str = "euclidean",
        outlier_fraction: float = 0.0,
        max_weight: float | None = None,
        curvature: str = "none",
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
        device: Any = "auto",
        seed: int = 0,
    ) -> None:
        self.classifier = classifier
        self.gradients = gradients
        self.embeddings = embeddings
        self.cv = cv
        self.budget = budget
        self.epsilon = epsilon
        self.entropy_ceiling = entropy_ceiling
        self.keep_fraction = keep_fraction
        self.keep_per_class = keep_per_class
        self.require_label = require_label
        self.method = method
        self.refine = refine
        self.metric = metric
        self.outlier_fraction = outlier_fraction
        self.max_weight = max_weight
        self.curvature = curvature
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.device = device
        self.seed = seed

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> CoresetSelector:
        """Select among the rows of X (n, features) with labels y (n,), which only embeddings do not need."""
        given = self.get_params(deep=False)
        given["device"] = validation.product_device(self.device, X) or "cpu"
        options = SelectionOptions(**{name: value for name, value in given.items() if name not in _NOT_OPTIONS})
        points = validation.matrix(X, "X")
        if y is None and not self.embeddings:
            raise SelectionError(
                "expected labels y, got none: pass them, or CoresetSelector(embeddings=True)", code="no-labels"
            )
        labels = validation.any_labels(np.zeros(len(points), dtype=np.int8) if y is None else y)
        validation.same_length(len(points), y=labels.indices)
        given_weight: dict[str, Any] = {"sample_weight": sample_weight, "options": options}
        if self.embeddings and (self.classifier is None or y is None):
            self.selection_ = select(embeddings=points, labels=y, **given_weight)
        elif self.gradients:
            self.selection_ = select(labels=y, gradients=points, **given_weight)
        else:
            probabilities = out_of_fold_probabilities(
                points, labels.indices, classifier=self.classifier, cv=self.cv, seed=self.seed
            )
            output: dict[str, Any] = {"classes": labels.names, "probabilities": probabilities}
            covered = points if self.embeddings else None
            self.selection_ = select(labels=y, embeddings=covered, **output, **given_weight)
        self.indices_, self.weights_ = self.selection_.indices, self.selection_.weights
        self.loss_weights_ = self.selection_.loss_weights
        self.classes_ = np.asarray(labels.names)
        self.n_features_in_ = points.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """The selected rows of X, which must be the matrix given to `fit` or one with the same rows."""
        check_is_fitted(self, "indices_")
        return _take(X, self.indices_, self.selection_.num_rows)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """The selected rows of X."""
        return self.fit(X, y, **fit_params).transform(X)

    def fit_resample(self, X: Any, y: Any, **fit_params: Any) -> tuple[Any, Any]:
        """The selected rows of X and of y; `loss_weights_` has their weights, in the same order."""
        self.fit(X, y, **fit_params)
        return self.transform(X), _take(y, self.indices_, self.selection_.num_rows)


def _take(values: Any, rows: np.ndarray, num_rows: int) -> Any:
    """Some rows, in the form given; of a list, an array."""
    length = values.shape[0] if hasattr(values, "shape") else len(values)
    if length != num_rows:
        message = f"expected the {num_rows} rows given to fit, got {length}: pass the same rows"
        raise SelectionError(message, code="length")
    return rows_at(np.asarray(values) if isinstance(values, list | tuple) else values, rows)
