"""Grid search of baseline methods on the same splits as the model.

A method is fitted to the labelled rows, and to unlabelled rows without labels where it can use them. The candidate with
the best metric on the validation rows wins, the first of equals; without validation rows the first candidate is used.
Test rows are only predicted.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from synthsieve.data.dataset import UNLABELED, Dataset
from synthsieve.errors import CheckpointError, DataError
from synthsieve.evaluation.answers import Answers, read_answers, write_answers
from synthsieve.evaluation.predict import part_of
from synthsieve.experiments.baselines.features import Views, stacked
from synthsieve.io.random_streams import derive_seed
from synthsieve.settings import Metric

METADATA = ("chosen", "grid", "unlabeled", "split_hash", "failed")


@dataclass(frozen=True)
class GridPoint:
    """A point of a method's grid: the features it uses (see `Views`), and a function from a seed to an estimator."""

    name: str
    view: str
    make: Callable[[int], Any]


@dataclass(frozen=True)
class GridMethod:
    """A baseline method with its grid."""

    name: str  # its usual name
    grid: Callable[[Dataset], list[GridPoint]]  # data set -> candidates; the first is used without validation rows
    unlabeled: bool  # whether it also uses unlabelled rows
    notes: str  # description of the grid

    @property
    def slug(self) -> str:
        return self.name.lower().replace(", ", "-").replace(" ", "-")


@dataclass(frozen=True)
class BaselineResult:
    """Predictions of the best candidate of a method."""

    answers: dict[str, Answers]  # by part, `validation` and `test`; empty where no candidate could be fitted
    # for JSON: the `chosen` candidate, or None; the `grid` with validation scores, or None; the number of
    # `unlabeled` rows used; `seconds`; `split_hash`; `failed`, why a candidate could not be fitted, or None
    metadata: dict[str, Any]

    @property
    def fitted(self) -> bool:
        return self.metadata["chosen"] is not None

    def right(self, part: str) -> np.ndarray:
        """Which examples of a part are predicted correctly: bool (n,)."""
        return self.answers[part].right if part in self.answers else np.empty(0, dtype=bool)

    def write(self, path: Path) -> None:
        """One .npz, atomically."""
        write_answers(path, self.answers, self.metadata)

    @classmethod
    def read(cls, path: Path) -> BaselineResult:
        answers, metadata = read_answers(path)
        if any(name not in metadata for name in METADATA):
            message = f"{path} is damaged: remove it, and the same command measures again"
            raise CheckpointError(message, code="damaged-answers")
        return cls(answers, metadata)


@dataclass(frozen=True)
class _Trial:
    """A fitted candidate with its answers on validation, or the reason why it could not be fitted."""

    candidate: GridPoint
    estimator: Any = None
    validation: Answers | None = None
    score: float | None = None
    error: str | None = None


def fit_baseline(
    method: GridMethod, views: Views, *, metric: Metric = Metric.ACCURACY, report: Callable[[int], None] | None = None
) -> BaselineResult:
    """Fit every candidate, choose by `metric` on validation, predict validation and test; on one thread.

    Candidates that cannot be fitted to these data are skipped. `report` is called with the number of trials so far.
    """
    started = time.monotonic()
    grid, trials = method.grid(views.dataset), []
    with _single_threaded():
        for candidate in grid if len(views.split.validation) else grid[:1]:
            trials.append(_try(method, candidate, views, metric))
            if report is not None:
                report(len(trials))
        fitted = [one for one in trials if one.error is None]
        best = max(fitted, key=lambda one: -math.inf if one.score is None else one.score, default=None)  # the first
        answers = {}
        if best is not None:
            test = _answers(best.estimator, best.candidate.view, views, "test")
            parts = {"validation": best.validation, "test": test}
            answers = {part: found for part, found in parts.items() if found is not None}
    scores = {one.candidate.name: one.score for one in trials}
    metadata = {
        "chosen": None if best is None else best.candidate.name,
        "grid": {candidate.name: scores.get(candidate.name) for candidate in grid},
        "unlabeled": len(views.unlabeled_rows()) if method.unlabeled else 0,
        "seconds": time.monotonic() - started,
        "split_hash": views.split.hash,
        "failed": next((one.error for one in trials if one.error is not None), None),
    }
    return BaselineResult(answers, metadata)


def refit(method: GridMethod, candidate: str, views: Views) -> Callable[[np.ndarray], np.ndarray]:
    """One candidate fitted to the training rows: x as stored -> probabilities (n, num_classes)."""
    (chosen,) = (one for one in method.grid(views.dataset) if one.name == candidate)
    with _single_threaded():
        trial = _try(method, chosen, views, Metric.ACCURACY)
    if trial.error is not None:
        message = f"{method.name} cannot be fitted to these data ({trial.error}): predict without --method"
        raise DataError(message, code="method-not-fitted")

    def predict(x: np.ndarray) -> np.ndarray:
        with _single_threaded():
            found = _probabilities(trial.estimator, [views.of_new(chosen.view, x)], (len(x), views.dataset.num_classes))
            return found / found.sum(axis=1, keepdims=True)

    return predict


@contextmanager
def _single_threaded() -> Iterator[None]:
    """One thread, as in other jobs; no warnings about convergence or about rows that no label reached."""
    with threadpool_limits(1), warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        yield


def _try(method: GridMethod, candidate: GridPoint, views: Views, metric: Metric) -> _Trial:
    try:
        x, y = views(candidate.view, "labeled"), views.dataset.train.y[views.split.labeled]
        if method.unlabeled and len(views.split.unlabeled):
            more = views(candidate.view, "unlabeled")
            x, y = stacked([x, more]), np.concatenate([y, np.full(more.shape[0], UNLABELED)])
        estimator = candidate.make(derive_seed(views.seed, f"rivals/{method.name}") % 2**32).fit(x, y)
        validation = _answers(estimator, candidate.view, views, "validation")
    except (ValueError, ArithmeticError) as error:  # data that scikit-learn refuses
        return _Trial(candidate, error=" ".join(f"{candidate.name}: {error}".split())[:300])
    score = math.nan if validation is None else validation.score(metric)
    return _Trial(candidate, estimator, validation, None if math.isnan(score) else score)


def _answers(estimator: Any, view: str, views: Views, part: str) -> Answers | None:
    """Predictions of a fitted candidate on a part; None where it has no rows."""
    truth = part_of(views.dataset, views.split, part)[1]
    if not len(truth):
        return None
    blocks = [views(view, part)] if part == "validation" else views.blocks(view, part)
    probabilities = _probabilities(estimator, blocks, (len(truth), views.dataset.num_classes))
    return Answers(getattr(views.split, part), truth, probabilities.astype(np.float32))


def _probabilities(estimator: Any, blocks: Iterable[Any], shape: tuple[int, int]) -> np.ndarray:
    """float64 (n, num_classes); classes that the estimator has not seen get 0."""
    probabilities = np.zeros(shape)
    found = np.concatenate([estimator.predict_proba(block) for block in blocks])
    probabilities[:, estimator.classes_.astype(np.int64)] = np.nan_to_num(found)
    return probabilities
