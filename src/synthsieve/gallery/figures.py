"""What a choice comes to, in numbers: yield, purity and picks, over all and class by class."""

from __future__ import annotations

from typing import Any

import numpy as np

from synthsieve.entropy import Reason
from synthsieve.gallery.choice import Chosen
from synthsieve.review.fate import Fate, purity
from synthsieve.review.pool_view import PoolView

SELECTED = 4  # beside the codes of `Reason`


def figures_of(view: PoolView, chosen: Chosen) -> dict[str, Any]:
    """Plain numbers for JSON. A purity is None without a judge or without samples."""
    fate, pool, scores = chosen.fate, view.pool, view.scores
    kept, selected = np.flatnonzero(fate.kept), fate.selected
    right = scores.judged == pool.y
    told = purity(pool, scores, np.arange(len(pool))) is not None
    count = len(view.classes)

    def per_class(rows: np.ndarray) -> list[int]:
        return np.bincount(pool.y[rows], minlength=count).tolist()

    def shares(rows: np.ndarray) -> list[float | None]:
        of, good = per_class(rows), per_class(rows[right[rows]])
        return [part / whole if told and whole else None for part, whole in zip(good, of, strict=True)]

    return {
        "preview": chosen.preview,
        "done": round(chosen.done, 3),
        "note": chosen.note,
        "drawn": len(pool),
        "kept": len(kept),
        "selected": len(selected),
        "marked": int((fate.reason == Reason.BY_HAND).sum()),
        "rejected": {reason.in_words(): int((fate.reason == reason).sum()) for reason in list(Reason)[1:]},
        "purity_drawn": purity(pool, scores, np.arange(len(pool))),
        "purity_kept": purity(pool, scores, kept),
        "purity_selected": purity(pool, scores, selected),
        "drawn_per_class": per_class(np.arange(len(pool))),
        "kept_per_class": per_class(kept),
        "selected_per_class": per_class(selected),
        "purity_kept_per_class": shares(kept),
        "purity_selected_per_class": shares(selected),
        "ceiling": fate.entropy_ceiling if np.isfinite(fate.entropy_ceiling) else None,
        "keep": share_kept(fate),
        "budget": fate.settings.coreset_fraction,
        "lost_classes": [view.classes[label] for label in view.lost_classes(fate)],
        "largest_weight": float(fate.weight.max()),
        "gradient_bound": fate.figures.get("gradient_bound"),
        "gradient_error": fate.figures.get("gradient_error"),
    }


def share_kept(fate: Fate) -> float | None:
    """The share of each class that was kept; None where one ceiling, or none, held for all classes."""
    return fate.settings.keep_fraction if fate.settings.entropy_ceiling is None else None


def states_of(chosen: Chosen) -> bytes:
    """What became of each sample: uint8 (n,), a `Reason` or SELECTED; then, from a multiple of 4, float32 weights."""
    fate = chosen.fate
    states = np.where(fate.weight > 0, SELECTED, fate.reason).astype(np.uint8)
    filling = bytes(-len(states) % 4)
    return states.tobytes() + filling + fate.weight.astype("<f4").tobytes()
