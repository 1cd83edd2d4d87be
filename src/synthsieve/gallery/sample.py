"""One sample, told whole: what was asked, what the model and the judge say, where it stands, who is near."""

from __future__ import annotations

from typing import Any

import numpy as np

from synthsieve.data.dataset import UNLABELED
from synthsieve.gallery.choice import Chosen
from synthsieve.review.pool_view import PoolView
from synthsieve.review.scores import NOBODY

NEIGHBOURS, REAL = 8, 4


def facts_of(view: PoolView, chosen: Chosen, row: int) -> dict[str, Any]:
    """Plain values for JSON; the seed is text, since JavaScript's numbers end at 53 bits."""
    fate, scores, pool = chosen.fate, view.scores, view.pool
    judged, rank = int(scores.judged[row]), int(fate.rank[row])
    return {
        "row": row,
        "asked": view.classes[int(pool.y[row])],
        "classifier": view.classes[int(scores.predicted[row])],
        "judge": None if judged == NOBODY else view.classes[judged],
        "entropy": float(pool.entropy[row]),
        "weight": float(fate.weight[row]),
        "rank": None if rank < 0 else rank + 1,
        "log_density": _finite(scores.log_density[row]),
        "distance": _finite(scores.nearest_distance[row]),
        "reason": fate.in_words(row),
        "preview": chosen.preview,
        "seed": str(int(pool.chain_seed[row])),
        "replayable": "latents_of" not in pool.origin,
    }


def near(view: PoolView, row: int) -> dict[str, Any]:
    """The nearest samples of the pool and the nearest training examples, by the encoder."""
    pool, real = view.neighbours(row, NEIGHBOURS), view.nearest_real(row, REAL)
    labeled = set(view.run.split.labeled.tolist())
    return {
        "pool": [
            {"row": int(other), "distance": float(apart), "asked": view.classes[int(view.pool.y[other])]}
            for other, apart in zip(pool.rows, pool.distances, strict=True)
        ],
        "real": [
            {"row": int(other), "distance": float(apart), "label": _label(view, int(other), labeled)}
            for other, apart in zip(real.rows, real.distances, strict=True)
        ],
    }


def _label(view: PoolView, row: int, labeled: set[int]) -> str:
    """What training knew of a real example."""
    y = int(view.dataset.train.y[row])
    if row not in labeled or y == UNLABELED:
        return "unlabelled"
    return view.classes[y]


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
