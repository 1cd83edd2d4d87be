"""What the page shows as numbers: a selection as a whole, the outcome of every sample, one sample in detail."""

from __future__ import annotations

from typing import Any

import numpy as np

from synthsieve.data.dataset import UNLABELED
from synthsieve.evaluation.predict import NO_ORACLE
from synthsieve.results.gallery.selection import GallerySelection
from synthsieve.results.pool_view import PoolView
from synthsieve.selection.entropy import Reason
from synthsieve.training.pool import Outcomes

NUM_NEIGHBORS, NUM_REAL_NEIGHBORS = 8, 4


def selection_summary(view: PoolView, selection: GallerySelection) -> dict[str, Any]:
    """Yield, purity and counts, overall and per class. A purity is None without an oracle or without samples."""
    outcomes, pool = selection.outcomes, view.pool
    every, kept, selected = np.arange(len(pool)), np.flatnonzero(outcomes.kept), outcomes.selected
    correct = pool.oracle_class == pool.y
    has_oracle = pool.purity(every) is not None

    def per_class(rows: np.ndarray) -> list[int]:
        return np.bincount(pool.y[rows], minlength=len(view.classes)).tolist()

    def purity_per_class(rows: np.ndarray) -> list[float | None]:
        pairs = zip(per_class(rows[correct[rows]]), per_class(rows), strict=True)
        return [part / whole if has_oracle and whole else None for part, whole in pairs]

    return {
        "preview": selection.preview,
        "done": round(selection.done, 3),
        "note": selection.note,
        "drawn": len(pool),
        "kept": len(kept),
        "selected": len(selected),
        "rejected_by_hand": int((outcomes.reason == Reason.BY_HAND).sum()),
        "purity_drawn": pool.purity(every),
        "purity_kept": pool.purity(kept),
        "purity_selected": pool.purity(selected),
        "drawn_per_class": per_class(every),
        "kept_per_class": per_class(kept),
        "selected_per_class": per_class(selected),
        "purity_kept_per_class": purity_per_class(kept),
        "entropy_ceiling": outcomes.entropy_ceiling if np.isfinite(outcomes.entropy_ceiling) else None,
        "keep_fraction": kept_fraction(outcomes),
        "budget": outcomes.settings.coreset_fraction,
        "lost_classes": [view.classes[label] for label in view.lost_classes(outcomes)],
        "largest_weight": float(outcomes.weight.max()),
        "gradient_bound": outcomes.figures.get("gradient_bound"),
        "gradient_error": outcomes.figures.get("gradient_error"),
    }


def kept_fraction(outcomes: Outcomes) -> float | None:
    """The fraction of each class that the filter keeps; None if it has one ceiling for all classes, or none."""
    return outcomes.settings.keep_fraction if outcomes.settings.entropy_ceiling is None else None


def outcome_bytes(outcomes: Outcomes) -> bytes:
    """uint8 (n,), a `Reason` or SELECTED for each sample; padding to a multiple of 4; weights as float32 (n,)."""
    codes = outcomes.codes.astype(np.uint8)
    return codes.tobytes() + bytes(-len(codes) % 4) + outcomes.weight.astype("<f4").tobytes()


def sample_summary(view: PoolView, selection: GallerySelection, row: int) -> dict[str, Any]:
    """Everything known about one sample; its seed is text because JavaScript's integers end at 53 bits."""
    outcomes, pool = selection.outcomes, view.pool
    oracle, rank = int(pool.oracle_class[row]), int(outcomes.rank[row])
    return {
        "row": row,
        "label": view.classes[int(pool.y[row])],
        "classifier": view.classes[int(pool.predicted[row])],
        "oracle": None if oracle == NO_ORACLE else view.classes[oracle],
        "entropy": float(pool.entropy[row]),
        "weight": float(outcomes.weight[row]),
        "rank": None if rank < 0 else rank + 1,
        "log_density": _finite(pool.log_density[row]),
        "distance": _finite(view.nearest_real(row, 1).distances[0]),
        "outcome": outcomes.describe(row),
        "preview": selection.preview,
        "seed": str(int(pool.chain_seed[row])),
    }


def neighbors(view: PoolView, row: int) -> dict[str, Any]:
    """The nearest samples of the pool and the nearest training examples, by the encoder."""
    pool, real = view.neighbours(row, NUM_NEIGHBORS), view.nearest_real(row, NUM_REAL_NEIGHBORS)
    labeled = set(view.run.split.labeled.tolist())

    def real_label(other: int) -> str:
        """The label that training knew."""
        y = int(view.dataset.train.y[other])
        return "unlabelled" if other not in labeled or y == UNLABELED else view.classes[y]

    return {
        "pool": [
            {"row": other, "distance": distance, "label": view.classes[int(view.pool.y[other])]}
            for other, distance in zip(pool.indices.tolist(), pool.distances.tolist(), strict=True)
        ],
        "real": [
            {"row": other, "distance": distance, "label": real_label(other)}
            for other, distance in zip(real.indices.tolist(), real.distances.tolist(), strict=True)
        ],
    }


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
