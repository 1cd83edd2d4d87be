"""Paired comparisons of training variants on the same held-out examples, and the choice of a variant.

Each variant ("arm") is trained once per seed and compared with a baseline on the same seeds and examples, by default by
accuracy:

    d_si = correct_arm_si - correct_baseline_si, difference = mean_s mean_i d_si

or by another metric, difference = mean_s (metric of the arm - metric of the baseline). `compare_paired` gives a 95 %
bootstrap interval of the difference and a verdict, for test examples. `choose` picks a variant, or keeps the baseline,
for validation examples.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from synthsieve.errors import DataError
from synthsieve.evaluation.answers import Answers
from synthsieve.evaluation.bootstrap import (
    CURVE_RESAMPLES,
    effective_size,
    paired_differences,
    percentile_interval,
    resample_crossed,
    resample_metric,
    resample_nested,
    standard_errors,
    strata_of,
    two_sided_p_value,
)
from synthsieve.evaluation.metrics import METRIC_NAMES
from synthsieve.io.printable import html_table
from synthsieve.io.random_streams import numpy_stream
from synthsieve.settings import Metric

RESAMPLES = 10_000
ASSUMED_DISAGREEMENT = 0.1  # share of examples on which two variants typically differ, for `visible_difference`
MIN_SEEDS = 10  # with fewer the interval is known to be too narrow: see `compare_paired`
COUNTED = (Metric.ACCURACY, Metric.BALANCED_ACCURACY)  # metrics that are means of correct answers

ArmAnswers = Mapping[str, Sequence[np.ndarray] | Sequence[Answers]]


class Verdict(StrEnum):
    """What an interval of a difference shows."""

    HELPS = "helps"
    HURTS = "hurts"
    CANNOT_TELL = "cannot tell"

    @classmethod
    def of(cls, low: float, high: float) -> Verdict:
        if low > 0:
            return cls.HELPS
        return cls.HURTS if high < 0 else cls.CANNOT_TELL

    def describe(self) -> str:
        return {
            Verdict.HELPS: "helps: the whole interval lies above zero",
            Verdict.HURTS: "hurts: the whole interval lies below zero",
            Verdict.CANNOT_TELL: "cannot tell: zero lies in the interval",
        }[self]

    def of_another(self) -> str:
        """The same for another method, which is better or worse than the baseline instead of helping or hurting it."""
        return {Verdict.HELPS: "better", Verdict.HURTS: "worse", Verdict.CANNOT_TELL: "cannot tell"}[self]


@dataclass(frozen=True)
class ArmScores:
    """The metric of one arm on its test examples, one score per seed."""

    name: str
    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.scores))


@dataclass(frozen=True)
class Comparison:
    """One arm against the baseline."""

    arm: str  # the arm's name
    differences: tuple[float, ...]  # its score minus the baseline's, one per seed
    interval: tuple[float, float]  # low and high end of the 95 % interval of their mean
    differing: int  # number of answers, over all seeds, that only one of the two got right
    p_value: float | None = field(default=None, compare=False)  # two-sided, by the same bootstrap; None from a file

    @property
    def difference(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.differences))

    @property
    def verdict(self) -> Verdict:
        return Verdict.of(*self.interval)

    def describe(self) -> str:
        """`coreset, +1.20 points (95 % interval +0.30 to +2.10), helps: the whole interval lies above zero`."""
        low, high = self.interval
        return (
            f"{self.arm}, {100 * self.difference:+.2f} points "
            f"(95 % interval {100 * low:+.2f} to {100 * high:+.2f}), {self.verdict.describe()}"
        )


@dataclass(frozen=True)
class ComparisonResult:
    """Every arm against one baseline."""

    baseline: str  # the arm the others are compared with
    arms: tuple[ArmScores, ...]  # all arms with the baseline, in the given order
    comparisons: tuple[Comparison, ...]  # the others, in the given order
    num_items: tuple[int, ...]  # number of test examples of each seed
    shared_items: bool  # whether all seeds were tested on the same examples
    resamples: int  # number of bootstrap resamples
    note: str  # how to read the intervals; may be empty
    metric: Metric = Metric.ACCURACY  # what is compared; log-loss is negated, so that higher is better

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings of `rows`."""
        return ("variant", f"{METRIC_NAMES[self.metric]} %", "difference", "95 % interval", "verdict")

    def arm(self, name: str) -> ArmScores:
        return {arm.name: arm for arm in self.arms}[name]

    def comparison(self, name: str) -> Comparison:
        return {comparison.arm: comparison for comparison in self.comparisons}[name]

    def as_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and text, for a JSON file."""
        return {
            "baseline": self.baseline,
            "metric": self.metric.value,
            "scores": {arm.name: list(arm.scores) for arm in self.arms},
            "mean": {arm.name: arm.mean for arm in self.arms},
            "comparisons": {
                one.arm: {
                    "difference": one.difference,
                    "differences": list(one.differences),
                    "interval_95": list(one.interval),
                    "differing_answers": one.differing,
                    "verdict": one.verdict.value,
                }
                for one in self.comparisons
            },
            "test_examples": list(self.num_items),
            "shared_test_examples": self.shared_items,
            "resamples": self.resamples,
            "note": self.note,
        }

    def rows(self, others: Collection[str] = ()) -> list[tuple[str, str, str, str, str]]:
        """One row per arm, as `columns`: name, mean score in %, difference and interval in points, verdict.

        `others` are other methods, which are called better or worse.
        """
        compared = {one.arm: one for one in self.comparisons}
        rows = []
        for arm in self.arms:
            one = compared.get(arm.name)
            if one is None:
                rows.append((arm.name, f"{100 * arm.mean:.2f}", "", "", "baseline"))
                continue
            interval = " to ".join(f"{100 * end:+.2f}" for end in one.interval)
            verdict = one.verdict.of_another() if arm.name in others else one.verdict.value
            rows.append((arm.name, f"{100 * arm.mean:.2f}", f"{100 * one.difference:+.2f}", interval, verdict))
        return rows

    def table(self, others: Collection[str] = ()) -> str:
        """`rows` as aligned text, with the note below."""
        rows = [self.columns, *self.rows(others)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in (1, 2, 3)), row[4]]) for row in rows
        ]
        return "\n".join([*lines, self.note] if self.note else lines) + "\n"

    def _repr_html_(self) -> str:
        return html_table(self.columns, self.rows(), note=self.note)


@dataclass(frozen=True)
class Candidate:
    """One arm on validation."""

    arm: str  # its name
    accuracy: float  # mean over seeds
    difference: float  # `accuracy` minus the baseline's
    standard_error: float  # of the paired `difference`, over the choice of validation examples

    def clears(self, margin: float) -> bool:
        """difference > margin * standard_error; the factor makes equality false whatever the rounding."""
        return self.difference > 0 and self.difference > margin * self.standard_error * (1 + 1e-9)


@dataclass(frozen=True)
class Choice:
    """Which arm to use."""

    arm: str  # the chosen arm; the baseline where no other is better by the margin
    baseline: str  # the default
    baseline_accuracy: float  # on validation, mean over seeds
    candidates: tuple[Candidate, ...]  # the other arms, in the given order
    margin: float  # the required number of standard errors

    @property
    def keeps_baseline(self) -> bool:
        return self.arm == self.baseline

    def describe(self) -> str:
        """One sentence: what was chosen, and why."""
        eligible = [one for one in self.candidates if self.keeps_baseline or one.arm == self.arm]
        best = max(eligible, key=lambda one: one.accuracy)
        gap = f"{100 * best.difference:+.2f} ± {100 * best.standard_error:.2f} points on validation"
        if not self.keeps_baseline:
            return f"kept {self.arm}: {gap} against {self.baseline}"
        if best.difference <= 0:
            return f"kept {self.baseline}: no variant is better on validation; the best, {best.arm}, is at {gap}"
        return f"kept {self.baseline}: the best variant, {best.arm}, is at {gap}, too little to trust"

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for a JSON file."""
        return {
            "arm": self.arm,
            "baseline": self.baseline,
            "baseline_accuracy": self.baseline_accuracy,
            "margin": self.margin,
            "candidates": {
                one.arm: {
                    "accuracy": one.accuracy,
                    "difference": one.difference,
                    "standard_error": one.standard_error,
                    "clears": one.clears(self.margin),
                }
                for one in self.candidates
            },
            "words": self.describe(),
        }


