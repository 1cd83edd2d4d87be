"""Classical ways to learn from few labels, to stand beside ours on the same splits.

A method learns from the labelled rows, and from unlabelled rows without their labels where it can use them. Its grid is
decided by accuracy on the validation rows, the first best one wins; without validation rows the first candidate stands.
The test rows only judge.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from synthsieve.archive import read_arrays
from synthsieve.data.dataset import UNLABELED, Dataset
from synthsieve.errors import CheckpointError
from synthsieve.evaluation.accuracy import part_of
from synthsieve.experiments.views import Views, stacked
from synthsieve.files import json_of, written_atomically
from synthsieve.randomness import derive_seed

PARTS = ("validation", "test")
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
    """What the best candidate of a method's grid got right.

    Attributes:
        right: part -> bool (n,), of `validation` and `test`; nothing where no candidate could be fitted.
        about: for JSON: the `chosen` candidate, or None; the `grid` with accuracies on validation, or None; how many
            `unlabeled` rows were used; `seconds`; `split_hash`; `failed`, why a candidate could not be fitted, or None.
    """

    right: dict[str, np.ndarray]
    about: dict[str, Any]

    def write(self, path: Path) -> None:
        """One .npz, atomically."""
        with written_atomically(path) as partial, partial.open("wb") as file:
            parts: dict[str, Any] = {"about": np.asarray(json.dumps(self.about)), **self.right}
            np.savez(file, **parts)

    @classmethod
    def read(cls, path: Path) -> Answer:
        try:
            stored = read_arrays(path, ("about", *PARTS))
            about = json_of(str(stored.pop("about")))
            if not isinstance(about, dict) or any(name not in about for name in ABOUT):
                raise ValueError(f"it does not tell {', '.join(ABOUT)}")
            if any(right.dtype != bool or right.ndim != 1 for right in stored.values()):
                raise ValueError("what it got right is not true or false")
            return cls(stored, about)
        except (ValueError, KeyError) as error:
            raise CheckpointError(
                f"{path} is damaged ({error}): remove it, and the same command measures again"
            ) from None


@dataclass(frozen=True)
class _Tried:
    """A candidate after its fit: the estimator and the validation rows it gets right, or why it could not be fitted."""

    candidate: Candidate
    estimator: Any = None
    right: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))
    error: str | None = None

    @property
    def accuracy(self) -> float | None:
        return float(self.right.mean()) if len(self.right) else None


def answer(method: Method, views: Views, *, tell: Callable[[int], None] | None = None) -> Answer:
    """Fit every candidate of the grid, choose on validation, judge on validation and test; on one thread.

    A candidate that cannot be fitted to these data is passed over. `tell` hears how many were tried.
    """
    started = time.monotonic()
    grid, tried = method.grid(views.dataset), []
    with _alone_and_silent():
        for candidate in grid if len(views.split.validation) else grid[:1]:
            tried.append(_try(method, candidate, views))
            if tell is not None:
                tell(len(tried))
        fitted = [one for one in tried if one.error is None]
        best = max(fitted, key=lambda one: one.accuracy or 0.0, default=None)  # the first among equals
        right = {} if best is None else {"validation": best.right, "test": _right(best, views, "test")}
    accuracy = {one.candidate.name: one.accuracy for one in tried}
    about = {
        "chosen": None if best is None else best.candidate.name,
        "grid": {candidate.name: accuracy.get(candidate.name) for candidate in grid},
        "unlabeled": len(views.unlabeled_rows()) if method.unlabeled else 0,
        "seconds": time.monotonic() - started,
        "split_hash": views.split.hash,
        "failed": next((one.error for one in tried if one.error is not None), None),
    }
    return Answer(right, about)


@contextmanager
def _alone_and_silent() -> Iterator[None]:
    """One thread, as other jobs have; no warnings of fits that end early or of rows that no label has reached."""
    with threadpool_limits(1), warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        yield


def _try(method: Method, candidate: Candidate, views: Views) -> _Tried:
    try:
        x, y = views(candidate.view, "labeled"), views.dataset.train.y[views.split.labeled]
        if method.unlabeled and len(views.split.unlabeled):
            more = views(candidate.view, "unlabeled")
            x, y = stacked([x, more]), np.concatenate([y, np.full(more.shape[0], UNLABELED)])
        estimator = candidate.make(derive_seed(views.seed, f"rivals/{method.name}") % 2**32).fit(x, y)
        return replace(tried := _Tried(candidate, estimator), right=_right(tried, views, "validation"))
    except (ValueError, ArithmeticError) as error:  # of data that scikit-learn refuses: ours were checked before
        return _Tried(candidate, error=" ".join(f"{candidate.name}: {error}".split())[:300])


def _right(tried: _Tried, views: Views, part: str) -> np.ndarray:
    """Which rows of a part a fitted candidate gets right: bool (n,)."""
    truth, view = part_of(views.dataset, views.split, part)[1], tried.candidate.view
    if not len(truth):
        return np.empty(0, dtype=bool)
    blocks = [views(view, part)] if part == "validation" else views.blocks(view, part)
    return np.concatenate([tried.estimator.predict(block) for block in blocks]) == truth
