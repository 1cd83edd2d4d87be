"""The requests of the page, one function each: (session, arguments) -> JSON or bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from synthsieve.data.dataset import UNLABELED
from synthsieve.evaluation.predict import NO_ORACLE
from synthsieve.results.export.formats import Format
from synthsieve.results.gallery.query import (
    Order,
    QueryParams,
    bool_in,
    filtered_rows,
    in_order,
    invalid,
    params_in,
    rows_in,
)
from synthsieve.results.gallery.renderer import SHEET_COLUMNS
from synthsieve.results.gallery.selection import GallerySelection, SelectionRequest
from synthsieve.results.gallery.session import GallerySession
from synthsieve.selection.entropy import Reason
from synthsieve.training.pool import Outcomes

NUM_NEIGHBORS, NUM_REAL_NEIGHBORS = 8, 4
PNG, WAV, BYTES = "image/png", "audio/wav", "application/octet-stream"
Answer = dict[str, Any] | tuple[bytes, str]  # JSON, or content and its type
Get = Callable[[GallerySession, QueryParams], Answer]
Post = Callable[[GallerySession, Mapping[str, Any]], Answer]


def info(session: GallerySession, query: QueryParams) -> Answer:
    """What never changes: the run, the classes, how samples are shown, the options that training selected with."""
    view, renderer = session.view, session.renderer
    trained = view.as_trained()
    height, width = renderer.tile
    positive = view.pool.entropy[view.pool.entropy > 0]
    return {
        "title": session.title,
        "variant": view.name,
        "count": len(view),
        "classes": list(view.classes),
        "form": renderer.form,
        "tile": {"height": height, "width": width, "columns": SHEET_COLUMNS},
        "has_oracle": view.pool.purity(np.arange(len(view))) is not None,
        "has_chains": "latents_of" not in view.pool.origin and view.run.origin.features is None,
        "lowest_entropy": float(positive.min()) if len(positive) else 1e-12,
        "highest_entropy": float(max(view.pool.entropy.max(), 1e-9)),
        "trained": {**_options(trained), "coreset": view.settings.coreset},
        "formats": list(session.formats),
    }


def column(session: GallerySession, query: QueryParams) -> Answer:
    """A number for each sample, as little-endian bytes: y int32, entropy float64."""
    columns = {"y": (session.view.pool.y, "<i4"), "entropy": (session.view.pool.entropy, "<f8")}
    name = query.values.get("name", "")
    if name not in columns:
        raise invalid(f"expected name to be one of {', '.join(columns)}, got {name[:40]!r}")
    values, dtype = columns[name]
    return values.astype(dtype).tobytes(), BYTES


def selection(session: GallerySession, query: QueryParams) -> Answer:
    """Yield, purity and counts of a selection, overall and per class; a preview until the exact one is ready.

    A purity is None without an oracle or without samples.
    """
    found = _selection(session, query, timeout=session.selections.timeout)
    view, outcomes = session.view, found.outcomes
    pool, kept = view.pool, np.flatnonzero(outcomes.kept)
    counts = view.class_counts(outcomes)
    return {
        "preview": found.preview,
        "done": round(found.done, 3),
        "note": found.note,
        **{name: int(number.sum()) for name, number in counts.items()},
        **{f"{name}_per_class": number.tolist() for name, number in counts.items()},
        "rejected_by_hand": int((outcomes.reason == Reason.BY_HAND).sum()),
        "purity_drawn": pool.purity(np.arange(len(pool))),
        "purity_kept": pool.purity(kept),
        "purity_selected": pool.purity(outcomes.selected),
        "purity_kept_per_class": [pool.purity(kept[pool.y[kept] == c]) for c in range(len(view.classes))],
        **_options(outcomes),
        "lost_classes": [view.classes[label] for label in view.lost_classes(outcomes)],
        "largest_weight": float(outcomes.weight.max()),
        "gradient_bound": outcomes.figures.get("gradient_bound"),
        "gradient_error": outcomes.figures.get("gradient_error"),
        "undo_count": session.undo_count,
    }


def outcomes(session: GallerySession, query: QueryParams) -> Answer:
    """uint8 (n,), a `Reason` for each sample; padding to a multiple of 4; weights as float32 (n,)."""
    found = _selection(session, query).outcomes
    codes = found.codes.astype(np.uint8)
    return codes.tobytes() + bytes(-len(codes) % 4) + found.weight.astype("<f4").tobytes(), BYTES


def order(session: GallerySession, query: QueryParams) -> Answer:
    """Rows that pass a filter, sorted: little-endian uint32."""
    found, view = _selection(session, query).outcomes, session.view
    rows = filtered_rows(query, view, found)
    by, descending = query.one_of("sort", Order), bool(query.flag("descending"))
    return in_order(rows, by, view, found, descending=descending).astype("<u4").tobytes(), BYTES


def sample(session: GallerySession, query: QueryParams) -> Answer:
    """Everything known about one sample; its seed is text because JavaScript's integers end at 53 bits."""
    view, found, row = session.view, _selection(session, query), _row(session, query)
    outcomes, pool = found.outcomes, view.pool
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
        "preview": found.preview,
        "seed": str(int(pool.chain_seed[row])),
    }


