"""Paired comparisons of variants on the same held-out examples, and the choice that does no harm.

An arm is one way to train; each arm is trained once a seed, and what counts is what it then answers. Arms are compared
in pairs with a baseline on the same seeds and examples, by default by accuracy:

    d_si = right_arm_si - right_baseline_si, difference = mean_s mean_i d_si

or by another metric, difference = mean_s (metric of the arm - metric of the baseline). `prove` puts a 95 % bootstrap
interval round the difference and a plain verdict beside it; it is for test examples. `choose` picks an arm, or keeps
the baseline; it is for validation examples.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from synthsieve.config import Metric
from synthsieve.errors import DataError
from synthsieve.evaluation.answers import Answers
from synthsieve.evaluation.bootstrap import (
    CURVE_RESAMPLES,
    added_answers,
    effective_size,
    paired_differences,
    percentile_interval,
    resample_crossed,
    resample_metric,
    resample_nested,
    right_or_wrong,
    score,
    standard_errors,
    strata_of,
)
from synthsieve.evaluation.metrics import METRIC_NAMES
from synthsieve.randomness import numpy_stream

RESAMPLES = 10_000
ASSUMED_DISAGREEMENT = 0.1  # share of examples on which two variants typically differ, for `visible_difference`
# Below this many seeds the interval is known to be too narrow: see `prove`.
FEW_SEEDS = 10

Right = Mapping[str, Sequence[np.ndarray] | Sequence[Answers]]


class Verdict(StrEnum):
    """What an interval of a difference says."""

    HELPS = "helps"
    HURTS = "hurts"
    CANNOT_TELL = "cannot tell"

    @classmethod
    def of(cls, low: float, high: float) -> Verdict:
        if low > 0:
            return cls.HELPS
        return cls.HURTS if high < 0 else cls.CANNOT_TELL

    def in_words(self) -> str:
        return {
            Verdict.HELPS: "helps: the whole interval lies above zero",
            Verdict.HURTS: "hurts: the whole interval lies below zero",
            Verdict.CANNOT_TELL: "cannot tell: zero lies in the interval",
        }[self]

    def of_another(self) -> str:
        """The same of another way to learn, which neither helps nor hurts the baseline."""
        return {Verdict.HELPS: "better", Verdict.HURTS: "worse", Verdict.CANNOT_TELL: "cannot tell"}[self]


@dataclass(frozen=True)
class Arm:
    """How good one arm is.

    Attributes:
        name: the arm's name.
        scores: the metric on its test examples, one a seed.
    """

    name: str
    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.scores))


@dataclass(frozen=True)
class Comparison:
    """One arm against the baseline.

    Attributes:
        arm: the arm's name.
        differences: its score less the baseline's, one a seed.
        interval: low and high end of the 95 % interval of their mean.
        differing: how many answers, over all seeds, one of the two got right and the other wrong.
    """

    arm: str
    differences: tuple[float, ...]
    interval: tuple[float, float]
    differing: int

    @property
    def difference(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.differences))

    @property
    def verdict(self) -> Verdict:
        return Verdict.of(*self.interval)

    def in_words(self) -> str:
        """`coreset, +1.20 points (95 % interval +0.30 to +2.10), helps: the whole interval lies above zero`."""
        low, high = self.interval
        return (
            f"{self.arm}, {100 * self.difference:+.2f} points "
            f"(95 % interval {100 * low:+.2f} to {100 * high:+.2f}), {self.verdict.in_words()}"
        )


@dataclass(frozen=True)
class Proof:
    """Every arm against one baseline.

    Attributes:
        baseline: the arm the others are compared with.
        arms: all of them, the baseline among them, as given.
        comparisons: the others, as given.
        num_items: test examples of each seed.
        shared_items: whether all seeds were judged by the same examples.
        resamples: how many the intervals come from.
        note: what a reader of the intervals must know, in sentences; may be empty.
        metric: what is compared; log-loss is negated, so that higher is better.
    """

    baseline: str
    arms: tuple[Arm, ...]
    comparisons: tuple[Comparison, ...]
    num_items: tuple[int, ...]
    shared_items: bool
    resamples: int
    note: str
    metric: Metric = Metric.ACCURACY

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings of `rows`."""
        return ("variant", f"{METRIC_NAMES[self.metric]} %", "difference", "95 % interval", "verdict")

    def arm(self, name: str) -> Arm:
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
        """A row an arm, as `columns`: name, mean score in %, difference and interval in points, verdict.

        `others` are arms that are other ways to learn: better or worse, where arms help or hurt.
        """
        compared = {one.arm: one for one in self.comparisons}
        found = []
        for arm in self.arms:
            accuracy = f"{100 * arm.mean:.2f}"
            if arm.name == self.baseline:
                found.append((arm.name, accuracy, "", "", "baseline"))
                continue
            one = compared[arm.name]
            interval = " to ".join(f"{100 * end:+.2f}" for end in one.interval)
            verdict = one.verdict.of_another() if arm.name in others else one.verdict.value
            found.append((arm.name, accuracy, f"{100 * one.difference:+.2f}", interval, verdict))
        return found

    def table(self, others: Collection[str] = ()) -> str:
        """`rows` as aligned text, with the note below."""
        lines = [self.columns, *self.rows(others)]
        widths = [max(len(line[column]) for line in lines) for column in range(5)]
        rows = [
            "  ".join([line[0].ljust(widths[0]), *(line[i].rjust(widths[i]) for i in (1, 2, 3)), line[4]])
            for line in lines
        ]
        return "\n".join([*rows, self.note] if self.note else rows) + "\n"

    def _repr_html_(self) -> str:
        from synthsieve.charts.html_table import html_table

        return html_table(self.columns, self.rows(), note=self.note)


