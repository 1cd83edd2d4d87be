"""Examples made ready for the page, by what they are: pictures, sounds, rows of a table, sentences, bars, plain text.

Nothing here is HTML: the template writes it, and escapes what it writes.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from synthsieve.data.schema import ColumnType, TableSchema
from synthsieve.export.media import png_bytes, wav_bytes
from synthsieve.review.pixels import can_be_seen, pixels_of
from synthsieve.review.pool_view import PoolView
from synthsieve.waveforms import Waveforms

LONGEST_TEXT = 400  # characters of a sentence or of a fallback
LONGEST_CELL = 60
MOST_CELLS = 24  # columns of a table
MOST_NUMBERS = 12  # longer vectors are shown as bars
MOST_BARS = 256
SHOWN_SIDE = 88  # of a picture on the page, in CSS pixels
SHOWN_SOUND = (150, 88)  # of a spectrogram: the width of a player


@dataclass(frozen=True)
class Detail:
    """How much of each example goes into the page: the first that fits is taken.

    Attributes:
        side: pixels of a picture's longer side, at most.
        seconds: of a sound, at most; 0 leaves sounds out. real_sounds: real examples can be heard, too.
        words: what the page says of it; nothing where nothing is left out.
    """

    side: int
    seconds: float
    real_sounds: bool
    words: str = ""


DETAILS = (
    Detail(192, 5.0, True),
    Detail(128, 2.0, False, "To keep this page small, sounds end after two seconds and real ones are pictures only."),
    Detail(64, 0.0, False, "To keep this page small, pictures are reduced and sounds cannot be heard here."),
)


@dataclass(frozen=True)
class Picture:
    """An image, or a sound as its spectrogram: `uri` and `sound` are data URIs; width and height in CSS pixels."""

    form: ClassVar[str] = "picture"
    uri: str
    width: int
    height: int
    pixelated: bool
    sound: str | None = None
    is_of_sound: bool = False


@dataclass(frozen=True)
class Sound:
    """A sound without a picture; None where it does not fit."""

    form: ClassVar[str] = "sound"
    sound: str | None


@dataclass(frozen=True)
class Words:
    """A sentence, or whatever can be said of an example in text."""

    form: ClassVar[str] = "words"
    text: str


@dataclass(frozen=True)
class Cells:
    """A row of a table: the first columns, and how many there are in all."""

    form: ClassVar[str] = "cells"
    names: tuple[str, ...]
    cells: tuple[str, ...]
    columns: int

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Each name with its cell."""
        return list(zip(self.names, self.cells, strict=True))


@dataclass(frozen=True)
class Bars:
    """A long vector as bars about zero, each in [-1, 1]."""

    form: ClassVar[str] = "bars"
    heights: tuple[float, ...]
    length: int


Shown = Picture | Sound | Words | Cells | Bars


def synthetic_views(view: PoolView, rows: np.ndarray, detail: Detail) -> list[Shown]:
    """Samples of a pool, in the order of `rows`."""
    x = view.decode(rows)
    if view.run.origin.features is not None:
        return [Words(f"an embedding of {x.shape[1]:,} numbers, near to the real row") for _ in rows]
    return _views(view, x, view.items(rows), detail, audible=True)


def real_views(view: PoolView, rows: np.ndarray, detail: Detail) -> list[Shown]:
    """Rows of `dataset.train`, in the order of `rows`."""
    return _views(view, view.dataset.train.x[rows], view.real_items(rows), detail, audible=detail.real_sounds)


def _views(view: PoolView, x: np.ndarray, items: Any, detail: Detail, *, audible: bool) -> list[Shown]:
    """By what the items are, as `export.samples.write_items` does."""
    import pyarrow as pa

    if isinstance(items, pa.Table):
        return _rows_of(items.drop_columns(_made_up(view)))
    if isinstance(items, Waveforms):
        spectrograms = pixels_of(view, x) if can_be_seen(view) else None
        return _sounds(items, spectrograms, detail, audible=audible)
    if isinstance(items, np.ndarray) and items.ndim == 4 and items.shape[1] in (1, 3):
        return [_picture(image, detail) for image in pixels_of(view, items)]
    if isinstance(items, np.ndarray) and items.ndim == 2 and items.dtype.kind in "fiu":
        return _vectors(items, view)
    return [Words(_cut(item if isinstance(item, str) else str(item), LONGEST_TEXT)) for item in items]


