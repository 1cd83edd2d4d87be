"""What `utility` found: the answer in a sentence, every comparison, and the scores of every arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from synthsieve.evaluation.answers import Answers
from synthsieve.evaluation.comparison import Verdict
from synthsieve.evaluation.metrics import METRIC_NAMES
from synthsieve.io.printable import html_table
from synthsieve.settings import Metric

LABELS_ONLY = "labels only"
ALL = "all synthetic rows"
OVERSAMPLED = "oversampled labelled rows"
PERMUTED = "permuted synthetic labels"
RANDOM = "random rows of the pool"
SELF_LABELED = "self-labelled real rows"
CONTROLS = (OVERSAMPLED, PERMUTED, RANDOM, SELF_LABELED)
METRICS = (Metric.ACCURACY, Metric.BALANCED_ACCURACY, Metric.LOG_LOSS, Metric.AVERAGE_PRECISION)
LEVEL = 0.05
COLUMNS = ("comparison", "metric", "difference", "95 % interval", "p (Holm)", "verdict")


@dataclass(frozen=True)
class Difference:
    """One arm against another by one metric.

    Attributes:
        arm: what was added to the labelled rows.
        against: what it is compared with.
        metric: what is compared; log-loss is negated, so that a positive difference is an improvement.
        value: mean score of `arm` minus that of `against`.
        interval: 95 % interval of `value`, not corrected for the number of comparisons.
        p_value: two-sided; corrected by Holm's method for all comparisons but the primary one.
        primary: whether this is the comparison that was named before test rows were read.
    """

    arm: str
    against: str
    metric: Metric
    value: float
    interval: tuple[float, float]
    p_value: float
    primary: bool = False

    @property
    def verdict(self) -> Verdict:
        """By the interval for the primary comparison, by the corrected p-value for the others."""
        if not self.primary and self.p_value >= LEVEL:
            return Verdict.CANNOT_TELL
        return Verdict.of(*self.interval)

    def describe(self) -> str:
        """`+8.31 points (95 % interval +6.87 to +9.80)`."""
        return f"{_signed(self.value, self.metric)} (95 % interval {self._span()})"

    def row(self) -> tuple[str, str, str, str, str, str]:
        """As `COLUMNS`."""
        corrected = "primary" if self.primary else f"{self.p_value:.3f}"
        name = f"{self.arm} - {self.against}"
        verdict = self.verdict.value if self.against == LABELS_ONLY else self.verdict.of_another()
        return name, METRIC_NAMES[self.metric], _signed(self.value, self.metric), self._span(), corrected, verdict

    def as_dict(self) -> dict[str, Any]:
        return {
            "arm": self.arm,
            "against": self.against,
            "metric": self.metric.value,
            "difference": self.value,
            "interval_95": list(self.interval),
            "p_value": self.p_value,
            "primary": self.primary,
            "verdict": self.verdict.value,
        }

    def _span(self) -> str:
        return " to ".join(_signed(end, self.metric, unit=False) for end in self.interval)


@dataclass(frozen=True)
class Utility:
    """How much synthetic rows help one estimator.

    Attributes:
        estimator: its name.
        metric: that of the primary comparison.
        primary: the comparison that was named before test rows were read.
        others: all other comparisons, with p-values corrected by Holm's method.
        scores: mean over repeats of each metric for each arm; None where the estimator gives no probabilities.
        rows: number of rows that each arm adds to the labelled rows.
        num_labels: labelled rows.
        num_synthetic: synthetic rows.
        num_test: test rows; with `folds`, the labelled rows.
        repeats: how often everything was trained and measured.
        folds: parts of the labels that were held out in turn; None with a test set.
        notes: what to know to read the figures.
        answers: of each arm in each repeat, for further comparisons.
    """

    estimator: str
    metric: Metric
    primary: Difference
    others: tuple[Difference, ...]
    scores: Mapping[str, Mapping[Metric, float | None]]
    rows: Mapping[str, int]
    num_labels: int
    num_synthetic: int
    num_test: int
    repeats: int
    folds: int | None
    notes: tuple[str, ...]
    answers: Mapping[str, Sequence[Answers]] = field(repr=False, compare=False)

    @property
    def verdict(self) -> Verdict:
        return self.primary.verdict

    @property
    def answer(self) -> str:
        """Do the rows help this estimator? One sentence."""
        arm, before = self._score(self.primary.arm), self._score(LABELS_ONLY)
        added = f"{self.rows[self.primary.arm]:,} synthetic rows"
        measured = f"{METRIC_NAMES[self.metric]} {before} with {self.num_labels:,} labels, {arm} with {added}"
        word = {Verdict.HELPS: "Yes", Verdict.HURTS: "No", Verdict.CANNOT_TELL: "Cannot tell"}[self.verdict]
        return f"{word}: {self.estimator} has {measured}: {self.primary.describe()}{self._caveat()}."

    def compared(self, arm: str, against: str = LABELS_ONLY, metric: Metric | None = None) -> Difference:
        """One comparison by its arms, by the primary metric if none is given."""
        metric = metric or self.metric
        for one in (self.primary, *self.others):
            if (one.arm, one.against, one.metric) == (arm, against, metric):
                return one
        raise KeyError(f"{arm} was not compared with {against} by {METRIC_NAMES[metric]}")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "answer": self.answer,
            "verdict": self.verdict.value,
            "estimator": self.estimator,
            "metric": self.metric.value,
            "primary": self.primary.as_dict(),
            "others": [one.as_dict() for one in self.others],
            "scores": {
                arm: {metric.value: score for metric, score in each.items()} for arm, each in self.scores.items()
            },
            "rows": dict(self.rows),
            "labels": self.num_labels,
            "synthetic": self.num_synthetic,
            "test": self.num_test,
            "repeats": self.repeats,
            "folds": self.folds,
            "notes": list(self.notes),
        }

    def lines(self) -> list[str]:
        """The answer, the scores of every arm, every comparison, and the notes, for a terminal."""
        head = ("trained on", "rows added", *(METRIC_NAMES[metric] for metric in METRICS))
        return [
            self.answer,
            "",
            *_aligned([head, *self.score_rows()]),
            "",
            *_aligned([COLUMNS, *(one.row() for one in (self.primary, *self.others))]),
            *self.notes,
        ]

    def score_rows(self) -> list[tuple[str, ...]]:
        """Name, number of added rows, and the four metrics of each arm, as text."""
        return [
            (arm, f"{self.rows[arm]:,}", *(score_text(self.scores[arm][metric], metric) for metric in METRICS))
            for arm in self.scores
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        rows = [one.row() for one in (self.primary, *self.others)]
        return html_table(COLUMNS, rows, note=" ".join([self.answer, *self.notes]))

    def _score(self, arm: str) -> str:
        return score_text(self.scores[arm][self.metric], self.metric)

    def _caveat(self) -> str:
        """What a control shows that changes the meaning of a gain."""
        if self.verdict is not Verdict.HELPS:
            return ""
        found = {one.against: one for one in self.others if one.arm == self.primary.arm and one.metric is self.metric}
        words = []
        for control, meaning in ((OVERSAMPLED, "repeating labelled rows"), (PERMUTED, "rows with permuted labels")):
            if control in found and found[control].verdict is not Verdict.HELPS:
                words.append(f"not clearly more than {meaning}")
        real = found.get(SELF_LABELED)
        if real is not None and real.verdict is Verdict.HURTS:
            words.append(f"{SELF_LABELED} give {_signed(-real.value, self.metric)} more")
        return f"; {' and '.join(words)}" if words else ""


def score_text(score: float | None, metric: Metric) -> str:
    """A score for people: in percent, log-loss in nats; a dash where it was not measured."""
    if score is None:
        return "-"
    return f"{-score:.3f}" if metric is Metric.LOG_LOSS else f"{100 * score:.1f} %"


def _signed(value: float, metric: Metric, *, unit: bool = True) -> str:
    if metric is Metric.LOG_LOSS:
        return f"{value:+.3f}{' nats' if unit else ''}"
    return f"{100 * value:+.2f}{' points' if unit else ''}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return lines
