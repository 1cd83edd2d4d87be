"""`augment` of the estimator: the pool worth keeping, and the proof on held-out labels that it helped, or did not."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from synthsieve.config import Settings, settings_from
from synthsieve.data.dataset import UNLABELED, Dataset
from synthsieve.data.targets import as_labels, read_targets
from synthsieve.errors import InputError
from synthsieve.evaluation import rowwise
from synthsieve.evaluation.proof import Proof, Verdict, prove
from synthsieve.experiments.arms import BASELINE, Arm, Cell, settings_of
from synthsieve.learning import additions, loop
from synthsieve.learning.pace import SHARE, seconds_per_step
from synthsieve.learning.run_folder import RunFolder
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.pool import SyntheticPool
from synthsieve.progress import for_stream
from synthsieve.randomness import numpy_stream

if TYPE_CHECKING:
    from synthsieve.estimator import LatentEBMClassifier

ARMS = (Arm.REAL_ONLY, Arm.CRAIG, Arm.CRAIG_PSEUDO)


@dataclass(frozen=True)
class Augmentation:
    """Synthetic examples worth keeping, and whether they helped.

    Attributes:
        X: the kept examples, in the form that `fit` was given.
        y: their labels, in the type that `fit` was given.
        sample_weight: float64 (k,), how many drawn samples each stands for, of mean 1.
        proof: learning on with these examples, and with pseudo-labels too, against learning on with real data alone, on
            labels that none of them saw.
        pool: every sample drawn, with its fate.
        helped: whether these examples are shown to help: the whole interval lies above zero.
        classifier: the estimator after learning on with them, where they helped; the fitted one itself where not.
    """

    X: Any
    y: np.ndarray
    sample_weight: np.ndarray
    proof: Proof
    pool: SyntheticPool
    helped: bool
    classifier: LatentEBMClassifier

    def __str__(self) -> str:
        return f"{self.proof.table()}{self._said()}\n"

    def _repr_html_(self) -> str:
        return f"<p>{self._said()}</p>{self.proof._repr_html_()}"

    def _said(self) -> str:
        said = "it helped" if self.helped else "that it helped is not shown: the fitted classifier stands"
        return f"{len(self.y)} synthetic examples kept of {len(self.pool)} drawn; {said}"


def augment(
    estimator: LatentEBMClassifier, X_test: Any, y_test: Any, *, cv: int, asked: Mapping[str, Any]
) -> Augmentation:
    """The second phase with each arm, judged by `X_test`, `y_test`, or by cross-fitting over `cv` parts."""
    if (X_test is None) != (y_test is None):
        raise InputError("X_test and y_test go together, but one came without the other: give both or neither")
    judges = None if X_test is None else (estimator.read_more(X_test), _known(estimator, y_test))
    if judges is not None and len(judges[0]) != len(judges[1]):
        raise InputError(f"X_test and y_test must have as many rows, but {len(judges[0])} and {len(judges[1])} came")
    with tempfile.TemporaryDirectory(prefix="synthsieve-") as folder:
        base, dataset = estimator._run, estimator._dataset
        if estimator.n_iter_ < base.settings.learning.steps:  # max_time ended it
            base = loop.as_ended(base, dataset, Path(folder) / "first-phase")
        settings = estimator.settings_.model_copy(update={"learning": base.settings.learning})
        settings = _second_phase(settings, asked)
        share = 1.0
        if estimator.max_time is not None:
            share = _share_in_time(settings, dataset, estimator.max_time, cv=None if judges is not None else cv)
            settings = _with_share(settings, share)
        cells = [Cell(arm, 0 if arm is Arm.REAL_ONLY else settings.augmentation.pool_size) for arm in ARMS]
        arms = _learn_on(base, dataset, cells, settings, Path(folder), estimator.verbose)
        if judges is not None:
            answers = [_right(model, base, *judges) for _, model in arms]
            right = {cell.name: [each] for cell, each in zip(cells, answers, strict=True)}
        else:
            right = _cross_fitted(estimator, base, cells, settings, cv, Path(folder) / "folds", share)
        proof = prove(right, baseline=BASELINE.name, shared_items=False, generator=numpy_stream(0, "proof"))
        pooled = ARMS.index(Arm.CRAIG)
        helped = proof.comparison(cells[pooled].name).verdict is Verdict.HELPS
        pool = additions.latest(arms[pooled][0].path).pool
    assert pool is not None
    return Augmentation(
        X=estimator.as_given(pool.x),
        y=estimator.classes_[pool.y[pool.selected]],
        sample_weight=pool.loss_weights,
        proof=proof,
        pool=pool,
        helped=helped,
        classifier=_with_model(estimator, arms[pooled][1]) if helped else estimator,
    )


def _second_phase(settings: Settings, asked: Mapping[str, Any]) -> Settings:
    values = settings.model_dump(mode="json")
    values["augmentation"] |= dict(asked)
    settings = settings_from(values)
    return settings if settings.augmentation.steps else settings.with_second_phase()


def _share_in_time(settings: Settings, dataset: Dataset, max_time: float, *, cv: int | None) -> float:
    """The share of the planned steps that fits into `max_time`; with cross-fitting each part learns all anew."""
    second = len(ARMS) * settings.augmentation.steps
    planned = second if cv is None else second + cv * (settings.learning.steps + second)
    return min(1.0, SHARE * max_time / (seconds_per_step(dataset, settings) * planned))


def _with_share(settings: Settings, share: float) -> Settings:
    """The same with a share of the second phase's steps."""
    steps = max(1, round(share * settings.augmentation.steps))
    return settings.model_copy(update={"augmentation": settings.augmentation.model_copy(update={"steps": steps})})


