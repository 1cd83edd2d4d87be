"""Section 2: samples of each class: the best, a typical and the worst kept one, and rejected ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from synthsieve.data.dataset import UNLABELED
from synthsieve.evaluation.predict import NO_ORACLE
from synthsieve.results.pool_view import PoolView
from synthsieve.results.report.sample_views import (
    DETAILS,
    Cells,
    Detail,
    Picture,
    SampleView,
    differing,
    real_views,
    synthetic_views,
)
from synthsieve.results.report.wording import cut, figure
from synthsieve.selection.entropy import Reason
from synthsieve.settings import EntropyAt
from synthsieve.training.pool import Outcomes

MAX_CLASSES = 100
OPEN_CLASSES = 20  # further ones are folded
MIN_CLASSES = 10  # with fewer than these, samples are shown in less detail instead
REJECTED = (Reason.HIGH_ENTROPY, Reason.OTHER_LABEL, Reason.BY_HAND)


class Role(StrEnum):
    """Why a sample is shown: lowest, median and highest entropy of the selected; median of the rejected."""

    BEST = "best"
    TYPICAL = "typical"
    WORST = "worst kept"
    REJECTED = "rejected"


@dataclass(frozen=True)
class Pick:
    """One sample that is shown.

    Attributes:
        row: in the pool; name: the requested class.
        entropy: in nats; weight: how many samples it stands for, 0 if it is not selected.
        outcome: `selected`, or why it was rejected.
        oracle_class: the class that the independent classifier gives it; None without one.
        real_row: the nearest training example, a row of `dataset.train`; real_class: its class, None if unlabelled.
        distance: to it, in the encoder's space.
    """

    role: Role
    row: int
    name: str
    entropy: float
    weight: float
    outcome: str
    oracle_class: str | None
    real_row: int
    real_class: str | None
    distance: float

    @property
    def alt(self) -> str:
        """`synthetic 3, entropy 0.002, best`."""
        return f"synthetic {cut(self.name)}, entropy {figure(self.entropy)}, {self.role}"

    @property
    def real_alt(self) -> str:
        """`nearest real example, of class 3, distance 1.31`."""
        label = "class unknown" if self.real_class is None else f"of class {cut(self.real_class)}"
        return f"nearest real example, {label}, distance {figure(self.distance)}"

    @property
    def remarks(self) -> list[str]:
        """Why it was rejected, and whether the oracle or the neighbour is of another class."""
        remarks = [self.outcome] if self.role is Role.REJECTED else []
        if self.oracle_class not in (None, self.name):
            remarks.append(f"the oracle predicts {cut(str(self.oracle_class), 24)}")
        if self.real_class not in (None, self.name):
            remarks.append(f"its neighbour is of class {cut(str(self.real_class), 24)}")
        return remarks


@dataclass(frozen=True)
class Pair:
    """A sample beside the nearest real example."""

    pick: Pick
    synthetic: SampleView
    real: SampleView

    @property
    def differs(self) -> tuple[bool, ...]:
        """Which cells differ, where both are rows of one table; else empty."""
        if (
            isinstance(self.synthetic, Cells)
            and isinstance(self.real, Cells)
            and self.synthetic.names == self.real.names
        ):
            return differing(self.synthetic.cells, self.real.cells)
        return ()


@dataclass(frozen=True)
class ClassSamples:
    """The samples of a class; `note` says what is missing."""

    name: str
    pairs: tuple[Pair, ...]
    note: str

    @property
    def layout(self) -> str:
        """How they are laid out: `rows` of a table, spectrograms with players (`heard`), or the form of one sample."""
        if not self.pairs:
            return "none"
        if all(pair.differs for pair in self.pairs):
            return "rows"
        first = self.pairs[0].synthetic
        return "heard" if isinstance(first, Picture) and first.is_of_sound else first.form


@dataclass(frozen=True)
class SampleGallery:
    """Classes as HTML, open and folded, and a sentence for everything left out."""

    open: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def sample_gallery(
    view: PoolView, outcome: Outcomes, render: Callable[[ClassSamples], str], space: int
) -> SampleGallery:
    """As many classes as fit into `space` bytes, at the highest detail at which enough of them fit."""
    labels = range(min(len(view.classes), MAX_CLASSES))
    picks = [picks_of(view, outcome, label) for label in labels]
    enough = min(len(labels), MIN_CLASSES)
    for detail in DETAILS:
        blocks = [render(one) for one in _class_samples(view, picks, detail)]
        fitting = int((np.cumsum([len(block.encode()) for block in blocks]) <= space).sum())
        if fitting >= enough:
            break
    notes = [detail.note] if detail.note else []
    if fitting < len(view.classes):
        notes.append(
            f"Only the first {fitting} of {len(view.classes):,} classes are shown, to keep this page small; "
            "synthsieve serve shows all."
        )
    shown = tuple(blocks[:fitting])
    return SampleGallery(shown[:OPEN_CLASSES], shown[OPEN_CLASSES:], tuple(notes))


def picks_of(view: PoolView, outcome: Outcomes, label: int) -> list[Pick]:
    """The samples shown of one class; fewer where it has fewer samples, none twice."""
    entropy, of_class = view.pool.entropy, view.pool.y == label

    def by_entropy(mask: np.ndarray) -> np.ndarray:
        rows = np.flatnonzero(of_class & mask)
        return rows[np.argsort(entropy[rows], kind="stable")]

    selected = by_entropy(outcome.weight > 0)
    roles: dict[int, Role] = {}
    if len(selected):
        places = {Role.BEST: 0, Role.WORST: -1, Role.TYPICAL: (len(selected) - 1) // 2}
        for role, place in places.items():
            roles.setdefault(int(selected[place]), role)
    order = list(Role)
    picks = [_pick(view, outcome, row, roles[row]) for row in sorted(roles, key=lambda row: order.index(roles[row]))]
    for reason in REJECTED:
        rejected = by_entropy(outcome.reason == reason)
        if len(rejected):
            picks.append(_pick(view, outcome, int(rejected[(len(rejected) - 1) // 2]), Role.REJECTED))
    return picks


def _pick(view: PoolView, outcome: Outcomes, row: int, role: Role) -> Pick:
    def name(label: int, unknown: int) -> str | None:
        return None if label == unknown else view.classes[label]

    real_row = int(view.nearest_real(row, 1).indices[0])
    return Pick(
        role=role,
        row=row,
        name=view.classes[view.pool.y[row]],
        entropy=float(view.pool.entropy[row]),
        weight=float(outcome.weight[row]),
        outcome=_describe(view, outcome, row),
        oracle_class=name(int(view.pool.oracle_class[row]), NO_ORACLE),
        real_row=real_row,
        real_class=name(int(view.dataset.train.y[real_row]), UNLABELED),
        distance=float(view.nearest_real(row, 1).distances[0]),
    )


def _describe(view: PoolView, outcome: Outcomes, row: int) -> str:
    settings, reason = outcome.settings, outcome.reason[row]
    if reason == Reason.HIGH_ENTROPY and settings.entropy_ceiling is None and settings.keep_fraction:
        kept = view.pool.entropy[outcome.kept & (view.pool.y == view.pool.y[row])]
        return "entropy above the ceiling of its class" + (f", {figure(kept.max())}" if len(kept) else "")
    if reason != Reason.OTHER_LABEL:
        return outcome.describe(row)
    logits = view.pool.logits_x if settings.entropy_at is EntropyAt.X else view.pool.logits_z
    return f"the classifier predicts {view.classes[int(logits[row].argmax())]}"


def _class_samples(view: PoolView, picks: list[list[Pick]], detail: Detail) -> list[ClassSamples]:
    """The views of all picks, decoded in one batch."""
    flat = [pick for each in picks for pick in each]
    rows, real_rows = (np.array([getattr(p, name) for p in flat], dtype=np.int64) for name in ("row", "real_row"))
    views = zip(synthetic_views(view, rows, detail), real_views(view, real_rows, detail), strict=True) if flat else ()
    pairs = iter([Pair(pick, *two) for pick, two in zip(flat, views, strict=True)])
    return [
        ClassSamples(name, tuple(next(pairs) for _ in each), _note(each))
        for name, each in zip(view.classes, picks, strict=False)
    ]


def _note(picks: list[Pick]) -> str:
    """What is missing of a class."""
    rejected = [pick.role is Role.REJECTED for pick in picks]
    if not picks:
        return "No sample was drawn for this class."
    if all(rejected):
        return "No sample of this class was selected."
    return "" if any(rejected) else "No sample of this class was rejected."
