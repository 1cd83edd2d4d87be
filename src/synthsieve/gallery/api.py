"""The questions a page may ask, one function each: (room, what was asked) -> an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from synthsieve.errors import InputError
from synthsieve.export.formats import Format
from synthsieve.gallery.arguments import Asked, rows_in, text_in
from synthsieve.gallery.choice import Chosen, Wish
from synthsieve.gallery.figures import figures_of, share_kept, states_of
from synthsieve.gallery.listing import Filter, Order, in_order
from synthsieve.gallery.looks import SHEET_COLUMNS, Form
from synthsieve.gallery.room import Room
from synthsieve.gallery.sample import facts_of, near
from synthsieve.review.scores import NOBODY

PNG, WAV, BYTES = "image/png", "audio/wav", "application/octet-stream"
Answer = dict[str, Any] | tuple[bytes, str]  # JSON, or content and its type


def about(room: Room, asked: Asked) -> Answer:
    """What never changes: the run, the arm, the classes, how samples look, what training sieved by."""
    view, looks = room.view, room.looks
    trained = view.as_trained()
    height, width = looks.tile
    positive = view.pool.entropy[view.pool.entropy > 0]
    return {
        "title": room.title,
        "arm": view.name,
        "count": len(view),
        "classes": list(view.classes),
        "form": looks.form,
        "tile": {"height": height, "width": width, "columns": SHEET_COLUMNS},
        "judge": bool((view.scores.judged != NOBODY).any()),
        "replayable": "latents_of" not in view.pool.origin and view.run.origin.features is None,
        "lowest_entropy": float(positive.min()) if len(positive) else 1e-12,
        "highest_entropy": float(max(view.pool.entropy.max(), 1e-9)),
        "trained": {
            "ceiling": trained.entropy_ceiling if np.isfinite(trained.entropy_ceiling) else None,
            "keep_fraction": share_kept(trained),
            "budget": view.settings.coreset_fraction,
            "coreset": view.settings.coreset,
        },
        "formats": list(room.formats),
    }


def column(room: Room, asked: Asked) -> Answer:
    """A number for each sample, as little-endian bytes: y and judge int32, entropy float64."""
    view = room.view
    columns: dict[str, tuple[np.ndarray, str]] = {
        "y": (view.pool.y, "<i4"),
        "judge": (view.scores.judged, "<i4"),
        "entropy": (view.pool.entropy, "<f8"),
    }
    name = asked.given.get("name", "")
    if name not in columns:
        raise InputError(f"expected name as one of {', '.join(columns)}, got {name[:40]!r}")
    values, kind = columns[name]
    return values.astype(kind).tobytes(), BYTES


def choice(room: Room, asked: Asked) -> Answer:
    """Yield, purity and number of picks under a ceiling and a budget; `preview` until the true picks are known."""
    chosen = room.choices.of(_wish(asked), asked.tab(), patience=room.choices.patience)
    return {**figures_of(room.view, chosen), "can_undo": room.can_undo}


def states(room: Room, asked: Asked) -> Answer:
    """What became of each sample, and its weight: see `figures.states_of`."""
    return states_of(_chosen(room, asked)), BYTES


def order(room: Room, asked: Asked) -> Answer:
    """Rows that pass a filter, sorted: little-endian uint32."""
    chosen, view = _chosen(room, asked), room.view
    rows = Filter.of(asked, len(view.classes)).rows(view, chosen.fate)
    by, descending = asked.one_of("sort", Order), asked.flag("descending")
    return in_order(rows, by, view, chosen.fate, descending=descending).astype("<u4").tobytes(), BYTES


def sheet(room: Room, asked: Asked) -> Answer:
    """Samples side by side in one PNG."""
    return room.looks.sheet(asked.rows("rows", len(room.view))), PNG


def lines(room: Room, asked: Asked) -> Answer:
    """Samples to be read."""
    return room.looks.lines(asked.rows("rows", len(room.view))).as_dict()


def picture(room: Room, asked: Asked) -> Answer:
    """One sample in all its pixels."""
    return room.looks.picture(asked.row("row", len(room.view))), PNG


def sound(room: Room, asked: Asked) -> Answer:
    """One sample to be played."""
    return room.looks.sound(asked.row("row", len(room.view))), WAV


def sample(room: Room, asked: Asked) -> Answer:
    """All that is known of one sample."""
    row = asked.row("row", len(room.view))
    return facts_of(room.view, _chosen(room, asked), row)


def neighbours(room: Room, asked: Asked) -> Answer:
    """Who is near to one sample, in the pool and among the training examples."""
    return near(room.drawn, asked.row("row", len(room.view)))


def chain(room: Room, asked: Asked) -> Answer:
    """At which steps one sample's chain is shown, and what it reads there, where samples are read."""
    row = asked.row("row", len(room.view))
    told: dict[str, Any] = {"steps": room.looks.chain_steps(row)}
    return told if room.looks.form is not Form.LINES else told | room.looks.chain_lines(row).as_dict()


