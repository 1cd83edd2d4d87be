"""The requests of the page, one function each: (session, arguments) -> JSON or bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from synthsieve.evaluation.predict import NO_ORACLE
from synthsieve.results.export.formats import Format
from synthsieve.results.gallery.filters import Filter, Order, in_order
from synthsieve.results.gallery.query import QueryParams, bool_in, invalid, params_in, rows_in
from synthsieve.results.gallery.renderer import SHEET_COLUMNS
from synthsieve.results.gallery.selection import GallerySelection, SelectionRequest
from synthsieve.results.gallery.session import GallerySession
from synthsieve.results.gallery.summaries import (
    kept_fraction,
    neighbors,
    outcome_bytes,
    sample_summary,
    selection_summary,
)

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
        "has_oracle": bool((view.pool.oracle_class != NO_ORACLE).any()),
        "has_chains": "latents_of" not in view.pool.origin and view.run.origin.features is None,
        "lowest_entropy": float(positive.min()) if len(positive) else 1e-12,
        "highest_entropy": float(max(view.pool.entropy.max(), 1e-9)),
        "trained": {
            "entropy_ceiling": trained.entropy_ceiling if np.isfinite(trained.entropy_ceiling) else None,
            "keep_fraction": kept_fraction(trained),
            "budget": view.settings.coreset_fraction,
            "coreset": view.settings.coreset,
        },
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
    """Yield, purity and counts of a selection; a preview until the exact one is ready."""
    found = _selection(session, query, timeout=session.selections.timeout)
    return {**selection_summary(session.view, found), "undo_count": session.undo_count}


def outcomes(session: GallerySession, query: QueryParams) -> Answer:
    """The outcome and the weight of each sample: see `summaries.outcome_bytes`."""
    return outcome_bytes(_selection(session, query).outcomes), BYTES


def order(session: GallerySession, query: QueryParams) -> Answer:
    """Rows that pass a filter, sorted: little-endian uint32."""
    found, view = _selection(session, query).outcomes, session.view
    rows = Filter.from_query(query, len(view.classes)).rows(view, found)
    by, descending = query.one_of("sort", Order), bool(query.flag("descending"))
    return in_order(rows, by, view, found, descending=descending).astype("<u4").tobytes(), BYTES


def sample(session: GallerySession, query: QueryParams) -> Answer:
    """Everything known about one sample."""
    return sample_summary(session.view, _selection(session, query), _row(session, query))


def export_status(session: GallerySession, query: QueryParams) -> Answer:
    """The status of the last export."""
    return asdict(session.exports.status)


def reject(session: GallerySession, body: Mapping[str, Any]) -> Answer:
    """Reject (or restore) `rows`, or all that pass a `filter` under a `selection`."""
    rejected = bool_in(body, "rejected")
    if "filter" in body:
        view, found = session.view, _selection(session, params_in(body, "selection"))
        rows = Filter.from_query(params_in(body, "filter"), len(view.classes)).rows(view, found.outcomes)
    else:
        rows = rows_in(body, len(session.view))
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
    "neighbors": lambda session, query: neighbors(session.initial_view, _row(session, query)),
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
    return SelectionRequest(
        query.number("entropy_ceiling"),
        query.number("keep_fraction"),
        query.number("budget"),
        query.flag("require_label"),
    )


def _selection(session: GallerySession, query: QueryParams, timeout: float = 0.0) -> GallerySelection:
    return session.selections.get(_request(query), query.tab(), timeout=timeout)


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
