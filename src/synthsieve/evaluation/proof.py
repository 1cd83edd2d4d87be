"""The proof that augmentation helped, and the choice that does no harm.

An arm is one way to train; each arm is trained once a seed, and what counts is which examples it then gets right. Arms
are compared in pairs with a baseline on the same seeds and examples:

    d_si = right_arm_si - right_baseline_si, difference = mean_s mean_i d_si

`prove` puts a 95 % bootstrap interval round the difference and a plain verdict beside it; it is for test examples.
`choose` picks an arm, or keeps the baseline; it is for validation examples.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from synthsieve.errors import DataError
from synthsieve.randomness import numpy_stream

RESAMPLES = 10_000
COLUMNS = ("arm", "accuracy %", "difference", "95 % interval", "verdict")
# Six answers that differ, all in favour, are the fewest an exact sign test calls significant: 2 / 2^6 < 5 %.
FEW_ANSWERS = 6
# Below this many seeds the interval is known to be too narrow: see `prove`.
FEW_SEEDS = 10
_BLOCK = 100  # resamples at a time: their counts of 26,032 examples take 10 MB

Right = Mapping[str, Sequence[np.ndarray]]


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
    """How often one arm is right.

    Attributes:
        name: the arm's name.
        accuracies: share of examples it gets right, one a seed.
    """

    name: str
    accuracies: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean accuracy over seeds."""
        return float(np.mean(self.accuracies))


@dataclass(frozen=True)
class Comparison:
    """One arm against the baseline.

    Attributes:
        arm: the arm's name.
        differences: its accuracy less the baseline's, one a seed.
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
    """

    baseline: str
    arms: tuple[Arm, ...]
    comparisons: tuple[Comparison, ...]
    num_items: tuple[int, ...]
    shared_items: bool
    resamples: int
    note: str

    def arm(self, name: str) -> Arm:
        return {arm.name: arm for arm in self.arms}[name]

    def comparison(self, name: str) -> Comparison:
        return {comparison.arm: comparison for comparison in self.comparisons}[name]

    def as_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and text, for a JSON file."""
        return {
            "baseline": self.baseline,
            "accuracy": {arm.name: list(arm.accuracies) for arm in self.arms},
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
        """A row an arm, as `COLUMNS`: name, mean accuracy in %, difference and interval in points, verdict.

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
        lines = [COLUMNS, *self.rows(others)]
        widths = [max(len(line[column]) for line in lines) for column in range(5)]
        rows = [
            "  ".join([line[0].ljust(widths[0]), *(line[i].rjust(widths[i]) for i in (1, 2, 3)), line[4]])
            for line in lines
        ]
        return "\n".join([*rows, self.note] if self.note else rows) + "\n"

    def _repr_html_(self) -> str:
        from synthsieve.charts.html_table import html_table

        return html_table(COLUMNS, self.rows(), note=self.note)


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
        gap = f"{100 * best.difference:+.2f} points on validation (standard error {100 * best.standard_error:.2f})"
        asked = f"more than {self.margin:g} standard error{'' if self.margin == 1 else 's'}"
        if not self.keeps_baseline:
            return f"{self.arm} is chosen over {self.baseline}: {gap}, {asked}"
        if best.difference <= 0:
            return f"{self.baseline} is kept: no other arm is better on validation, the best being {best.arm} at {gap}"
        return f"{self.baseline} is kept: the best of the others, {best.arm}, is at {gap}, and {asked} is asked for"

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


