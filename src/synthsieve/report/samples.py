"""Which samples are shown: of each class the best, a typical and the worst one kept, and those the filter rejected."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from synthsieve.config import EntropyAt
from synthsieve.entropy import Reason
from synthsieve.report.wording import figure
from synthsieve.review.fate import Fate
from synthsieve.review.pool_view import PoolView
from synthsieve.review.scores import NOBODY

REJECTED = (Reason.HIGH_ENTROPY, Reason.OTHER_LABEL, Reason.BY_HAND)


class Role(StrEnum):
    """Why a sample is shown. Among those selected: lowest, middle and highest entropy; the middle of the rejected."""

    BEST = "best"
    TYPICAL = "typical"
    WORST = "worst kept"
    REJECTED = "rejected"


@dataclass(frozen=True)
class Pick:
    """One sample that is shown.

    Attributes:
        role: why.
        row: of the pool.
        label: the class asked for.
        entropy: nats; weight: how many samples it stands for, 0 where it was not selected.
        fate: `selected`, or why it was rejected.
        judged: the class the independent judge gives it; None without a judge.
        real_row: the nearest training example, a row of `dataset.train`; distance: how far, in the encoder's space.
    """

    role: Role
    row: int
    label: int
    entropy: float
    weight: float
    fate: str
    judged: str | None
    real_row: int
    distance: float


def picks_of(view: PoolView, fate: Fate, label: int) -> list[Pick]:
    """What is shown of one class; fewer where it has fewer samples, none twice."""
    entropy, of_class = view.pool.entropy, view.pool.y == label
    chosen = _by_entropy(of_class & (fate.weight > 0), entropy)
    rows: dict[int, Role] = {}
    if len(chosen):
        places = {Role.BEST: 0, Role.WORST: -1, Role.TYPICAL: (len(chosen) - 1) // 2}
        for role, place in places.items():
            rows.setdefault(int(chosen[place]), role)
    picks = [_pick(view, fate, row, role) for row, role in rows.items()]
    picks.sort(key=lambda pick: list(Role).index(pick.role))
    for reason in REJECTED:
        out = _by_entropy(of_class & (fate.reason == reason), entropy)
        if len(out):
            picks.append(_pick(view, fate, int(out[(len(out) - 1) // 2]), Role.REJECTED))
    return picks


def _by_entropy(among: np.ndarray, entropy: np.ndarray) -> np.ndarray:
    """The rows of a mask, lowest entropy first: int64."""
    rows = np.flatnonzero(among)
    return rows[np.argsort(entropy[rows], kind="stable")]


def _pick(view: PoolView, fate: Fate, row: int, role: Role) -> Pick:
    judged = int(view.scores.judged[row])
    return Pick(
        role,
        row,
        int(view.pool.y[row]),
        float(view.pool.entropy[row]),
        float(fate.weight[row]),
        _in_words(view, fate, row),
        None if judged == NOBODY else view.classes[judged],
        int(view.scores.nearest_row[row]),
        float(view.scores.nearest_distance[row]),
    )


def _in_words(view: PoolView, fate: Fate, row: int) -> str:
    settings = fate.settings
    if fate.reason[row] == Reason.HIGH_ENTROPY and settings.entropy_ceiling is None and settings.keep_fraction:
        kept = view.pool.entropy[fate.kept & (view.pool.y == view.pool.y[row])]
        return "entropy above the line of its class" + (f", {figure(kept.max())}" if len(kept) else "")
    if fate.reason[row] != Reason.OTHER_LABEL:
        return fate.in_words(row)
    answers = view.scores.logits_x if settings.entropy_at is EntropyAt.X else view.scores.logits_z
    return f"the classifier calls it {view.classes[int(answers[row].argmax())]}"