@dataclass(frozen=True)
class Candidate:
    """One arm on validation.

    Attributes:
        arm: its name.
        accuracy: mean over seeds.
        difference: `accuracy` less the baseline's.
        standard_error: of `difference`, paired, over the choice of validation examples.
    """

    arm: str
    accuracy: float
    difference: float
    standard_error: float

    def clears(self, margin: float) -> bool:
        """difference > margin * standard_error; equal is not above, whatever the last bit says."""
        return self.difference > 0 and self.difference > margin * self.standard_error * (1 + 1e-9)


@dataclass(frozen=True)
class Choice:
    """Which arm to use.

    Attributes:
        arm: the arm chosen; the baseline where no other is better by the margin.
        baseline: the arm that stands when nothing beats it.
        baseline_accuracy: on validation, mean over seeds.
        candidates: the other arms, as given.
        margin: how many standard errors were asked for.
    """

    arm: str
    baseline: str
    baseline_accuracy: float
    candidates: tuple[Candidate, ...]
    margin: float

    @property
    def keeps_baseline(self) -> bool:
        return self.arm == self.baseline

    def in_words(self) -> str:
        """One sentence: what was chosen, and why."""
        best = max((one for one in self.candidates if self.keeps_baseline or one.arm == self.arm), key=_accuracy)
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
            "words": self.in_words(),
        }


def visible_difference(num_items: int) -> float:
    """The smallest difference in accuracy that so many test examples can show, with two variants as alike as usual.

    1.96 sqrt(0.1 / n): two variants that disagree on a tenth of the examples; as a share, 0.08 for 60 examples.
    """
    return 1.96 * math.sqrt(ASSUMED_DISAGREEMENT / max(num_items, 1))


