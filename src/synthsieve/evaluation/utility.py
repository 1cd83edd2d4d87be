"""How much do synthetic rows help an estimator? Paired comparisons with controls, on rows that trained nothing.

The estimator is trained on the labelled rows alone and on the labelled rows with

    doses of the synthetic rows: 1, 3 and 10 times as many as labels, and all of them
    oversampled labelled rows: as many, drawn with replacement. Are more rows enough?
    permuted synthetic labels: the same rows, labels shuffled. Do the labels matter?
    random rows of the pool that the rows were chosen from. Was choosing worth it?
    self-labelled real rows: as many unlabelled rows, with the estimator's or a teacher's labels

and compared on the same test rows, or on labels that are held out in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from synthsieve.data.containers import take_rows
from synthsieve.data.dataset import UNLABELED
from synthsieve.errors import InputError
from synthsieve.evaluation.answers import Answers, concatenate
from synthsieve.evaluation.bootstrap import holm
from synthsieve.evaluation.comparison import RESAMPLES, compare_paired
from synthsieve.evaluation.metrics import METRIC_NAMES, default_metric, weighted_metric
from synthsieve.evaluation.students import Student
from synthsieve.evaluation.utility_input import UtilityData, read_utility_data
from synthsieve.evaluation.utility_result import (
    ALL,
    CONTROLS,
    LABELS_ONLY,
    METRICS,
    OVERSAMPLED,
    PERMUTED,
    RANDOM,
    SELF_LABELED,
    Difference,
    Utility,
)
from synthsieve.io.progress import NullProgress, Progress
from synthsieve.io.random_streams import derive_seed, numpy_stream
from synthsieve.settings import Metric

DOSES = (1, 3, 10)
REPEATS, REPEATS_OF_FOLDS = 5, 3
MAX_FOLDS = 5
SECONDARY_RESAMPLES = 2_000
DOSE_SUFFIX = "times the labels"


def utility(
    estimator: Any,
    X: Any,
    y: Any,
    synthetic: tuple[Any, Any],
    *,
    X_test: Any = None,
    y_test: Any = None,
    unlabeled: Any = None,
    pool: tuple[Any, Any] | None = None,
    weights: Any = None,
    doses: Sequence[float] = DOSES,
    controls: bool = True,
    metric: Metric | str | None = None,
    metrics: Sequence[Metric | str] = METRICS,
    repeats: int | None = None,
    drop_leaks: bool = False,
    seed: int = 0,
    name: str | None = None,
    progress: Progress | None = None,
) -> Utility:
    """How much an estimator gains on held-out rows when synthetic rows are added to its labelled rows.

    The primary comparison, all synthetic rows against labelled rows alone by one metric, is fixed before test rows are
    read; all other comparisons are corrected for their number by Holm's method.

    Args:
        estimator: a classifier with fit and predict, which is copied for every training; or a callable that returns
            one, with the seed where it has an argument `random_state` or `seed`. Parameters named random_state are set.
            Rows of images are flattened if it needs two dimensions.
        X, y: the labelled rows, of any kind: an array, a data frame, texts. Rows whose y is -1, None, NaN or "" count
            as `unlabeled`.
        synthetic: the rows to measure and their labels, (X, y).
        X_test, y_test: labelled rows that trained nothing. Without them parts of the labels are held out in turn; a
            generator that was trained on all labels has then seen them, and the gain may look too large.
        unlabeled: real rows for the control self-labelled rows: X, which the estimator labels itself, or (X, labels).
        pool: the rows that `synthetic` was chosen from, (X, y), for the control of as many random ones.
        weights: (n,) weights of the synthetic rows; a labelled row has 1.
        doses: subsets of the synthetic rows, as multiples of the number of labels; larger ones than all are left out.
        controls: False leaves out all controls.
        metric: of the primary comparison; None takes accuracy, or balanced accuracy with unbalanced labels.
        metrics: what else is measured.
        repeats: how often all is trained again with other seeds, subsets and folds; None takes 5, or 3 without a test
            set.
        drop_leaks: leave out synthetic and labelled rows that are also test rows, instead of refusing them.
        seed: the same seed gives the same result.
        name: of the estimator, for people.
        progress: reports the number of trainings done.
    """
    student = Student.of(estimator, weighted=weights is not None, name=name)
    data = read_utility_data(X, y, synthetic, X_test, y_test, unlabeled, pool, weights, drop_leaks=drop_leaks)
    chosen = default_metric(np.bincount(data.labels)) if metric is None else _metric_named(metric)
    if repeats is not None and repeats < 1:
        raise InputError(f"repeats must be 1 or more, got {repeats}", code="invalid-parameter")
    repeats = repeats or (REPEATS if data.has_test else REPEATS_OF_FOLDS)
    multiples = [dose for dose in doses if dose > 0 and dose * len(data.labels) < data.count("synthetic")]
    work = _Work(student, data, multiples, controls, seed)
    folds = None if data.has_test else work.num_folds()
    answers, soft = work.run(repeats, folds, progress or NullProgress())
    usable = [one for one in METRICS if soft or one in METRICS[:2]]
    if chosen not in usable:
        raise InputError(
            f"{METRIC_NAMES[chosen]} needs predict_proba, which {student.name} does not have: take accuracy",
            code="needs-probabilities",
        )
    wanted = {chosen, *(_metric_named(one) for one in metrics)}
    usable = [one for one in usable if one in wanted]
    primary, others = _compare(answers, chosen, usable, seed)
    scores = {
        arm: {one: _mean_score(each, one) if one in usable else None for one in METRICS}
        for arm, each in answers.items()
    }
    return Utility(
        estimator=student.name,
        metric=chosen,
        primary=primary,
        others=others,
        scores=scores,
        rows=work.added,
        num_labels=len(data.labels),
        num_synthetic=data.count("synthetic"),
        num_test=len(answers[LABELS_ONLY][0]),
        repeats=repeats,
        folds=folds,
        notes=(*data.notes, *_notes(folds, soft)),
        answers=answers,
    )


@dataclass
class _Work:
    """The trainings of one student.

    Attributes:
        doses: multiples of the labels that are added.
        added: how many rows each arm adds, as found.
    """

    student: Student
    data: UtilityData
    doses: Sequence[float]
    controls: bool
    seed: int
    added: dict[str, int] = field(default_factory=dict)

    def run(self, repeats: int, folds: int | None, progress: Progress) -> tuple[dict[str, tuple[Answers, ...]], bool]:
        """Answers of every arm in every repeat, and whether the student gives probabilities."""
        found: dict[str, list[Answers]] = {}
        soft = True
        with closing(progress):
            for repeat in range(repeats):
                parts: dict[str, list[Answers]] = {}
                splits = list(self._splits(repeat, folds))
                for number, (train, test) in enumerate(splits):
                    progress.update(repeat * len(splits) + number, repeats * len(splits))
                    for arm, answer, given in self._arms(train, test, repeat, number):
                        parts.setdefault(arm, []).append(answer)
                        soft = soft and given
                for arm, each in parts.items():
                    found.setdefault(arm, []).append(concatenate(each))
            progress.update(repeats, repeats)
        return {arm: tuple(each) for arm, each in found.items()}, soft

    def num_folds(self) -> int:
        """At most five, and as many as the smallest class with at least two different rows has of them."""
        labels, groups = self.data.labels, self.data.groups
        distinct = [len(np.unique(groups[labels == c])) for c in np.unique(labels)]
        usable = [count for count in distinct if count > 1]
        if not usable:
            raise InputError(
                "no class has two different labelled rows, so none can be held out: give X_test and y_test",
                code="too-few-labels",
            )
        return min(MAX_FOLDS, *usable, max(usable))

    def _splits(self, repeat: int, folds: int | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Labelled rows that train, and rows that measure."""
        if folds is None:
            yield self.data.of("X"), self.data.of("X_test")
            return
        rng, labels, groups = numpy_stream(self.seed, f"utility/folds/{repeat}"), self.data.labels, self.data.groups
        fold_of = np.full(len(labels), -1)  # -1: always trains
        for c in np.unique(labels):
            distinct = rng.permutation(np.unique(groups[(labels == c)]))
            start = int(rng.integers(folds))
            for place, group in enumerate(distinct):
                if len(distinct) > 1:
                    fold_of[groups == group] = (start + place) % folds
        for fold in np.unique(fold_of[fold_of >= 0]):
            yield np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)

    def _arms(self, train: np.ndarray, test: np.ndarray, repeat: int, fold: int) -> Iterator[tuple[str, Answers, bool]]:
        """Every arm's answers on the rows `test`, and whether they are probabilities."""
        data, stream = self.data, f"utility/{repeat}/{fold}"
        fit_seed = derive_seed(self.seed, stream) % 2**31
        base: Any = None
        measured = take_rows(data.rows, test)

        def trained(extra: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> tuple[Any, np.ndarray]:
            rows = np.concatenate([train, extra]).astype(np.int64)
            labels = data.classes[np.concatenate([data.y[train], y]).astype(np.int64)]
            all_weights = None if weights is None else np.concatenate([np.ones(len(train)), weights])
            return self.student.fit(take_rows(data.rows, rows), labels, all_weights, seed=fit_seed), labels

        for arm, extra, y, weights in self._additions(train, stream):
            if y is None:  # self-labelled: the base model labels
                p, _ = self.student.probabilities(base[0], take_rows(data.rows, extra), data.classes, base[1])
                y = p.argmax(axis=1)
            self.added.setdefault(arm, len(extra))
            fitted = trained(extra, y, weights)
            base = fitted if arm == LABELS_ONLY else base
            p, given = self.student.probabilities(fitted[0], measured, data.classes, fitted[1])
            yield arm, Answers(test - test.min() if data.has_test else test, data.y[test], p), given

    def _additions(
        self, train: np.ndarray, stream: str
    ) -> Iterator[tuple[str, np.ndarray, np.ndarray | None, np.ndarray | None]]:
        """Of every arm: the added rows, their classes (None: the estimator's own) and their weights."""
        data, none = self.data, np.zeros(0, dtype=np.int64)
        rows = data.of("synthetic")
        size, weights = len(rows), data.weights
        yield LABELS_ONLY, none, none, None if weights is None else np.ones(0)
        for dose in self.doses:
            some = np.sort(numpy_stream(self.seed, f"{stream}/dose").permutation(size)[: round(dose * len(train))])
            yield _dose_name(dose), rows[some], data.y[rows[some]], None if weights is None else weights[some]
        yield ALL, rows, data.y[rows], weights
        if not self.controls:
            return
        again = numpy_stream(self.seed, f"{stream}/oversampled").choice(train, size)
        yield OVERSAMPLED, again, data.y[again], weights
        yield PERMUTED, rows, numpy_stream(self.seed, f"{stream}/permuted").permutation(data.y[rows]), weights
        if data.count("pool"):
            drawn = numpy_stream(self.seed, f"{stream}/pool").permutation(data.of("pool"))[:size]
            yield RANDOM, np.sort(drawn), data.y[np.sort(drawn)], None if weights is None else np.ones(len(drawn))
        if data.count("unlabeled"):
            drawn = np.sort(numpy_stream(self.seed, f"{stream}/unlabeled").permutation(data.of("unlabeled"))[:size])
            labels = data.y[drawn] if (data.y[drawn] != UNLABELED).all() else None
            yield SELF_LABELED, drawn, labels, None if weights is None else np.ones(len(drawn))


def _dose_name(dose: float) -> str:
    return f"{dose:g} {DOSE_SUFFIX}"


def _metric_named(given: Metric | str) -> Metric:
    if given not in METRICS:
        raise InputError(f"metric must be one of {', '.join(METRICS)}, got {str(given)!r}", code="unknown-metric")
    return Metric(given)


def _compare(
    answers: Mapping[str, Sequence[Answers]], metric: Metric, usable: Sequence[Metric], seed: int
) -> tuple[Difference, tuple[Difference, ...]]:
    """The primary comparison, and all others with Holm's correction."""
    doses = [arm for arm in answers if arm.endswith(DOSE_SUFFIX)]
    real = [arm for arm in answers if arm == SELF_LABELED]
    (primary, *found) = _against(LABELS_ONLY, [ALL, *doses, *real], answers, metric, seed)
    controls = [arm for arm in answers if arm in CONTROLS]
    if controls:
        found += [
            Difference(ALL, one.arm, metric, -one.value, (-one.interval[1], -one.interval[0]), one.p_value)
            for one in _against(ALL, controls, answers, metric, seed, resamples=SECONDARY_RESAMPLES)
        ]
    for other in usable:
        if other is not metric:
            found += _against(LABELS_ONLY, [ALL], answers, other, seed, resamples=SECONDARY_RESAMPLES)
    corrected = holm([one.p_value for one in found])
    others = (replace(one, p_value=p) for one, p in zip(found, corrected, strict=True))
    return replace(primary, primary=True), tuple(others)


def _against(
    baseline: str,
    arms: Sequence[str],
    answers: Mapping[str, Sequence[Answers]],
    metric: Metric,
    seed: int,
    *,
    resamples: int = RESAMPLES,
) -> list[Difference]:
    """Each of the arms against the baseline."""
    result = compare_paired(
        {name: list(answers[name]) for name in (baseline, *arms)},
        baseline=baseline,
        shared_items=True,
        metric=metric,
        resamples=resamples,
        rng=numpy_stream(seed, f"utility/bootstrap/{baseline}/{metric}"),
    )
    return [
        Difference(one.arm, baseline, metric, one.difference, one.interval, one.p_value or 0.0)
        for one in result.comparisons
    ]


def _mean_score(each: Sequence[Answers], metric: Metric) -> float:
    return float(np.mean([weighted_metric(metric, one.y, one.probabilities, np.ones(len(one))) for one in each]))


def _notes(folds: int | None, soft: bool) -> list[str]:
    notes = []
    if folds is not None:
        notes.append(
            f"Measured on labels that were held out in {folds} parts in turn: a generator that was trained on all of "
            "them has seen the held-out ones, so the gain may look too large. Give a test set to be sure."
        )
    if not soft:
        notes.append("The estimator gives no probabilities: log-loss and average precision were not measured.")
    return notes
