"""Examples prepared for the page by their kind: pictures, sounds, rows of a table, sentences, bars, plain text.

The template writes and escapes the HTML.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from synthsieve.data.modalities.sound.format import Waveforms
from synthsieve.data.modalities.table.schema import ColumnType, TableSchema
from synthsieve.results.export.media import png_bytes, wav_bytes
from synthsieve.results.pool_view import PoolView
from synthsieve.results.readable import has_pixels, pixels_of
from synthsieve.results.report.wording import cut

MAX_TEXT_LENGTH = 400  # characters
MAX_CELL_LENGTH = 60
MAX_CELLS = 24  # columns of a table
MAX_NUMBERS = 12  # longer vectors are shown as bars
MAX_BARS = 256
PICTURE_SIDE = 88  # CSS pixels
SPECTROGRAM_SIZE = (150, 88)  # as wide as a player
NEAR = 0.25  # numbers closer than this share of the larger one count as equal


@dataclass(frozen=True)
class Detail:
    """How much of each example goes into the page; the first that fits is used.

    Attributes:
        side: maximum pixels of a picture's longer side.
        seconds: maximum length of a sound; 0 leaves sounds out. real_sounds: also of real examples.
        note: what is left out.
    """

    side: int
    seconds: float
    real_sounds: bool
    note: str = ""


DETAILS = (
    Detail(192, 5.0, True),
    Detail(128, 2.0, False, "To keep this page small, sounds end after two seconds and real examples have no sound."),
    Detail(64, 0.0, False, "To keep this page small, pictures are smaller and there are no sounds."),
)


@dataclass(frozen=True)
class Picture:
    """An image, or a sound with its spectrogram: `uri` and `sound` are data URIs; width and height in CSS pixels."""

    form: ClassVar[str] = "picture"
    uri: str
    width: int
    height: int
    pixelated: bool
    sound: str | None = None
    is_of_sound: bool = False


@dataclass(frozen=True)
class Sound:
    """A sound without a picture; None if it does not fit."""

    form: ClassVar[str] = "sound"
    sound: str | None


@dataclass(frozen=True)
class Text:
    """A sentence, or an example as plain text."""

    form: ClassVar[str] = "words"
    text: str


@dataclass(frozen=True)
class Cells:
    """The first cells of a row of a table, and the number of its columns."""

    form: ClassVar[str] = "cells"
    names: tuple[str, ...]
    cells: tuple[str, ...]
    columns: int

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return list(zip(self.names, self.cells, strict=True))


@dataclass(frozen=True)
class Bars:
    """A long vector as bars about zero, each in [-1, 1]."""

    form: ClassVar[str] = "bars"
    heights: tuple[float, ...]
    length: int


SampleView = Picture | Sound | Text | Cells | Bars


def synthetic_views(view: PoolView, rows: np.ndarray, detail: Detail) -> list[SampleView]:
    """Samples of a pool, in the order of `rows`."""
    x = view.decode(rows)
    if view.run.origin.features is not None:
        return [Text(f"an embedding of {x.shape[1]:,} numbers, close to the real row")] * len(rows)
    return _views(view, x, view.items(rows), detail, audible=True)


def real_views(view: PoolView, rows: np.ndarray, detail: Detail) -> list[SampleView]:
    """Rows of `dataset.train`, in the order of `rows`."""
    return _views(view, view.dataset.train.x[rows], view.real_items(rows), detail, audible=detail.real_sounds)


def _views(view: PoolView, x: np.ndarray, items: Any, detail: Detail, *, audible: bool) -> list[SampleView]:
    """By the type of the items, as in `export.samples.write_items`."""
    import pyarrow as pa

    if isinstance(items, pa.Table):
        return _table_rows(items, view)
    if isinstance(items, Waveforms):
        spectrograms = pixels_of(view.dataset, x) if has_pixels(view.dataset) else None
        return _sounds(items, spectrograms, detail, audible=audible)
    if isinstance(items, np.ndarray) and items.ndim == 4 and items.shape[1] in (1, 3):
        return [_picture(image, detail) for image in pixels_of(view.dataset, items)]
    if isinstance(items, np.ndarray) and items.ndim == 2 and items.dtype.kind in "fiu":
        return _vectors(items, view)
    return [Text(cut(str(item), MAX_TEXT_LENGTH)) for item in items]


def _picture(image: np.ndarray, detail: Detail) -> Picture:
    """One image, uint8 (1 or 3, height, width)."""
    height, width = image.shape[1:]
    scale = PICTURE_SIDE / max(height, width)
    return Picture(_png(image, detail), max(8, round(width * scale)), max(8, round(height * scale)), scale > 1)


def _png(image: np.ndarray, detail: Detail) -> str:
    from PIL import Image

    height, width = image.shape[1:]
    longer = max(height, width)
    if longer > detail.side:
        size = (max(1, width * detail.side // longer), max(1, height * detail.side // longer))
        image = np.stack([np.asarray(Image.fromarray(each).resize(size, Image.Resampling.BOX)) for each in image])
    return _data_uri("image/png", png_bytes(image))


def _sounds(items: Waveforms, spectrograms: np.ndarray | None, detail: Detail, *, audible: bool) -> list[SampleView]:
    """A player each, under its spectrogram if there is one: uint8 (n, 3, mels, frames)."""
    samples = int(detail.seconds * items.rate) if audible else 0
    uris = [
        _data_uri("audio/wav", wav_bytes(np.asarray(sound)[:samples], items.rate)) if samples else None
        for sound in items.sounds
    ]
    if spectrograms is None:
        return [Sound(uri) for uri in uris]
    return [
        Picture(_png(image, detail), *SPECTROGRAM_SIZE, True, uri, is_of_sound=True)
        for image, uri in zip(spectrograms, uris, strict=True)
    ]


def _table_rows(table: Any, view: PoolView) -> list[SampleView]:
    """Rows without their ids, since those of synthetic rows are made up."""
    schema = getattr(view.run.encoding, "schema", None)
    columns = schema.columns if isinstance(schema, TableSchema) else ()
    table = table.drop_columns([column.name for column in columns if column.type is ColumnType.ID])
    if not table.num_columns:
        return [Text("a row without columns other than its id")] * table.num_rows
    names = tuple(cut(str(name), MAX_CELL_LENGTH) for name in table.column_names[:MAX_CELLS])
    values = [table.column(place).to_pylist() for place in range(len(names))]
    return [Cells(names, tuple(map(_cell, row)), table.num_columns) for row in zip(*values, strict=True)]


def _vectors(x: np.ndarray, view: PoolView) -> list[SampleView]:
    """Short vectors as cells, long ones as bars of standardised values."""
    width, given = x.shape[1], view.dataset.feature_names
    if width <= MAX_NUMBERS:
        names = tuple(cut(name, MAX_CELL_LENGTH) for name in given or (f"x{i + 1}" for i in range(width)))
        return [Cells(names, tuple(f"{value:.4g}" for value in row), width) for row in x]
    encode: Callable[[np.ndarray], np.ndarray] = view.run.encoding.encode
    heights = np.clip(encode(x)[:, :MAX_BARS] / 3, -1, 1)  # three standard deviations fill the height
    return [Bars(tuple(round(float(value), 3) for value in row), width) for row in heights]


def _cell(value: Any) -> str:
    if value is None or value != value:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else cut(str(value), MAX_CELL_LENGTH)


def _data_uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def differing(first: Sequence[str], second: Sequence[str]) -> tuple[bool, ...]:
    """Which cells of two rows differ: different text, or numbers more than a quarter apart."""
    return tuple(_differ(a, b) for a, b in zip(first, second, strict=True))


def _differ(a: str, b: str) -> bool:
    try:
        first, second = float(a.replace(",", "")), float(b.replace(",", ""))
    except ValueError:
        return a != b
    return a != b and not abs(first - second) <= NEAR * max(abs(first), abs(second))
