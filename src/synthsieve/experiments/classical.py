"""Classical ways to learn from few labels, to stand beside ours on the same splits.

A method learns from the labelled rows, and from unlabelled rows without their labels where it can use them. Its grid is
decided by a metric on the validation rows, the first best one wins; without validation rows the first candidate stands.
The test rows only judge.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from synthsieve.config import Metric
from synthsieve.data.dataset import UNLABELED, Dataset
from synthsieve.errors import CheckpointError, DataError
from synthsieve.evaluation.accuracy import part_of
from synthsieve.evaluation.answers import Answers, read_answers, write_answers
from synthsieve.evaluation.metrics import weighted_metric
from synthsieve.experiments.views import Views, stacked
from synthsieve.randomness import derive_seed

ABOUT = ("chosen", "grid", "unlabeled", "split_hash", "failed")


@dataclass(frozen=True)
class Candidate:
    """A point of a method's grid: the view it has of the data, and an estimator made for a seed."""

    name: str
    view: str
    make: Callable[[int], Any]


@dataclass(frozen=True)
class Method:
    """A way to learn, with its grid by kind of data.

    Attributes:
        name: what people call it.
        grid: data set -> the candidates, the one that stands without validation rows first.
        unlabeled: whether it learns from unlabelled rows too.
        notes: the grid in words.
    """

    name: str
    grid: Callable[[Dataset], list[Candidate]]
    unlabeled: bool
    notes: str

    @property
    def slug(self) -> str:
        return self.name.lower().replace(", ", "-").replace(" ", "-")


@dataclass(frozen=True)
class Answer:
    """What the best candidate of a method's grid answered.

    Attributes:
        answers: by part, `validation` and `test`; nothing where no candidate could be fitted, no part without examples.
        about: for JSON: the `chosen` candidate, or None; the `grid` with scores on validation, or None; how many
            `unlabeled` rows were used; `seconds`; `split_hash`; `failed`, why a candidate could not be fitted, or None.
    """

    answers: dict[str, Answers]
    about: dict[str, Any]

    @property
    def fitted(self) -> bool:
        return self.about["chosen"] is not None

    def right(self, part: str) -> np.ndarray:
        """Which examples of a part get the right class: bool (n,)."""
        return self.answers[part].right if part in self.answers else np.empty(0, dtype=bool)

    def write(self, path: Path) -> None:
        """One .npz, atomically."""
        write_answers(path, self.answers, self.about)

    @classmethod
    def read(cls, path: Path) -> Answer:
        answers, about = read_answers(path)
        if any(name not in about for name in ABOUT):
            raise CheckpointError(f"{path} is damaged: remove it, and the same command measures again")
        return cls(answers, about)


@dataclass(frozen=True)
class _Tried:
    """A candidate after its fit: the estimator and its answers on validation, or why it could not be fitted."""

    candidate: Candidate
    estimator: Any = None
    validation: Answers | None = None
    score: float | None = None
    error: str | None = None


def answer(
    method: Method, views: Views, *, metric: Metric = Metric.ACCURACY, tell: Callable[[int], None] | None = None
) -> Answer:
    """Fit every candidate of the grid, choose by `metric` on validation, answer on validation and test; on one thread.

    A candidate that cannot be fitted to these data is passed over. `tell` hears how many were tried.
    """
    started = time.monotonic()
    grid, tried = method.grid(views.dataset), []
    with _alone_and_silent():
        for candidate in grid if len(views.split.validation) else grid[:1]:
            tried.append(_try(method, candidate, views, metric))
            if tell is not None:
                tell(len(tried))
        fitted = [one for one in tried if one.error is None]
        best = max(fitted, key=lambda one: -math.inf if one.score is None else one.score, default=None)  # the first
        answers = {}
        if best is not None:
            parts = {
                "validation": best.validation,
                "test": _answers(best.estimator, best.candidate.view, views, "test"),
            }
            answers = {part: found for part, found in parts.items() if found is not None}
    scores = {one.candidate.name: one.score for one in tried}
    about = {
        "chosen": None if best is None else best.candidate.name,
        "grid": {candidate.name: scores.get(candidate.name) for candidate in grid},
        "unlabeled": len(views.unlabeled_rows()) if method.unlabeled else 0,
        "seconds": time.monotonic() - started,
        "split_hash": views.split.hash,
        "failed": next((one.error for one in tried if one.error is not None), None),
    }
    return Answer(answers, about)


def refitted(method: Method, candidate: str, views: Views) -> Callable[[np.ndarray], np.ndarray]:
    """x as stored -> probabilities (n, num_classes) of one candidate, fitted to the training rows of `views`."""
    (chosen,) = (one for one in method.grid(views.dataset) if one.name == candidate)
    with _alone_and_silent():
        tried = _try(method, chosen, views, Metric.ACCURACY)
    if tried.error is not None:
        raise DataError(f"{method.name} cannot be fitted to these data ({tried.error}): predict without --method")

    def predict(x: np.ndarray) -> np.ndarray:
        found = np.zeros((len(x), views.dataset.num_classes))
        found[:, tried.estimator.classes_.astype(np.int64)] = tried.estimator.predict_proba(
            views.of_new(chosen.view, x)
        )
        return found / found.sum(axis=1, keepdims=True)

    return predict


@contextmanager
def _alone_and_silent() -> Iterator[None]:
    """One thread, as other jobs have; no warnings of fits that end early or of rows that no label has reached."""
    with threadpool_limits(1), warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        yield


def _try(method: Method, candidate: Candidate, views: Views, metric: Metric) -> _Tried:
    try:
        x, y = views(candidate.view, "labeled"), views.dataset.train.y[views.split.labeled]
        if method.unlabeled and len(views.split.unlabeled):
            more = views(candidate.view, "unlabeled")
            x, y = stacked([x, more]), np.concatenate([y, np.full(more.shape[0], UNLABELED)])
        estimator = candidate.make(derive_seed(views.seed, f"rivals/{method.name}") % 2**32).fit(x, y)
        validation = _answers(estimator, candidate.view, views, "validation")
    except (ValueError, ArithmeticError) as error:  # of data that scikit-learn refuses: ours were checked before
        return _Tried(candidate, error=" ".join(f"{candidate.name}: {error}".split())[:300])
    score = None
    if validation is not None:
        score = weighted_metric(metric, validation.y, validation.probabilities, np.ones(len(validation)))
        score = None if math.isnan(score) else score
    return _Tried(candidate, estimator, validation, score)


def _answers(estimator: Any, view: str, views: Views, part: str) -> Answers | None:
    """A fitted candidate's probabilities on a part; None where it has no rows."""
    truth = part_of(views.dataset, views.split, part)[1]
    if not len(truth):
        return None
    blocks = [views(view, part)] if part == "validation" else views.blocks(view, part)
    found = np.concatenate([estimator.predict_proba(block) for block in blocks])
    probabilities = np.zeros((len(truth), views.dataset.num_classes), dtype=np.float32)
    probabilities[:, estimator.classes_.astype(np.int64)] = np.nan_to_num(found)
    return Answers(getattr(views.split, part), truth, probabilities)