def prove(
    right: Right,
    *,
    baseline: str,
    shared_items: bool,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    metric: Metric = Metric.ACCURACY,
) -> Proof:
    """Every arm's paired difference from the baseline, with a 95 % percentile bootstrap interval and a verdict.

    A resample draws S seeds with replacement, and for each the examples with replacement:

        shared_items = False: difference* = 1/S sum_s 1/n_s sum of (w_s n_s) draws from d_s, w = how often s was drawn
        shared_items = True:  difference* = 1/(S n) sum_s w_s sum_i c_i d_si, c = how often i was drawn, for all seeds

    How often it holds the truth, measured on made-up arms (tests/laws/test_proof_laws.py), 2,000 trials each: where
    trainings differ by 3 points and the choice of examples adds only 0.5, 64 % with 2 seeds, 77 % with 3, 86 % with 5,
    91 % with 10, 94 % with 20; without any chance of examples 2 seeds would give 50 % and 3 seeds 75 %. Where trainings
    hardly differ it is too wide, 96 to 99 % from 2 seeds on (500 trials), since the examples' chance comes in twice:
    through the examples and through the seeds. One seed speaks of the examples alone, 95 %.

    With balanced accuracy examples are drawn within their class. To each resample one answer in favour and one against
    is added, each Poisson(1) times, as in Bonett and Price's interval for paired proportions: so an interval is never
    of zero width, and fewer than six differing answers, all in favour, are no verdict.

    Args:
        right: for each arm and seed its `Answers` on the seed's test examples; or, for accuracy, a bool array (n_s,),
            which of them it gets right. Arms have the same seeds in the same order, and within a seed the same examples
            in the same order.
        baseline: the arm the others are compared with.
        shared_items: the seeds were all judged by the same examples, in the same order.
        generator: moved by one draw; an arm's interval does not depend on which other arms there are.
        metric: what is compared; all but accuracy need `Answers`.
    """
    given = _checked(right, baseline, shared_items=shared_items, metric=metric)
    if resamples < 100:
        raise DataError(f"expected at least 100 resamples, got {resamples}: leave it at {RESAMPLES}")
    seed = int(generator.integers(2**63))
    num_seeds, differing = len(given[baseline]), paired_differences(given, baseline)
    # (resamples, S): how often each seed is drawn
    if metric not in (Metric.ACCURACY, Metric.BALANCED_ACCURACY):
        resamples = min(resamples, CURVE_RESAMPLES)
    weights = numpy_stream(seed, "seeds").multinomial(num_seeds, np.full(num_seeds, 1 / num_seeds), size=resamples)
    if metric in (Metric.ACCURACY, Metric.BALANCED_ACCURACY):
        strata = strata_of(given[baseline], metric)
        if shared_items and num_seeds > 1:
            draws = resample_crossed(differing, weights, strata[0], generator=numpy_stream(seed, "items"))
        else:
            draws = {
                name: resample_nested(each, weights, strata, generator=numpy_stream(seed, f"items/{name}"))
                for name, each in differing.items()
            }
    else:
        draws = resample_metric(given, baseline, weights, metric, shared_items, generator=numpy_stream(seed, "items"))
    scores = {name: tuple(score(run, metric) for run in runs) for name, runs in given.items()}
    size = effective_size(given[baseline], metric, shared_items=shared_items)
    comparisons = tuple(
        Comparison(
            name,
            tuple(mine - base for mine, base in zip(scores[name], scores[baseline], strict=True)),
            percentile_interval(
                draws[name] + added_answers(resamples, size, generator=numpy_stream(seed, f"added/{name}"))
            ),
            int(sum(np.count_nonzero(d) for d in each)),
        )
        for name, each in differing.items()
    )
    return Proof(
        baseline=baseline,
        arms=tuple(Arm(name, scores[name]) for name in given),
        comparisons=comparisons,
        num_items=tuple(len(run) for run in given[baseline]),
        shared_items=shared_items,
        resamples=resamples,
        note=_note(comparisons, num_seeds),
        metric=metric,
    )