def visible_difference(num_items: int) -> float:
    """The smallest difference in accuracy that this many test examples can show, as a share: 0.08 for 60 examples.

    1.96 sqrt(0.1 / n), for two variants that disagree on a tenth of the examples.
    """
    return 1.96 * math.sqrt(ASSUMED_DISAGREEMENT / max(num_items, 1))


def compare_paired(
    answers: ArmAnswers,
    *,
    baseline: str,
    shared_items: bool,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    metric: Metric = Metric.ACCURACY,
) -> ComparisonResult:
    """Every arm's paired difference from the baseline, with a 95 % percentile bootstrap interval and a verdict.

    A resample draws S seeds with replacement, and for each the examples with replacement:

        shared_items = False: difference* = 1/S sum_s 1/n_s sum of (w_s n_s) draws from d_s, w = how often s was drawn
        shared_items = True:  difference* = 1/(S n) sum_s w_s sum_i c_i d_si, c = how often i was drawn, for all seeds

    Measured coverage (tests/laws/test_comparison_laws.py, 2,000 trials): where trainings differ by 3 points and the
    choice of examples adds only 0.5, it is 64 % with 2 seeds, 77 % with 3, 86 % with 5, 91 % with 10, 94 % with 20.
    Where trainings hardly differ the interval is too wide, 96 to 99 % from 2 seeds on. One seed covers only the choice
    of examples, at 95 %.

    With balanced accuracy examples are drawn within their class. One answer in favour and one against are added to each
    resample, each Poisson(1) times, as in Bonett and Price's interval for paired proportions: no interval has zero
    width, and fewer than six differing answers, all in favour, are not enough for a verdict.

    Args:
        answers: for each arm and seed its `Answers` on the seed's test examples; or, for accuracy, a bool array (n_s,),
            which of them it gets right. Arms have the same seeds and, within a seed, the same examples, in one order.
        baseline: the arm the others are compared with.
        shared_items: all seeds were tested on the same examples, in the same order.
        rng: advanced by one draw; an arm's interval does not depend on which other arms there are.
        metric: what is compared; all but accuracy need `Answers`.
    """
    runs = _checked(answers, baseline, shared_items=shared_items, metric=metric)
    if resamples < 100:
        message = f"expected at least 100 resamples, got {resamples}: leave it at {RESAMPLES}"
        raise DataError(message, code="too-few-resamples")
    resamples = resamples if metric in COUNTED else min(resamples, CURVE_RESAMPLES)
    seed, num_seeds = int(rng.integers(2**63)), len(runs[baseline])
    differing = paired_differences(runs, baseline)
    # (resamples, S): how often each seed is drawn
    weights = numpy_stream(seed, "seeds").multinomial(num_seeds, np.full(num_seeds, 1 / num_seeds), size=resamples)
    strata = strata_of(runs[baseline], metric)
    if metric not in COUNTED:
        draws = resample_metric(runs, baseline, weights, metric, shared_items, rng=numpy_stream(seed, "items"))
    elif shared_items and num_seeds > 1:
        draws = resample_crossed(differing, weights, strata[0], rng=numpy_stream(seed, "items"))
    else:
        draws = {
            name: resample_nested(each, weights, strata, rng=numpy_stream(seed, f"items/{name}"))
            for name, each in differing.items()
        }
    size = effective_size(runs[baseline], metric, shared_items=shared_items)
    scores = {name: tuple(run.score(metric) for run in each) for name, each in runs.items()}
    comparisons = []
    for name, each in differing.items():
        differences = tuple(a - b for a, b in zip(scores[name], scores[baseline], strict=True))
        stream = numpy_stream(seed, f"added/{name}")
        added = (stream.poisson(1.0, resamples) - stream.poisson(1.0, resamples)) / size
        count = int(sum(np.count_nonzero(d) for d in each))
        drawn = draws[name] + added
        interval, p_value = percentile_interval(drawn), two_sided_p_value(drawn)
        comparisons.append(Comparison(name, differences, interval, count, p_value))
    return ComparisonResult(
        baseline=baseline,
        arms=tuple(ArmScores(name, each) for name, each in scores.items()),
        comparisons=tuple(comparisons),
        num_items=tuple(len(run) for run in runs[baseline]),
        shared_items=shared_items,
        resamples=resamples,
        note=_note(len(comparisons), num_seeds),
        metric=metric,
    )


