"""Samples as the page shows them: many in one PNG, one in full, a sound to play, text to read, a chain step by step.

Samples are decoded on request; a pool is never decoded whole.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from enum import StrEnum
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np

from synthsieve.data.dataset import Kind
from synthsieve.data.modalities.sound.format import Waveforms
from synthsieve.results.export.from_pool import readable_samples
from synthsieve.results.export.media import png_bytes, resized, wav_bytes
from synthsieve.results.gallery.query import invalid
from synthsieve.results.pool_view import PoolView
from synthsieve.results.readable import cut, has_pixels, pixels_of, text_cells

SHEET_COLUMNS = 25
FAST_COMPRESSION = 1  # zlib level: sheets never leave this machine
MAX_TILE = 96  # pixels per side; larger images are reduced in a sheet
SAMPLE_CACHE, CHAIN_CACHE = 64 * 2**20, 16 * 2**20  # bytes
MAX_TEXT_LENGTH, MAX_CELL_LENGTH, MAX_COLUMNS = 2000, 80, 64

Value = TypeVar("Value")


class DisplayForm(StrEnum):
    """How samples are shown."""

    IMAGE = "image"
    SOUND = "sound"
    TEXT = "text"


class ByteCache(Generic[Value]):
    """A least-recently-used cache of at most `max_bytes`; safe from several threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._used, self._lock = max_bytes, 0, Lock()
        self._entries: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()

    def get(self, key: Hashable) -> Value | None:
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: Hashable, value: Value, size: int) -> Value:
        """Store `value`, of `size` bytes, and return it."""
        with self._lock:
            self._used += size - self._entries.pop(key, (None, 0))[1]
            self._entries[key] = (value, size)
            while self._used > self._max_bytes and self._entries:
                self._used -= self._entries.popitem(last=False)[1][1]
        return value


class SampleRenderer:
    """Renders the samples of one pool, and the training examples next to them."""

    def __init__(self, view: PoolView) -> None:
        self._view, self._decode_lock, self._chain_lock = view, Lock(), Lock()
        self._samples: ByteCache[np.ndarray] = ByteCache(SAMPLE_CACHE)
        self._chains: ByteCache[tuple[np.ndarray, np.ndarray]] = ByteCache(CHAIN_CACHE)
        self.form = DisplayForm.TEXT
        if has_pixels(view.dataset):
            self.form = DisplayForm.SOUND if view.dataset.kind == Kind.SOUND else DisplayForm.IMAGE

    @property
    def tile(self) -> tuple[int, int]:
        """Height and width of one sample in a sheet; (0, 0) for text."""
        if self.form is DisplayForm.TEXT:
            return 0, 0
        height, width = self._view.dataset.shape[1:]
        scale = min(1.0, MAX_TILE / max(height, width))
        return max(1, round(height * scale)), max(1, round(width * scale))

    def sheet(self, rows: np.ndarray, *, real: bool = False) -> bytes:
        """Samples, or real training examples, side by side in one PNG, SHEET_COLUMNS per line."""
        return self._sheet(self._x(rows, real))

    def chain_sheet(self, row: int) -> bytes:
        """States of one sample's Langevin chain, from p0 to its end."""
        return self._sheet(self._chain(row)[1])

    def image(self, row: int) -> bytes:
        """One sample in full resolution."""
        return png_bytes(self._pixels(self._decode(np.array([row])))[0])

    def sound(self, row: int, *, real: bool = False) -> bytes:
        """One sample, or real training example, as WAV."""
        items = self._view.run.encoding.items(self._x(np.array([row]), real))
        if not isinstance(items, Waveforms):
            raise invalid("these samples are not sounds")
        return wav_bytes(items.sounds[0], items.rate)

    def text(self, rows: np.ndarray, *, real: bool = False) -> dict[str, Any]:
        """Samples, or real training examples, as text; see `as_text`."""
        return as_text(self._view, self._view.real_items(rows)) if real else self._text(rows, self._decode(rows))

    def chain(self, row: int) -> dict[str, Any]:
        """The steps at which a chain is shown, and its states where samples are text."""
        if self.form is DisplayForm.TEXT and self._view.run.origin.features is not None:
            raise invalid("the chains of embeddings are not shown: their states cannot be read")
        steps, x = self._chain(row)
        text = self._text(np.full(len(x), row), x) if self.form is DisplayForm.TEXT else {}
        return {"steps": steps.tolist(), **text}

    def _x(self, rows: np.ndarray, real: bool) -> np.ndarray:
        return self._view.dataset.train.x[rows] if real else self._decode(rows)

    def _decode(self, rows: np.ndarray) -> np.ndarray:
        found = {int(row): self._samples.get(int(row)) for row in rows}
        missing = np.array([row for row, x in found.items() if x is None], dtype=np.int64)
        if len(missing):
            with self._decode_lock:
                decoded = self._view.decode(missing)
            for row, x in zip(missing.tolist(), decoded, strict=True):
                found[row] = self._samples.put(row, x.copy(), x.nbytes + 200)
        return np.stack([x for row in rows if (x := found[int(row)]) is not None])

    def _chain(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        with self._chain_lock:  # images and steps are requested together: the second request finds the first one's work
            known = self._chains.get(row)
            if known is None:
                steps, x = self._view.chain(row)
                known = self._chains.put(row, (steps, x), x.nbytes + 200)
        return known

    def _pixels(self, x: np.ndarray) -> np.ndarray:
        if self.form is DisplayForm.TEXT:
            raise invalid("these samples have no images: request their text")
        return pixels_of(self._view.dataset, x)

    def _sheet(self, x: np.ndarray) -> bytes:
        pixels = self._pixels(x)
        if pixels.shape[2:] != self.tile:
            pixels = np.stack([resized(image, *self.tile) for image in pixels])
        count, channels, height, width = pixels.shape
        columns = min(count, SHEET_COLUMNS)
        lines = -(-count // columns)
        full = np.zeros((lines * columns, channels, height, width), dtype=np.uint8)
        full[:count] = pixels
        # (lines, columns, channels, height, width) -> (channels, lines, height, columns, width)
        sheet = full.reshape(lines, columns, channels, height, width).transpose(2, 0, 3, 1, 4)
        return png_bytes(sheet.reshape(channels, lines * height, columns * width), compress_level=FAST_COMPRESSION)

    def _text(self, rows: np.ndarray, x: np.ndarray) -> dict[str, Any]:
        view = self._view
        if view.run.origin.features is None:
            return as_text(view, readable_samples(view, rows, x))
        nearest = as_text(view, view.real_items(view.nearest(rows).indices))  # an embedding cannot be read
        names = [f"nearest {name}" for name in nearest["names"]] or ["nearest real example"]
        return {**nearest, "names": names}


def as_text(view: PoolView, items: Any) -> dict[str, Any]:
    """`cells`, a list of text for each item, with the `names` of the columns; a single cell has no name."""
    import pyarrow as pa

    if isinstance(items, pa.Table) or (isinstance(items, np.ndarray) and items.ndim == 2 and items.dtype.kind in "fiu"):
        limits = {"max_columns": MAX_COLUMNS, "max_length": MAX_CELL_LENGTH, "digits": 4}
        names, cells = text_cells(items, view.dataset.feature_names, **limits)
        return {"names": list(names), "cells": [list(row) for row in cells]}
    return {"names": [], "cells": [[cut(str(item), MAX_TEXT_LENGTH)] for item in items]}