def choose(
    validation: Right,
    *,
    baseline: str,
    shared_items: bool,
    margin: float = 1.0,
    metric: Metric = Metric.ACCURACY,
) -> Choice:
    """The arm of best mean validation accuracy among those that clear the margin; else the baseline.

        an arm clears if difference > margin * standard_error

    The standard error is that of the paired difference over the choice of validation examples. See
    docs/decisions/0402-do-no-harm.md for why one, and how far the chosen arm's validation figure flatters it.

    Args:
        validation: as `right` of `prove`, for validation examples.
        baseline: the arm that stands when nothing beats it.
        shared_items: the seeds all share their validation examples, in the same order.
        margin: standard errors by which an arm must be better, at least 0.
        metric: what is compared, as in `prove`.
    """
    given = _checked(validation, baseline, shared_items=shared_items, metric=metric)
    if not margin >= 0:
        raise DataError(f"expected margin at least 0 standard errors, got {margin:g}: 1 is the default")
    accuracy = {name: float(np.mean([score(run, metric) for run in runs])) for name, runs in given.items()}
    errors = standard_errors(given, baseline, metric, shared_items=shared_items)
    candidates = tuple(
        Candidate(name, accuracy[name], accuracy[name] - accuracy[baseline], error) for name, error in errors.items()
    )
    clear = [one for one in candidates if one.clears(margin)]
    chosen = max(clear, key=_accuracy).arm if clear else baseline  # the first among equals
    return Choice(chosen, baseline, accuracy[baseline], candidates, float(margin))


def _accuracy(one: Candidate) -> float:
    return one.accuracy


def _checked(
    right: Right, baseline: str, *, shared_items: bool, metric: Metric
) -> dict[str, list[np.ndarray] | list[Answers]]:
    """What the arms answered, once it is known to be comparable."""
    if baseline not in right:
        raise DataError(f"expected the baseline {baseline!r} among the arms, got {', '.join(right)}: name one of these")
    if len(right) < 2:
        raise DataError(f"expected an arm to compare with {baseline!r}, got that one alone: add another")
    given: dict[str, Any] = {
        name: [run if isinstance(run, Answers) else np.asarray(run) for run in runs] for name, runs in right.items()
    }
    first = given[baseline]
    if not first:
        raise DataError(f"expected at least one seed, got none for {baseline!r}: train each arm at least once")
    for name, runs in given.items():
        if len(runs) != len(first):
            raise DataError(
                f"expected {len(first)} seeds for every arm, as {baseline!r} has, "
                f"got {len(runs)} for {name!r}: leave out the seeds not every arm has"
            )
        for s, (run, base) in enumerate(zip(runs, first, strict=True)):
            if metric is not Metric.ACCURACY and not isinstance(run, Answers):
                raise DataError(f"{METRIC_NAMES[metric]} needs the probabilities of {name!r}: pass its Answers")
            hits = right_or_wrong(run)
            if hits.dtype != bool or hits.ndim != 1 or len(run) < 2:
                raise DataError(
                    f"expected a bool array of two or more examples for {name!r}, seed number {s}, "
                    f"got {hits.dtype} of shape {hits.shape}: pass predicted == y"
                )
            if len(run) != len(base):
                raise DataError(
                    f"expected {len(base)} examples for {name!r}, seed number {s}, as {baseline!r} has, "
                    f"got {len(run)}: measure all arms of a seed on the same examples"
                )
    if shared_items and len({len(run) for run in first}) > 1:
        raise DataError(
            "expected the same number of examples for all seeds with shared_items=True, "
            f"got {', '.join(str(len(run)) for run in first)}: pass shared_items=False"
        )
    return given


def _note(comparisons: Sequence[Comparison], num_seeds: int) -> str:
    sentences = []
    if num_seeds == 1:
        sentences.append(
            "Intervals cover the choice of test examples only; --seeds 5 would include the variation of training."
        )
    elif num_seeds < FEW_SEEDS:
        sentences.append(
            f"{num_seeds} seeds: where trainings differ more than test examples do, such intervals are too narrow "
            "(they held the truth in 64 % of trials with 2 seeds, 77 % with 3, 86 % with 5)."
        )
    if len(comparisons) > 1:
        sentences.append("Intervals are not corrected for multiple comparisons: expect one false alarm in 20.")
    return " ".join(sentences)