def prove(
    right: Right, *, baseline: str, shared_items: bool, generator: np.random.Generator, resamples: int = RESAMPLES
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

    Four or five answers that differ, all in favour, pass as a verdict though an exact test would not let them: the note
    says so.

    Args:
        right: for each arm one bool array a seed, (n_s,): which of the seed's test examples the arm gets right. Arms
            have the same seeds in the same order, and within a seed the same examples in the same order.
        baseline: the arm the others are compared with.
        shared_items: the seeds were all judged by the same examples, in the same order.
        generator: moved by one draw; an arm's interval does not depend on which other arms there are.
    """
    arms = _checked(right, baseline, shared_items=shared_items)
    if resamples < 100:
        raise DataError(f"expected at least 100 resamples, got {resamples}: leave it at {RESAMPLES}")
    seed = int(generator.integers(2**63))
    num_seeds = len(arms[baseline])
    differences = _paired(arms, baseline)
    # (resamples, S): how often each seed is drawn
    weights = numpy_stream(seed, "seeds").multinomial(num_seeds, np.full(num_seeds, 1 / num_seeds), size=resamples)
    if shared_items and num_seeds > 1:
        draws = _crossed(differences, weights, generator=numpy_stream(seed, "items"))
    else:
        draws = {
            name: _nested(each, weights, generator=numpy_stream(seed, f"items/{name}"))
            for name, each in differences.items()
        }
    comparisons = tuple(
        Comparison(
            name,
            tuple(float(d.mean()) for d in each),
            _interval(draws[name]),
            int(sum(np.count_nonzero(d) for d in each)),
        )
        for name, each in differences.items()
    )
    return Proof(
        baseline=baseline,
        arms=tuple(Arm(name, tuple(float(r.mean()) for r in runs)) for name, runs in arms.items()),
        comparisons=comparisons,
        num_items=tuple(len(r) for r in arms[baseline]),
        shared_items=shared_items,
        resamples=resamples,
        note=_note(comparisons, num_seeds),
    )


def choose(validation: Right, *, baseline: str, shared_items: bool, margin: float = 1.0) -> Choice:
    """The arm of best mean validation accuracy among those that clear the margin; else the baseline.

        an arm clears if difference > margin * standard_error

    The standard error is that of the paired difference over the choice of validation examples. See
    docs/decisions/0402-do-no-harm.md for why one, and how far the chosen arm's validation figure flatters it.

    Args:
        validation: as `right` of `prove`, for validation examples.
        baseline: the arm that stands when nothing beats it.
        shared_items: the seeds all share their validation examples, in the same order.
        margin: standard errors by which an arm must be better, at least 0.
    """
    arms = _checked(validation, baseline, shared_items=shared_items)
    if not margin >= 0:
        raise DataError(f"expected margin at least 0 standard errors, got {margin:g}: 1 is the default")
    accuracy = {name: _mean(runs) for name, runs in arms.items()}
    candidates = tuple(
        Candidate(name, accuracy[name], _mean(each), _standard_error(each, shared_items=shared_items))
        for name, each in _paired(arms, baseline).items()
    )
    clear = [one for one in candidates if one.clears(margin)]
    chosen = max(clear, key=_accuracy).arm if clear else baseline  # the first among equals
    return Choice(chosen, baseline, accuracy[baseline], candidates, float(margin))


def _mean(runs: Sequence[np.ndarray]) -> float:
    """mean_s mean_i: seeds count alike, whatever their number of examples."""
    return float(np.mean([run.mean() for run in runs]))


def _accuracy(one: Candidate) -> float:
    return one.accuracy


def _checked(right: Right, baseline: str, *, shared_items: bool) -> dict[str, list[np.ndarray]]:
    """The arms as int8 arrays, once they are known to be comparable."""
    if baseline not in right:
        raise DataError(f"expected the baseline {baseline!r} among the arms, got {', '.join(right)}: name one of these")
    if len(right) < 2:
        raise DataError(f"expected an arm to compare with {baseline!r}, got that one alone: add another")
    given = {name: [np.asarray(run) for run in runs] for name, runs in right.items()}
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
            if run.dtype != bool or run.ndim != 1 or len(run) < 2:
                raise DataError(
                    f"expected a bool array of two or more examples for {name!r}, seed number {s}, "
                    f"got {run.dtype} of shape {run.shape}: pass predicted == y"
                )
            if len(run) != len(base):
                raise DataError(
                    f"expected {len(base)} examples for {name!r}, seed number {s}, as {baseline!r} has, "
                    f"got {len(run)}: judge all arms of a seed by the same examples"
                )
    if shared_items and len({len(run) for run in first}) > 1:
        raise DataError(
            "expected the same number of examples for all seeds with shared_items=True, "
            f"got {', '.join(str(len(run)) for run in first)}: pass shared_items=False"
        )
    return {name: [run.astype(np.int8) for run in runs] for name, runs in given.items()}


def _paired(arms: Mapping[str, list[np.ndarray]], baseline: str) -> dict[str, list[np.ndarray]]:
    """d of every arm but the baseline: int8 (n_s,) for each seed, one of -1, 0, 1."""
    return {
        name: [arm - base for arm, base in zip(runs, arms[baseline], strict=True)]
        for name, runs in arms.items()
        if name != baseline
    }


def _nested(differences: Sequence[np.ndarray], weights: np.ndarray, *, generator: np.random.Generator) -> np.ndarray:
    """Resampled differences where each seed has its own examples: float64 (resamples,).

    d is -1, 0 or 1, so the sum of any number of draws is (ones - minus ones) of a multinomial: nothing is gathered.
    """
    total = np.zeros(len(weights))
    for s, d in enumerate(differences):
        counts = np.array([np.count_nonzero(d == value) for value in (0, 1, -1)])
        drawn = generator.multinomial(weights[:, s] * len(d), counts / len(d))  # (resamples, 3)
        total += (drawn[:, 1] - drawn[:, 2]) / len(d)
    return total / len(differences)


def _crossed(
    differences: Mapping[str, Sequence[np.ndarray]], weights: np.ndarray, *, generator: np.random.Generator
) -> dict[str, np.ndarray]:
    """Resampled differences where all seeds share their examples: float64 (resamples,) for each arm.

    Counts times differences, a block of resamples at a time; all arms see the same resamples. Whole numbers below
    2^24 are exact in float32.
    """
    num_seeds = weights.shape[1]
    columns = np.concatenate([np.stack(each, axis=1) for each in differences.values()], axis=1).astype(np.float32)
    n = len(columns)
    draws = np.empty((len(weights), len(differences)))
    for start in range(0, len(weights), _BLOCK):
        block = weights[start : start + _BLOCK]
        counts = np.stack([np.bincount(generator.integers(0, n, n, dtype=np.int32), minlength=n) for _ in block])
        sums = (counts.astype(np.float32) @ columns).reshape(len(block), len(differences), num_seeds)
        draws[start : start + len(block)] = np.einsum("bas,bs->ba", sums.astype(np.float64), block) / (n * num_seeds)
    return dict(zip(differences, draws.T, strict=True))


def _interval(draws: np.ndarray) -> tuple[float, float]:
    """The middle 95 % of the draws; ends are draws themselves, the outer ones, less what rounding left on a zero."""
    draws = np.round(draws, 12)
    low, high = np.quantile(draws, 0.025, method="lower"), np.quantile(draws, 0.975, method="higher")
    return float(low), float(high)


def _standard_error(differences: Sequence[np.ndarray], *, shared_items: bool) -> float:
    """Of the mean difference, over examples: sqrt(sum_s var_s / n_s) / S, or sqrt(var / n) of shared ones' means."""
    if shared_items:
        differences = [np.mean(differences, axis=0)]
    return math.sqrt(sum(float(d.var(ddof=1)) / len(d) for d in differences)) / len(differences)


def _note(comparisons: Sequence[Comparison], num_seeds: int) -> str:
    sentences = []
    if num_seeds == 1:
        sentences.append(
            "One seed: the intervals are over the choice of test examples only, and say nothing of another training."
        )
    elif num_seeds < FEW_SEEDS:
        sentences.append(
            f"{num_seeds} seeds: where trainings differ far more than the choice of test examples does, such "
            "intervals held the truth in 64 % of trials with 2 seeds, 77 % with 3 and 86 % with 5, not in 95 %."
        )
    for one in comparisons:
        if one.verdict is not Verdict.CANNOT_TELL and one.differing < FEW_ANSWERS:
            sentences.append(f"{one.arm}: only {one.differing} answers differ, too few to trust the verdict.")
    if len(comparisons) > 1:
        sentences.append("Each interval stands alone: of 20 arms that change nothing, one is expected to miss zero.")
    return " ".join(sentences)
