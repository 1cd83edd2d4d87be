"""Numbers that run away: seen in the rows of the history as learning goes on, told once, with what helps.

A term that is no longer finite stops a run (`learner.non_finite`). Long before that, energies and logits grow until the
classifier is sure of everything: entropies are all zero then, and nothing is left to sieve by. In healthy runs of every
kind of data f has stayed below 14, the contrast below 5 and logits below 30.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from synthsieve.learning.history import Row

LARGEST_LOGIT = "largest_logit"  # of the labelled batch: the greatest |F(z)[y]|, a mean over the steps of a row


class Figure(StrEnum):
    """A column of the history that is watched."""

    LOGITS = LARGEST_LOGIT
    FREE_ENERGY = "negative_free_energy"
    CONTRAST = "contrast"


# Beyond these a figure has run away: exp(-100) is the last number that float32 tells from 0.
LIMITS = {Figure.LOGITS: 100.0, Figure.FREE_ENERGY: 100.0, Figure.CONTRAST: 50.0}
WORDS = {
    Figure.LOGITS: (
        "class logits run away",
        "set learning.logit_penalty=0.001 or more, or lower learning.label_learning_rate",
    ),
    Figure.FREE_ENERGY: (
        "the negative free energy f runs away",
        "set learning.logit_penalty=0.001 or more, or lower learning.prior_learning_rate",
    ),
    Figure.CONTRAST: (
        "f at the data and f at the chains drift apart",
        "lower learning.prior_learning_rate, raise sampling.training_steps, or set learning.clip_gradient=1",
    ),
}


class LearningWarning(UserWarning):
    """Learning goes on, but there is something to know."""


@dataclass(frozen=True)
class Drift:
    """A figure beyond its limit: which, after how many steps, and how large."""

    figure: Figure
    step: int
    value: float

    def __str__(self) -> str:
        what, remedy = WORDS[self.figure]
        return (
            f"{what} ({self.figure} is {self.value:,.3g} at step {self.step}, beyond {LIMITS[self.figure]:g}): {remedy}"
        )


def warn(sentence: str) -> None:
    """Tell it as Python tells warnings."""
    warnings.warn(sentence, LearningWarning, stacklevel=2)


class Watch:
    """Looks at each new row of a history and tells of what ran away; what `before` showed already is not told again."""

    def __init__(self, tell: Callable[[str], None] = warn, before: Iterable[Row] = ()) -> None:
        self._tell, self._told = tell, {drift.figure for drift in drifts(before)}

    def look(self, row: Row) -> None:
        """Tell of every figure that has run away for the first time."""
        for drift in drifts([row]):
            if drift.figure not in self._told:
                self._told.add(drift.figure)
                self._tell(str(drift))


def drifts(rows: Iterable[Row]) -> list[Drift]:
    """For each figure that ran away, the first row in which it had."""
    found: dict[Figure, Drift] = {}
    for row in rows:
        for figure, limit in LIMITS.items():
            if figure not in found and abs(row.get(figure, 0.0)) > limit:
                found[figure] = Drift(figure, int(row["step"]), row[figure])
    return list(found.values())