def _picture(image: np.ndarray, detail: Detail) -> Picture:
    """One image, uint8 (1 or 3, height, width); larger ones are reduced."""
    height, width = image.shape[1:]
    scale = SHOWN_SIDE / max(height, width)
    shown = max(8, round(width * scale)), max(8, round(height * scale))
    return Picture(_png(image, detail), *shown, scale > 1)


def _png(image: np.ndarray, detail: Detail) -> str:
    from PIL import Image

    height, width = image.shape[1:]
    longer = max(height, width)
    if longer > detail.side:
        size = (max(1, width * detail.side // longer), max(1, height * detail.side // longer))
        small = [np.asarray(Image.fromarray(channel).resize(size, Image.Resampling.BOX)) for channel in image]
        image = np.stack(small)
    return _data_uri("image/png", png_bytes(image))


def _sounds(items: Waveforms, spectrograms: np.ndarray | None, detail: Detail, *, audible: bool) -> list[Shown]:
    """A player each, under its spectrogram where there is one: uint8 (n, 3, mels, frames)."""
    longest = int(detail.seconds * items.rate)
    uris: list[str | None] = [
        _data_uri("audio/wav", wav_bytes(np.asarray(sound)[:longest], items.rate)) if audible and longest else None
        for sound in items.sounds
    ]
    if spectrograms is None:
        return [Sound(uri) for uri in uris]
    pictures = [_png(image, detail) for image in spectrograms]
    return [
        Picture(uri, *SHOWN_SOUND, True, sound, is_of_sound=True) for uri, sound in zip(pictures, uris, strict=True)
    ]


def _made_up(view: PoolView) -> list[str]:
    """Columns that only name rows: synthetic rows get new names, which say nothing."""
    schema = getattr(view.run.encoding, "schema", None)
    columns = schema.columns if isinstance(schema, TableSchema) else ()
    return [column.name for column in columns if column.type is ColumnType.ID]


def _rows_of(table: Any) -> list[Shown]:
    if not table.num_columns:
        return [Words("a row that has nothing but its name")] * table.num_rows
    names = tuple(_cut(str(name), LONGEST_CELL) for name in table.column_names[:MOST_CELLS])
    columns = [table.column(place).to_pylist() for place in range(len(names))]
    return [Cells(names, tuple(map(_cell, row)), table.num_columns) for row in zip(*columns, strict=True)]


def _vectors(x: np.ndarray, view: PoolView) -> list[Shown]:
    """Short vectors as cells, long ones as bars of their standardised values."""
    width, given = x.shape[1], view.dataset.feature_names
    if width <= MOST_NUMBERS:
        names = tuple(_cut(name, LONGEST_CELL) for name in given or (f"x{i + 1}" for i in range(width)))
        return [Cells(names, tuple(f"{value:.4g}" for value in row), width) for row in x]
    encode: Callable[[np.ndarray], np.ndarray] = view.run.encoding.encode
    heights = np.clip(encode(x)[:, :MOST_BARS] / 3, -1, 1)  # three deviations fill the height
    return [Bars(tuple(round(float(value), 3) for value in row), width) for row in heights]


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return "–" if value != value else f"{value:.6g}"
    return _cut(str(value), LONGEST_CELL)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _data_uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


NEAR = 0.25  # numbers nearer than this share of the larger one pass as alike


def differing(mine: Sequence[str], theirs: Sequence[str]) -> tuple[bool, ...]:
    """Which cells of two rows differ: other words, or numbers more than a quarter apart."""
    return tuple(_differ(a, b) for a, b in zip(mine, theirs, strict=True))


def _differ(a: str, b: str) -> bool:
    if a == b:
        return False
    try:
        first, second = float(a.replace(",", "")), float(b.replace(",", ""))
    except ValueError:
        return True
    return not abs(first - second) <= NEAR * max(abs(first), abs(second))