def neighbors(session: GallerySession, query: QueryParams) -> Answer:
    """The nearest samples of the pool and the nearest training examples, by the encoder."""
    view, row = session.initial_view, _row(session, query)  # what is computed from it once stays cached there
    labeled = set(view.run.split.labeled.tolist())

    def real_label(other: int) -> str:
        """The label that training knew."""
        y = int(view.dataset.train.y[other])
        return "unlabelled" if other not in labeled or y == UNLABELED else view.classes[y]

    found = {
        "pool": (view.neighbours(row, NUM_NEIGHBORS), lambda other: view.classes[int(view.pool.y[other])]),
        "real": (view.nearest_real(row, NUM_REAL_NEIGHBORS), real_label),
    }
    return {
        name: [
            {"row": other, "distance": distance, "label": label(other)}
            for other, distance in zip(near.indices.tolist(), near.distances.tolist(), strict=True)
        ]
        for name, (near, label) in found.items()
    }


def export_status(session: GallerySession, query: QueryParams) -> Answer:
    """The status of the last export."""
    return asdict(session.exports.status)


def reject(session: GallerySession, body: Mapping[str, Any]) -> Answer:
    """Reject (or restore) `rows`, or all that pass a `filter` under a `selection`."""
    rejected, view = bool_in(body, "rejected"), session.view
    if "filter" in body:
        found = _selection(session, params_in(body, "selection")).outcomes
        rows = filtered_rows(params_in(body, "filter"), view, found)
    else:
        rows = rows_in(body, len(view))
    return {"changed": session.reject(rows, rejected=rejected), "undo_count": session.undo_count}


def undo(session: GallerySession, body: Mapping[str, Any]) -> Answer:
    """Undo the last rejection or restoration."""
    return {"changed": session.undo(), "undo_count": session.undo_count}


def export(session: GallerySession, body: Mapping[str, Any]) -> Answer:
    """Start to write a `selection` in the given `formats`; see `export_pool` for `allow_empty_classes`."""
    formats = body.get("formats")
    if not isinstance(formats, list) or not formats or any(one not in session.formats for one in formats):
        raise invalid(f"expected at least one of the formats {', '.join(session.formats)}")
    allowed = bool_in(body, "allow_empty_classes", False)
    request = _request(params_in(body, "selection"))
    session.export(request, [Format(one) for one in formats], allow_empty_classes=allowed)
    return asdict(session.exports.status)


GET: dict[str, Get] = {
    "info": info,
    "column": column,
    "selection": selection,
    "outcomes": outcomes,
    "order": order,
    "sample": sample,
    "neighbors": neighbors,
    "sheet": lambda session, query: (session.renderer.sheet(_rows(session, query)), PNG),
    "text": lambda session, query: session.renderer.text(_rows(session, query)),
    "image": lambda session, query: (session.renderer.image(_row(session, query)), PNG),
    "sound": lambda session, query: (session.renderer.sound(_row(session, query)), WAV),
    "chain": lambda session, query: session.renderer.chain(_row(session, query)),
    "chain-sheet": lambda session, query: (session.renderer.chain_sheet(_row(session, query)), PNG),
    "real-sheet": lambda session, query: (session.renderer.sheet(_real_rows(session, query), real=True), PNG),
    "real-text": lambda session, query: session.renderer.text(_real_rows(session, query), real=True),
    "real-sound": lambda session, query: (session.renderer.sound(int(_real_rows(session, query)[0]), real=True), WAV),
    "export": export_status,
}
POST: dict[str, Post] = {"reject": reject, "undo": undo, "export": export}


def _request(query: QueryParams) -> SelectionRequest:
    ceiling, fraction, budget = (query.number(name) for name in ("entropy_ceiling", "keep_fraction", "budget"))
    return SelectionRequest(ceiling, fraction, budget, query.flag("require_label"))


def _selection(session: GallerySession, query: QueryParams, timeout: float = 0.0) -> GallerySelection:
    return session.selections.get(_request(query), query.tab(), timeout=timeout)


def _options(outcomes: Outcomes) -> dict[str, float | None]:
    """The filter and the budget; keep_fraction is None if there is one ceiling for all classes, or none."""
    settings, ceiling = outcomes.settings, _finite(outcomes.entropy_ceiling)
    fraction = settings.keep_fraction if settings.entropy_ceiling is None else None
    return {"entropy_ceiling": ceiling, "keep_fraction": fraction, "budget": settings.coreset_fraction}


def _row(session: GallerySession, query: QueryParams) -> int:
    return query.row("row", len(session.view))


def _rows(session: GallerySession, query: QueryParams) -> np.ndarray:
    return query.rows("rows", len(session.view))


def _real_rows(session: GallerySession, query: QueryParams) -> np.ndarray:
    """Rows of `dataset.train` that training used; held-out ones are never shown."""
    rows = query.rows("rows", len(session.view.dataset.train))
    if not np.isin(rows, session.view.real_rows).all():
        raise invalid("expected rows of training examples, but some of these are held out")
    return rows


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