def choose(
    validation: ArmAnswers, *, baseline: str, shared_items: bool, margin: float = 1.0, metric: Metric = Metric.ACCURACY
) -> Choice:
    """The arm with the best validation score among those with difference > margin * standard_error; or the baseline.

    Decision 0402 explains the margin, and by how much the chosen arm's validation score is biased.

    Args:
        validation: as `answers` of `compare_paired`, for validation examples.
        baseline: the default.
        shared_items: all seeds share their validation examples, in the same order.
        margin: standard errors by which an arm must be better, at least 0.
        metric: what is compared, as in `compare_paired`.
    """
    runs = _checked(validation, baseline, shared_items=shared_items, metric=metric)
    if not margin >= 0:
        message = f"expected margin at least 0 standard errors, got {margin:g}: 1 is the default"
        raise DataError(message, code="bad-margin")
    accuracy = {name: float(np.mean([run.score(metric) for run in each])) for name, each in runs.items()}
    errors = standard_errors(runs, baseline, metric, shared_items=shared_items)
    candidates = tuple(
        Candidate(name, accuracy[name], accuracy[name] - accuracy[baseline], error) for name, error in errors.items()
    )
    clear = [one for one in candidates if one.clears(margin)]
    chosen = max(clear, key=lambda one: one.accuracy).arm if clear else baseline  # the first among equals
    return Choice(chosen, baseline, accuracy[baseline], candidates, float(margin))


