"""`augment` of the estimator: synthetic examples worth keeping, and whether they helped on held-out labels."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from synthsieve.data.dataset import UNLABELED
from synthsieve.data.labels import as_labels, read_targets
from synthsieve.errors import InputError
from synthsieve.evaluation.comparison import ComparisonResult, Verdict, compare_paired
from synthsieve.evaluation.predict import probabilities
from synthsieve.experiments.arms import BASELINE, Arm, TableEntry
from synthsieve.experiments.runner import run_arms
from synthsieve.io.progress import Progress, for_stream
from synthsieve.io.random_streams import numpy_stream
from synthsieve.models.calibration import Calibration, fit_temperature
from synthsieve.settings import Settings, settings_from
from synthsieve.training.data import TrainingData
from synthsieve.training.loop import SHARE, Trained, fit_in_memory, seconds_per_step
from synthsieve.training.pool import SyntheticPool

Estimator = Any  # a LatentEBMClassifier, whose module imports this one
ARMS = (Arm.REAL_ONLY, Arm.CRAIG, Arm.CRAIG_PSEUDO)


@dataclass(frozen=True)
class Augmentation:
    """Synthetic examples worth keeping, and whether they helped."""

    X: Any  # the kept examples, in the container that `fit` was given
    y: np.ndarray  # their labels, in the type that `fit` was given
    sample_weight: np.ndarray  # float64 (k,), how many drawn samples each represents, of mean 1
    # training continued with these examples, and with pseudo-labels too, against training continued with real
    # data alone, on labels that none of them saw
    paired_comparison: ComparisonResult
    pool: SyntheticPool  # every sample drawn, with its outcome
    helped: bool  # whether these examples are shown to help: the whole interval lies above zero
    classifier: Estimator  # the estimator trained with them, where they helped; otherwise the fitted one

    def __str__(self) -> str:
        return f"{self.paired_comparison.table()}{self._summary()}\n"

    def _repr_html_(self) -> str:
        return f"<p>{self._summary()}</p>{self.paired_comparison._repr_html_()}"

    def _summary(self) -> str:
        result = "they helped" if self.helped else "no improvement is shown, so the fitted classifier is kept"
        return f"{len(self.y)} synthetic examples kept of {len(self.pool)} drawn; {result}"


def augment(estimator: Estimator, X_test: Any, y_test: Any, *, cv: int, options: Mapping[str, Any]) -> Augmentation:
    """Continue training with each variant; measure on `X_test`, `y_test`, or by cross-fitting over `cv` parts."""
    held_out = _read_test(estimator, X_test, y_test)
    base = estimator._pretrained
    settings = estimator.settings_.changed("training", steps=base.state.step)  # max_time may have ended it
    values = settings.model_dump(mode="json")
    settings = settings_from(values | {"augmentation": values["augmentation"] | dict(options)})
    if not settings.augmentation.steps:
        settings = settings.with_retraining()
    share = 1.0
    if estimator.max_time is not None:
        share = _share_in_time(settings, base, estimator.max_time, cv=cv if held_out is None else None)
        settings = settings.changed("augmentation", steps=max(1, round(share * settings.augmentation.steps)))
    entries = [TableEntry(arm, 0 if arm is Arm.REAL_ONLY else settings.augmentation.pool_size) for arm in ARMS]

    def progress(name: str) -> Progress:
        return for_stream(name, quiet=not estimator.verbose, always=True)

    results = run_arms(base, entries, settings, held_out, progress=progress)
    correct = {result.entry.name: [result.answers.right] for result in results if result.answers is not None}
    if held_out is None:
        correct = _cross_fit(base, entries, settings, cv, share, progress)
    paired_comparison = compare_paired(
        correct, baseline=BASELINE.name, shared_items=False, rng=numpy_stream(0, "paired_comparison")
    )
    augmented = results[ARMS.index(Arm.CRAIG)]
    assert augmented.extra_data is not None and augmented.extra_data.pool is not None  # noqa: PT018
    pool = augmented.extra_data.pool
    helped = paired_comparison.comparison(augmented.entry.name).verdict is Verdict.HELPS
    classifier = estimator
    if helped:
        classifier = copy.copy(estimator)
        classifier.model_ = augmented.model
    return Augmentation(
        X=estimator.as_given(pool.x),
        y=estimator.classes_[pool.y[pool.selected]],
        sample_weight=pool.loss_weights,
        paired_comparison=paired_comparison,
        pool=pool,
        helped=helped,
        classifier=classifier,
    )


def _read_test(estimator: Estimator, X_test: Any, y_test: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """The test examples, as stored, and their classes; None where none are given."""
    if (X_test is None) != (y_test is None):
        raise InputError("X_test and y_test go together: give both or neither", code="incomplete-test-set")
    if X_test is None:
        return None
    x, y = estimator.read_more(X_test), read_targets(column_or_1d(as_labels(y_test)), estimator.classes_).y
    if (y == UNLABELED).any():
        message = f"every label of y_test must be one of {estimator.classes_.tolist()}, got others"
        raise InputError(message, code="unknown-label")
    if len(x) != len(y):
        message = f"X_test and y_test must have equally many rows, got {len(x)} and {len(y)}"
        raise InputError(message, code="different-lengths")
    return x, y


def _share_in_time(settings: Settings, base: Trained, max_time: float, *, cv: int | None) -> float:
    """The share of the planned steps that fits into `max_time`; with cross-fitting each part trains from scratch."""
    data, device = base.data, base.state.model.device
    augmented = len(ARMS) * settings.augmentation.steps
    planned = augmented if cv is None else augmented + cv * (settings.training.steps + augmented)
    return min(1.0, SHARE * max_time / (seconds_per_step(data, settings, device=device) * planned))


def _cross_fit(
    trained: Trained,
    entries: Sequence[TableEntry],
    settings: Settings,
    cv: int,
    share: float,
    progress: Callable[[str], Progress],
) -> dict[str, list[np.ndarray]]:
    """Which hidden labels each variant gets right, part by part, trained in a share of the steps."""
    if share < 1:
        settings = settings.over(max(1, round(share * settings.training.steps)))
    correct: dict[str, list[np.ndarray]] = {entry.name: [] for entry in entries}
    for base, *held_out in _held_out_in_turn(trained, settings, cv, progress):
        for result in run_arms(base, entries, settings, (held_out[0], held_out[1]), progress=progress):
            assert result.answers is not None
            correct[result.entry.name].append(result.answers.right)
    return correct


def calibrate(estimator: Estimator, *, cv: int) -> Calibration:
    """The calibration of an estimator's model by labels that each of `cv` other models did not see."""

    def progress(name: str) -> Progress:
        return for_stream(name, quiet=not estimator.verbose, always=True)

    base = estimator._pretrained
    settings = base.state.settings
    found = [
        (probabilities(fitted.best_model(), fitted.data.encoding, x, calibrated=False), y)
        for fitted, x, y in _held_out_in_turn(base, settings, cv, progress)
    ]
    p, y = map(np.concatenate, zip(*found, strict=True))
    fitted = Calibration(fit_temperature(p, y), len(y), "cross-fitting")
    return base.data.with_class_prior(estimator.model_, fitted, settings)


