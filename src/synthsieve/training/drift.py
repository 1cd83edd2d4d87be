"""Metrics that diverge: noticed in the rows of the history during training, reported once, with a remedy.

A metric that is no longer finite stops a run (`state.non_finite`). Long before that, energies and logits grow until the
classifier is certain of everything: entropies are all zero then, and nothing is left to select by. In healthy runs of
every kind of data f has stayed below 14, the contrast below 5 and logits below 30.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from synthsieve.errors import SynthsieveWarning
from synthsieve.training.history import Row

MAX_LOGIT = "largest_logit"  # of the labelled batch: the greatest |F(z)[y]|, a mean over the steps of a row
# Columns of the history and their limits. exp(-100) is the last number that float32 distinguishes from 0.
LIMITS = {MAX_LOGIT: 100.0, "negative_free_energy": 100.0, "contrast": 50.0}
_PENALTY = "set training.logit_penalty=0.001 or more, or lower"
MESSAGES = {  # what happens, and the remedy
    MAX_LOGIT: f"class logits diverge ({{}}): {_PENALTY} training.label_learning_rate",
    "negative_free_energy": f"the negative free energy f diverges ({{}}): {_PENALTY} training.prior_learning_rate",
    "contrast": "f at the data and f at the chains drift apart ({}): lower training.prior_learning_rate, raise "
    "sampling.training_steps, or set training.clip_gradient=1",
}


class TrainingWarning(SynthsieveWarning):
    """Training continues, but something needs attention."""


@dataclass(frozen=True)
class Drift:
    """A metric beyond its limit: which, after how many steps, and how large."""

    figure: str
    step: int
    value: float

    def __str__(self) -> str:
        found = f"{self.figure} is {self.value:,.3g} at step {self.step}, beyond {LIMITS[self.figure]:g}"
        return MESSAGES[self.figure].format(found)


def warn(message: str) -> None:
    """Issue `message` as a TrainingWarning."""
    warnings.warn(message, TrainingWarning, stacklevel=2)


class DriftMonitor:
    """Reports each metric that diverges, once; what the rows `before` showed is not reported again."""

    def __init__(self, log: Callable[[str], None] = warn, before: Iterable[Row] = ()) -> None:
        self._log, self._reported = log, {drift.figure for drift in drifts(before)}

    def check(self, row: Row) -> None:
        """Report every metric that has diverged for the first time."""
        for drift in drifts([row]):
            if drift.figure not in self._reported:
                self._reported.add(drift.figure)
                self._log(str(drift))


def drifts(rows: Iterable[Row]) -> list[Drift]:
    """For each metric that diverged, the first row beyond its limit."""
    found: dict[str, Drift] = {}
    for row in rows:
        for figure, limit in LIMITS.items():
            if figure not in found and abs(row.get(figure, 0.0)) > limit:
                found[figure] = Drift(figure, int(row["step"]), row[figure])
    return list(found.values())
