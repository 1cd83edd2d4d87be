"""What the sieve did, in figures: drawn, kept and selected, overall and of each class, and how pure it left them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synthsieve.config import AugmentationSettings, Ceiling, Coreset
from synthsieve.report.wording import count, counted, figure, percent
from synthsieve.review.fate import Fate, purity
from synthsieve.review.pool_view import PoolView

SELECTED_BY = {
    Coreset.EVERYTHING: "everything that is kept is learned from",
    Coreset.RANDOM: "a random part of each class is learned from",
    Coreset.CRAIG: "CRAIG picks the samples whose weighted gradients stand for those of all that are kept",
    Coreset.ADACORE: "AdaCore picks as CRAIG does, with gradients measured by the curvature of the loss",
}


@dataclass(frozen=True)
class ClassYield:
    """One class, or all: how many were drawn, kept by the filter and selected, and the purity of the selected."""

    name: str
    drawn: int
    kept: int
    selected: int
    purity: float | None


@dataclass(frozen=True)
class Sieved:
    """A pool after the sieve.

    Attributes:
        arm: whose pool it is.
        total: all classes; classes: each.
        rejected: why -> how many, where there were any.
        line: where the line was drawn, one sentence; rule: how it was found, one sentence.
        selection: how the coreset was chosen, one sentence.
        trained: where training drew the line, in a few words.
        largest_weight: how many samples one stands for, at most.
        gradient_error, gradient_bound: of the coreset; None where they were not measured.
        marked: samples marked as bad by hand since.
    """

    arm: str
    total: ClassYield
    classes: tuple[ClassYield, ...]
    rejected: dict[str, int]
    line: str
    rule: str
    selection: str
    trained: str
    largest_weight: float
    gradient_error: float | None
    gradient_bound: float | None
    marked: int

    @property
    def selects(self) -> bool:
        """Whether fewer were selected than kept."""
        return self.total.selected < self.total.kept


def sieved(view: PoolView, fate: Fate) -> Sieved:
    """The figures of a pool."""
    everyone = np.ones(len(view), dtype=bool)
    total = _yield("all classes", view, fate, everyone)
    classes = [_yield(name, view, fate, view.pool.y == label) for label, name in enumerate(view.classes)]
    counts = {why: number for why, number in list(fate.counts().items())[2:] if number}
    return Sieved(
        view.name,
        total,
        tuple(classes),
        counts,
        _line(total, fate),
        _rule(fate.settings),
        SELECTED_BY[fate.settings.coreset],
        _trained(fate),
        float(fate.weight.max(initial=0.0)),
        fate.figures.get("gradient_error"),
        fate.figures.get("gradient_bound"),
        len(view.marked),
    )


def _yield(name: str, view: PoolView, fate: Fate, among: np.ndarray) -> ClassYield:
    rows = np.flatnonzero(among & (fate.weight > 0))
    kept = int((among & fate.kept).sum())
    return ClassYield(name, int(among.sum()), kept, len(rows), purity(view.pool, view.scores, rows))


def _line(total: ClassYield, fate: Fate) -> str:
    if not np.isfinite(fate.entropy_ceiling):
        if total.kept == total.drawn:
            return f"No line was drawn: all {count(total.drawn)} samples are kept"
        return f"{count(total.kept)} of {count(total.drawn)} samples are kept"
    kept = f"{count(total.kept)} of {count(total.drawn)} samples lie on the right side of"
    if fate.settings.entropy_ceiling is None:
        return f"{kept} their class's line, the highest at {figure(fate.entropy_ceiling)} nats"
    return f"{kept} the line, entropy below {figure(fate.entropy_ceiling)} nats"


def _trained(fate: Fate) -> str:
    if not np.isfinite(fate.entropy_ceiling):
        return "training drew none"
    own = fate.settings.entropy_ceiling is None
    return (
        f"training drew {'one for each class, the highest at' if own else 'it at'} {figure(fate.entropy_ceiling)} nats"
    )


def _rule(settings: AugmentationSettings) -> str:
    at = "the sample, seen again by the classifier" if settings.entropy_at == "x" else "its latent"
    start = f"Entropy is the classifier's doubt about {at}; 0 is none, and lower is surer."
    asked = " A sample must also be given the class that was asked for." if settings.require_asked_class else ""
    ceiling = settings.entropy_ceiling
    if isinstance(ceiling, Ceiling):
        return f"{start} The ceiling was searched for on validation.{asked}"
    if ceiling is not None:
        return f"{start} The ceiling was given beforehand: {figure(ceiling)} nats.{asked}"
    if settings.keep_fraction is not None:
        kept = percent(settings.keep_fraction, 0)
        each = f"Of each class the surest {kept} are kept, so that every class has a line of its own"
        return f"{start} {each}; the highest is the ceiling.{asked}"
    return f"{start} This arm filters nothing, for comparison.{asked}"


def coreset_in_one_line(pool: Sieved) -> str:
    """The heading of what the coreset kept."""
    if not pool.selects:
        return f"Nothing was selected further: all {counted(pool.total.kept, 'kept sample')} are learned from"
    return f"{counted(pool.total.selected, 'sample')}, each with a weight, stand for {count(pool.total.kept)}"