def _checked(answers: ArmAnswers, baseline: str, *, shared_items: bool, metric: Metric) -> dict[str, list[Answers]]:
    """The answers, once it is known that they can be compared."""
    if baseline not in answers or len(answers) < 2:
        message = f"expected the baseline {baseline!r} and another arm to compare, got {', '.join(answers)}"
        raise DataError(message, code="missing-arm")
    runs: dict[str, list[Answers]] = {}
    for name, each in answers.items():
        if metric is not Metric.ACCURACY and not all(isinstance(run, Answers) for run in each):
            message = f"{METRIC_NAMES[metric]} needs the probabilities of {name!r}: pass its Answers"
            raise DataError(message, code="needs-probabilities")
        runs[name] = [run if isinstance(run, Answers) else _as_answers(np.asarray(run), name) for run in each]
        if any(len(run) < 2 for run in runs[name]):
            message = f"expected two or more examples for every seed of {name!r}: measure on more"
            raise DataError(message, code="bad-answers")
    lengths = [len(run) for run in runs[baseline]]
    for name, each in runs.items():
        if not each or [len(run) for run in each] != lengths:
            raise DataError(
                f"expected the seeds and examples of {baseline!r} ({lengths} examples) for every arm, "
                f"got {[len(run) for run in each]} for {name!r}: measure all arms on the same seeds and examples",
                code="example-count",
            )
    if shared_items and len(set(lengths)) > 1:
        message = f"expected as many examples for all seeds with shared_items=True, got {lengths}: pass False"
        raise DataError(message, code="example-count")
    return runs


def _as_answers(right: np.ndarray, name: str) -> Answers:
    """Right and wrong answers as those of a classifier with two classes, of which the second is true."""
    if right.dtype != bool or right.ndim != 1:
        message = f"expected a bool array of examples for every seed of {name!r}: pass predicted == y"
        raise DataError(message, code="bad-answers")
    return Answers(np.arange(len(right)), np.ones(len(right), dtype=np.int64), np.stack([~right, right], axis=1))


def _note(num_comparisons: int, num_seeds: int) -> str:
    sentences = []
    if num_seeds == 1:
        sentences.append(
            "Intervals cover the choice of test examples only; --seeds 5 would include the variation of training."
        )
    elif num_seeds < MIN_SEEDS:
        sentences.append(
            f"{num_seeds} seeds: where trainings differ more than test examples do, such intervals are too narrow "
            "(they contained the true value in 64 % of trials with 2 seeds, 77 % with 3, 86 % with 5)."
        )
    if num_comparisons > 1:
        sentences.append("Intervals are not corrected for multiple comparisons: expect one false alarm in 20.")
    return " ".join(sentences)