def chain_sheet(room: Room, asked: Asked) -> Answer:
    """The chain's pictures side by side."""
    return room.looks.chain_sheet(asked.row("row", len(room.view))), PNG


def real_sheet(room: Room, asked: Asked) -> Answer:
    """Training examples side by side."""
    return room.looks.real_sheet(_real_rows(room, asked)), PNG


def real_lines(room: Room, asked: Asked) -> Answer:
    """Training examples to be read."""
    return room.looks.real_lines(_real_rows(room, asked)).as_dict()


def real_sound(room: Room, asked: Asked) -> Answer:
    """A training example to be played."""
    return room.looks.real_sound(int(_real_rows(room, asked)[0])), WAV


def exported(room: Room, asked: Asked) -> Answer:
    """How the last export stands."""
    return room.exports.told.as_dict()


def mark(room: Room, body: Mapping[str, Any]) -> Answer:
    """Mark samples as bad, or no longer: `rows`, or all that pass a `filter` under a `choice`."""
    bad = body.get("bad")
    if not isinstance(bad, bool):
        raise InputError("expected bad as true or false")
    if "filter" in body:
        view, chosen = room.view, _chosen(room, Asked(text_in(body, "choice")))
        rows = Filter.of(Asked(text_in(body, "filter")), len(view.classes)).rows(view, chosen.fate)
    else:
        rows = rows_in(body, len(room.view))
    return {"changed": room.mark(rows, bad=bad), "can_undo": room.can_undo}


def undo(room: Room, body: Mapping[str, Any]) -> Answer:
    """Take the last change of marks back."""
    return {"changed": room.undo(), "can_undo": room.can_undo}


def export(room: Room, body: Mapping[str, Any]) -> Answer:
    """Begin to write the choice of now in the `formats` given; see `export_view` for `allow_empty_classes`."""
    given = body.get("formats")
    if not isinstance(given, list) or not given or any(one not in room.formats for one in given):
        raise InputError(f"expected formats among {', '.join(room.formats)}, at least one")
    allowed = body.get("allow_empty_classes", False)
    if not isinstance(allowed, bool):
        raise InputError("expected allow_empty_classes as true or false")
    wish = _wish(Asked(text_in(body, "choice")))
    return room.export(wish, [Format(one) for one in given], allow_empty_classes=allowed).as_dict()


QUESTIONS: dict[str, Callable[[Room, Asked], Answer]] = {
    "about": about,
    "column": column,
    "choice": choice,
    "states": states,
    "order": order,
    "sheet": sheet,
    "lines": lines,
    "picture": picture,
    "sound": sound,
    "sample": sample,
    "neighbours": neighbours,
    "chain": chain,
    "chain-sheet": chain_sheet,
    "real-sheet": real_sheet,
    "real-lines": real_lines,
    "real-sound": real_sound,
    "export": exported,
}
CHANGES: dict[str, Callable[[Room, Mapping[str, Any]], Answer]] = {"mark": mark, "undo": undo, "export": export}


def _wish(asked: Asked) -> Wish:
    return Wish(asked.number("ceiling"), asked.number("keep"), asked.number("budget"))


def _chosen(room: Room, asked: Asked) -> Chosen:
    return room.choices.of(_wish(asked), asked.tab())


def _real_rows(room: Room, asked: Asked) -> np.ndarray:
    """Rows of `dataset.train` that were trained on: those held out are not shown beside what was learned."""
    rows = asked.rows("rows", len(room.view.dataset.train))
    if not np.isin(rows, room.view.scores.real_rows).all():
        raise InputError("expected rows of training examples, but some are held out")
    return rows
