"""Any estimator with `fit` and `predict` as a student: it is trained from scratch, then predicts probabilities."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from synthsieve.data.checks import brief
from synthsieve.errors import InputError

SEED_NAMES = ("random_state", "seed")
NEEDS_TWO_DIMENSIONS = ("found array with dim", "expected 2d array", "x expected <= 2", "must be 2 dimensional")


@dataclass
class Student:
    """A way to make untrained copies of one estimator.

    Attributes:
        estimator: an estimator, or a callable that returns one.
        name: for people.
        flat: whether rows of more than one dimension are flattened; found out at the first fit.
    """

    estimator: Any
    name: str
    flat: bool = False

    @classmethod
    def of(cls, estimator: Any, *, weighted: bool, name: str | None = None) -> Student:
        """A student that was checked to fit and predict, with sample weights if `weighted`."""
        factory = inspect.isclass(estimator) or (callable(estimator) and not hasattr(estimator, "fit"))
        if hasattr(estimator, "state_dict") and not hasattr(estimator, "predict"):
            raise InputError(
                "a torch module has no fit and predict: wrap it in skorch's NeuralNetClassifier, or in a class with "
                "fit(X, y) and predict(X)",
                code="no-predict",
            )
        student = cls(estimator, name or _name_of(estimator))
        made = student.make(0) if factory else estimator
        for method in ("fit", "predict"):
            if not callable(getattr(made, method, None)):
                raise InputError(
                    f"an estimator needs fit(X, y) and predict(X), but {_name_of(made)} has no {method}: pass a "
                    "scikit-learn classifier, or a callable that returns one",
                    code=f"no-{method}",
                )
        if weighted and weight_argument(made) is None:
            raise InputError(
                f"weights were given, but fit of {_name_of(made)} takes no sample_weight: omit the weights, or use "
                "another estimator",
                code="no-sample-weight",
            )
        return student

    def make(self, seed: int) -> Any:
        """An untrained copy, with `seed` in each of its parameters named random_state or seed."""
        if inspect.isclass(self.estimator) or not hasattr(self.estimator, "fit"):
            return self.estimator(**_seed_arguments(self.estimator, seed))
        if not hasattr(self.estimator, "get_params"):
            return copy.deepcopy(self.estimator)
        made = clone(self.estimator)
        seeds = {name: seed for name in made.get_params() if name.split("__")[-1] == "random_state"}
        return made.set_params(**seeds) if seeds else made

    def fit(self, X: Any, y: np.ndarray, weights: np.ndarray | None, *, seed: int) -> Any:
        """A copy that is trained on those rows; numpy's and torch's global generators are set to `seed` meanwhile."""
        made = self.make(seed)
        name = None if weights is None else weight_argument(made)
        arguments = {} if name is None else {name: weights}
        with global_generators(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it would come once for every training
            try:
                made.fit(self.view(X), y, **arguments)
            except Exception as error:
                deep = getattr(X, "ndim", 1) > 2 and not self.flat
                if deep and any(words in str(error).lower() for words in NEEDS_TWO_DIMENSIONS):
                    self.flat = True
                    return self.fit(X, y, weights, seed=seed)
                raise InputError(
                    f"{self.name} cannot be trained on these rows ({type(error).__name__}: {brief(error)}): check that "
                    "it can be trained on X and y alone",
                    code="estimator-failed",
                ) from error
        return made

    def probabilities(
        self, fitted: Any, X: Any, classes: np.ndarray, trained_on: np.ndarray
    ) -> tuple[np.ndarray, bool]:
        """p(y given x), float64 (n, num_classes), and whether the estimator gave them; otherwise 1 for its prediction.

        Args:
            classes: all labels, sorted.
            trained_on: the labels that `fitted` was trained on: their sorted order is that of its columns where it
                has no `classes_`.
        """
        rows, count = self.view(X), X.shape[0]
        found = np.zeros((count, len(classes)))
        place = {label: i for i, label in enumerate(classes.tolist())}
        if hasattr(fitted, "predict_proba"):
            given = np.asarray(fitted.predict_proba(rows), dtype=np.float64)
            own = np.asarray(getattr(fitted, "classes_", np.unique(trained_on))).tolist()
            if given.shape != (count, len(own)) or not np.isfinite(given).all():
                raise InputError(
                    f"predict_proba of {self.name} must give finite numbers of shape ({count}, {len(own)}), "
                    f"got {given.shape}",
                    code="bad-predictions",
                )
            found[:, [place[label] for label in own]] = given
            return found, True
        predicted = np.asarray(fitted.predict(rows))
        if predicted.shape != (count,) or any(label not in place for label in predicted.tolist()):
            raise InputError(
                f"predict of {self.name} must give one of the {len(classes)} labels for each of {count} rows, "
                f"but gave {predicted.dtype} of shape {predicted.shape}: it must be a classifier",
                code="bad-predictions",
            )
        found[np.arange(count), [place[label] for label in predicted.tolist()]] = 1.0
        return found, False

    def view(self, X: Any) -> Any:
        return X.reshape(len(X), -1) if self.flat else X


def weight_argument(estimator: Any) -> str | None:
    """The name under which `fit` takes sample weights; None where it takes none."""
    if isinstance(estimator, Pipeline):
        inner = weight_argument(estimator.steps[-1][1])
        return None if inner is None else f"{estimator.steps[-1][0]}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


@contextmanager
def global_generators(seed: int) -> Iterator[None]:
    """Set numpy's and torch's global generators, for estimators that use them; then restore them."""
    import torch  # even if nothing has imported it yet: the estimator may do so while it is trained

    before, state = np.random.get_state(), torch.random.get_rng_state()  # noqa: NPY002
    np.random.seed(seed % 2**32)  # noqa: NPY002
    torch.random.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
        torch.random.set_rng_state(state)


def _seed_arguments(factory: Callable[..., Any], seed: int) -> dict[str, int]:
    """The seed under the name that a factory takes it by; empty where it takes none."""
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return {}
    return {name: seed for name in SEED_NAMES if name in parameters}


def _name_of(estimator: Any) -> str:
    if isinstance(estimator, Pipeline):
        return _name_of(estimator.steps[-1][1])
    return str(getattr(estimator, "__name__", type(estimator).__name__))
