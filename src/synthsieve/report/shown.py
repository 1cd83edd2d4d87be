"""The samples of each class as the page shows them, and as many classes as fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from synthsieve.data.dataset import UNLABELED
from synthsieve.report.sample_views import (
    DETAILS,
    Cells,
    Detail,
    Picture,
    Shown,
    differing,
    real_views,
    synthetic_views,
)
from synthsieve.report.samples import Pick, Role, picks_of
from synthsieve.report.wording import cut, figure
from synthsieve.review.fate import Fate
from synthsieve.review.pool_view import PoolView

MOST_CLASSES = 100
OPEN_CLASSES = 20  # further ones are folded away
ENOUGH_CLASSES = 10  # with fewer than these, less of each sample is shown instead


@dataclass(frozen=True)
class Pair:
    """A sample of class `name` beside the real example nearest to it.

    Attributes:
        real_label: the class of that example, as the data have it; None where nobody knows.
        differs: which cells differ, where both are rows of a table; empty elsewhere.
    """

    name: str
    pick: Pick
    synthetic: Shown
    real: Shown
    real_label: str | None
    differs: tuple[bool, ...]

    @property
    def synthetic_alt(self) -> str:
        """`synthetic 3, entropy 0.002, best`."""
        return f"synthetic {cut(self.name)}, entropy {figure(self.pick.entropy)}, {self.pick.role}"

    @property
    def real_alt(self) -> str:
        """`nearest real example, a 3, distance 1.31`."""
        label = "class unknown" if self.real_label is None else f"of class {cut(self.real_label)}"
        return f"nearest real example, {label}, distance {figure(self.pick.distance)}"

    @property
    def remarks(self) -> list[str]:
        """What is odd about it: why it was rejected, that the judge or the neighbour is of another class."""
        pick = self.pick
        told = [pick.fate] if pick.role is Role.REJECTED else []
        if pick.judged is not None and pick.judged != self.name:
            told.append(f"the judge calls it {cut(pick.judged, 24)}")
        if self.real_label is not None and self.real_label != self.name:
            told.append(f"its neighbour is of class {cut(self.real_label, 24)}")
        return told


@dataclass(frozen=True)
class ClassSamples:
    """What is shown of a class; `note` says what is missing."""

    name: str
    pairs: tuple[Pair, ...]
    note: str

    @property
    def layout(self) -> str:
        """How they are laid out: as `rows` of a table, as spectrograms `heard` beneath, or by what one sample is."""
        if not self.pairs:
            return "none"
        if all(pair.differs for pair in self.pairs):
            return "rows"
        first = self.pairs[0].synthetic
        return "heard" if isinstance(first, Picture) and first.is_of_sound else first.form


@dataclass(frozen=True)
class Gallery:
    """Classes as HTML: those in the open, those folded away, and a sentence for each thing left out."""

    open: tuple[str, ...]
    folded: tuple[str, ...]
    notes: tuple[str, ...]


def gallery(view: PoolView, fate: Fate, render: Callable[[ClassSamples], str], room: int) -> Gallery:
    """As many classes as `room` bytes take, at the highest detail at which enough of them fit."""
    labels = range(min(len(view.classes), MOST_CLASSES))
    picks = [picks_of(view, fate, label) for label in labels]
    enough = min(len(labels), ENOUGH_CLASSES)
    for detail in DETAILS:
        blocks = [render(one) for one in _classes(view, picks, detail)]
        ends = np.cumsum([len(block.encode()) for block in blocks])
        fitting = int((ends <= room).sum())
        if fitting >= enough:
            break
    notes = [detail.words] if detail.words else []
    if fitting < len(view.classes):
        notes.append(
            f"Shown are the first {fitting} of {len(view.classes):,} classes, which keeps this page small; "
            "synthsieve serve shows all."
        )
    shown = blocks[:fitting]
    return Gallery(tuple(shown[:OPEN_CLASSES]), tuple(shown[OPEN_CLASSES:]), tuple(notes))


def _classes(view: PoolView, picks: list[list[Pick]], detail: Detail) -> list[ClassSamples]:
    """Pictures, rows or sentences of all picks, made at one go."""
    flat = [pick for each in picks for pick in each]
    rows = np.array([pick.row for pick in flat], dtype=np.int64)
    real_rows = np.array([pick.real_row for pick in flat], dtype=np.int64)
    if not len(flat):
        return [ClassSamples(name, (), _note([])) for name in view.classes[: len(picks)]]
    pairs = iter(
        [
            Pair(view.classes[pick.label], pick, mine, theirs, _label(view, pick.real_row), _differing(mine, theirs))
            for pick, mine, theirs in zip(
                flat, synthetic_views(view, rows, detail), real_views(view, real_rows, detail), strict=True
            )
        ]
    )
    return [
        ClassSamples(name, tuple(next(pairs) for _ in each), _note(each))
        for name, each in zip(view.classes, picks, strict=False)
    ]


def _label(view: PoolView, row: int) -> str | None:
    label = int(view.dataset.train.y[row])
    return None if label == UNLABELED else view.classes[label]


def _differing(mine: Shown, theirs: Shown) -> tuple[bool, ...]:
    if isinstance(mine, Cells) and isinstance(theirs, Cells) and mine.names == theirs.names:
        return differing(mine.cells, theirs.cells)
    return ()


def _note(picks: list[Pick]) -> str:
    """What is missing of a class."""
    if not picks:
        return "No sample was drawn for this class."
    if all(pick.role is Role.REJECTED for pick in picks):
        return "No sample of this class passed the sieve."
    return "" if any(pick.role is Role.REJECTED for pick in picks) else "No sample of this class was rejected."