def _held_out_in_turn(
    trained: Trained, settings: Settings, cv: int, progress: Callable[[str], Progress]
) -> Iterator[tuple[Trained, np.ndarray, np.ndarray]]:
    """For each of `cv` parts of the labels: a model trained without them, their x, as stored, and their y."""
    dataset, device = trained.data.dataset, trained.state.model.device
    for number, hidden in enumerate(_parts(dataset.train.y, cv, settings.seed), start=1):
        y = dataset.train.y.copy()
        y[hidden] = UNLABELED
        visible = replace(dataset, train=replace(dataset.train, y=y))
        part = TrainingData.prepare(visible, settings)
        shown = progress(f"part {number} of {cv}")
        fitted = fit_in_memory(part, settings.pretrained(), device=device, progress=shown)
        yield fitted, dataset.train.x[hidden], dataset.train.y[hidden]


def _parts(y: np.ndarray, cv: int, seed: int) -> list[np.ndarray]:
    """`cv` disjoint parts of the labelled rows, stratified; every class keeps a label outside each part."""
    counts = np.bincount(y[y != UNLABELED])
    if cv < 2 or counts.min() < 2:
        raise InputError(
            f"cross-fitting needs cv of 2 or more and two labels of every class, got cv={cv} and a class with"
            f" {counts.min()}: pass X_test and y_test instead",
            code="too-few-labels",
        )
    stream = numpy_stream(seed, "cross-fitting")
    part = np.full(len(y), -1)
    for label in range(len(counts)):
        rows = stream.permutation(np.flatnonzero(y == label))
        part[rows] = (np.arange(len(rows)) + label) % cv
    return [rows for rows in (np.flatnonzero(part == number) for number in range(cv)) if len(rows)]
