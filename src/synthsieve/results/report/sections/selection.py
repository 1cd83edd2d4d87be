"""Sections 3 and 4: what filter and coreset did: drawn, kept and selected samples, and their purity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synthsieve.results.pool_view import PoolView
from synthsieve.results.report.wording import count, counted, figure
from synthsieve.training.pool import Outcomes


@dataclass(frozen=True)
class ClassYield:
    """One class, or all: samples drawn, kept by the filter and selected, and the purity of the selected."""

    name: str
    drawn: int
    kept: int
    selected: int
    purity: float | None

    @classmethod
    def of(cls, name: str, view: PoolView, outcome: Outcomes, among: np.ndarray) -> ClassYield:
        rows, kept = np.flatnonzero(among & (outcome.weight > 0)), int((among & outcome.kept).sum())
        return cls(name, int(among.sum()), kept, len(rows), view.pool.purity(rows))


@dataclass(frozen=True)
class SelectionSummary:
    """A pool after filter and coreset selection.

    Attributes:
        arm: whose pool it is; outcome: of its samples; rejected_by_hand: samples rejected since training.
        total: all classes; classes: each.
    """

    arm: str
    outcome: Outcomes
    total: ClassYield
    classes: tuple[ClassYield, ...]
    rejected_by_hand: int

    @classmethod
    def of(cls, view: PoolView, outcome: Outcomes) -> SelectionSummary:
        total = ClassYield.of("all classes", view, outcome, np.ones(len(view), dtype=bool))
        classes = (ClassYield.of(name, view, outcome, view.pool.y == c) for c, name in enumerate(view.classes))
        return cls(view.name, outcome, total, tuple(classes), len(view.rejected))

    @property
    def rejected(self) -> dict[str, int]:
        """Reason -> number of samples, where there are any."""
        return {reason: number for reason, number in list(self.outcome.counts().items())[2:] if number}

    @property
    def selects(self) -> bool:
        """Whether fewer samples were selected than kept."""
        return self.total.selected < self.total.kept

    @property
    def coreset_heading(self) -> str:
        if not self.selects:
            return f"No coreset: all {counted(self.total.kept, 'kept sample')} are used for training"
        return f"{counted(self.total.selected, 'sample')}, each with a weight, stand for {count(self.total.kept)}"

    @property
    def filter_heading(self) -> str:
        """How many samples are kept, and the entropy ceiling."""
        kept, ceiling = f"{count(self.total.kept)} of {count(self.total.drawn)} samples", self.outcome.entropy_ceiling
        if np.isfinite(ceiling) and self.outcome.settings.entropy_ceiling is None:
            return f"{kept} are below the ceiling of their class, at most {figure(ceiling)} nats"
        if np.isfinite(ceiling):
            return f"{kept} are below the entropy ceiling, {figure(ceiling)} nats"
        return f"No ceiling: {kept} are kept"