def _learn_on(
    base: RunFolder, dataset: Dataset, cells: Sequence[Cell], settings: Settings, folder: Path, verbose: bool
) -> list[tuple[RunFolder, GenerativeClassifier]]:
    """Every arm branched off `base`: its run and its model."""
    done = []
    for cell in cells:
        run = RunFolder.create(folder / cell.slug, base.origin, settings_of(cell, settings), dataset)
        loop.branch(run, base)
        loop.fit(run, dataset, progress=for_stream(cell.name, quiet=not verbose, always=True))
        done.append((run, run.model()))
    return done


def _cross_fitted(
    estimator: LatentEBMClassifier,
    whole: RunFolder,
    cells: Sequence[Cell],
    settings: Settings,
    cv: int,
    folder: Path,
    share: float,
) -> dict[str, list[np.ndarray]]:
    """Which hidden labels each arm gets right, part by part, learned as `whole` was in a share of its steps."""
    dataset, first = estimator._dataset, whole.settings
    if share < 1:
        first = first.over(max(1, round(share * first.learning.steps)))
        settings = settings.model_copy(update={"learning": first.learning})
    right: dict[str, list[np.ndarray]] = {cell.name: [] for cell in cells}
    for number, hidden in enumerate(_parts(dataset.train.y, cv, settings.seed)):
        y = dataset.train.y.copy()
        y[hidden] = UNLABELED
        seen = replace(dataset, train=replace(dataset.train, y=y))
        part = folder / f"{number}"
        base = RunFolder.create(part / "first-phase", whole.origin, first, seen)
        loop.fit(
            base, seen, progress=for_stream(f"part {number + 1} of {cv}", quiet=not estimator.verbose, always=True)
        )
        arms = _learn_on(base, seen, cells, settings, part, estimator.verbose)
        for cell, (_, model) in zip(cells, arms, strict=True):
            x, truth = dataset.train.x[hidden], dataset.train.y[hidden]
            right[cell.name].append(_right(model, base, x, truth))
    return right


def _parts(y: np.ndarray, cv: int, seed: int) -> list[np.ndarray]:
    """`cv` disjoint parts of the labelled rows, each class shared out; every class keeps a label outside each part."""
    counts = np.bincount(y[y != UNLABELED])
    if cv < 2 or counts.min() < 2:
        raise InputError(
            f"a proof by cross-fitting needs cv of 2 or more and two labels of every class, but cv={cv} and a class"
            f" with {counts.min()} came: pass X_test and y_test instead"
        )
    stream = numpy_stream(seed, "cross-fitting")
    part = np.full(len(y), -1)
    for label in range(len(counts)):
        rows = stream.permutation(np.flatnonzero(y == label))
        part[rows] = (np.arange(len(rows)) + label) % cv
    return [rows for rows in (np.flatnonzero(part == number) for number in range(cv)) if len(rows)]


def _known(estimator: LatentEBMClassifier, y_test: Any) -> np.ndarray:
    y = read_targets(column_or_1d(as_labels(y_test)), estimator.classes_).y
    if (y == UNLABELED).any():
        raise InputError(f"every label of y_test must be one of {estimator.classes_.tolist()}, but others came")
    return y


def _right(model: GenerativeClassifier, run: RunFolder, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    answers = rowwise.probabilities(model, run.encoding, x, seed=run.settings.seed)
    return np.asarray(answers.argmax(axis=1) == y)


def _with_model(estimator: LatentEBMClassifier, model: GenerativeClassifier) -> LatentEBMClassifier:
    other = copy.copy(estimator)
    other.model_ = model
    return other
