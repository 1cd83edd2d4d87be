"""How samples look on a page: many as one PNG, one alone, a sound to play, lines to read, a chain step by step.

x of the pool is never held whole: what is asked for is decoded, and the last of it kept.
"""

from __future__ import annotations

from enum import StrEnum
from threading import Lock

import numpy as np

from synthsieve.data.dataset import Kind
from synthsieve.errors import InputError
from synthsieve.export.media import png_bytes, wav_bytes
from synthsieve.gallery.cache import Recent
from synthsieve.gallery.lines import Lines, lines_of, synthetic_lines
from synthsieve.review.pixels import can_be_seen, pixels_of
from synthsieve.review.pool_view import PoolView
from synthsieve.waveforms import Waveforms

SHEET_COLUMNS = 25
QUICKLY = 1  # of zlib: a sheet goes no farther than this machine
LARGEST_TILE = 96  # pixels of a side; larger images are reduced in a sheet
SAMPLE_BYTES, CHAIN_BYTES = 64 * 2**20, 16 * 2**20  # of what was decoded last


class Form(StrEnum):
    """How a sample is shown."""

    PICTURE = "picture"
    SOUND = "sound"
    LINES = "lines"


class Looks:
    """Samples of one pool, and the real examples beside them, made ready for the page."""

    def __init__(self, view: PoolView) -> None:
        self._view, self._decoding, self._replaying = view, Lock(), Lock()
        self._samples: Recent[np.ndarray] = Recent(SAMPLE_BYTES)
        self._chains: Recent[tuple[np.ndarray, np.ndarray]] = Recent(CHAIN_BYTES)

    @property
    def form(self) -> Form:
        if not can_be_seen(self._view):
            return Form.LINES
        return Form.SOUND if self._view.dataset.kind == Kind.SOUND else Form.PICTURE

    @property
    def tile(self) -> tuple[int, int]:
        """Height and width of one sample in a sheet; (0, 0) where samples are read."""
        if self.form is Form.LINES:
            return 0, 0
        height, width = self._view.dataset.shape[1:]
        scale = min(1.0, LARGEST_TILE / max(height, width))
        return max(1, round(height * scale)), max(1, round(width * scale))

    def sheet(self, rows: np.ndarray) -> bytes:
        """Samples side by side in one PNG, SHEET_COLUMNS a line."""
        return _sheet(self._pixels(self._decoded(rows)), self.tile)

    def real_sheet(self, rows: np.ndarray) -> bytes:
        """The same for training examples."""
        return _sheet(self._pixels(self._view.dataset.train.x[rows]), self.tile)

    def picture(self, row: int) -> bytes:
        """One sample in all its pixels."""
        return png_bytes(self._pixels(self._decoded(np.array([row])))[0])

    def sound(self, row: int) -> bytes:
        """One sample to be played."""
        return self._wav(self._decoded(np.array([row])))

    def real_sound(self, row: int) -> bytes:
        """One training example to be played."""
        return self._wav(self._view.dataset.train.x[[row]])

    def lines(self, rows: np.ndarray) -> Lines:
        """Samples to be read."""
        return synthetic_lines(self._view, rows, self._decoded(rows))

    def real_lines(self, rows: np.ndarray) -> Lines:
        """Training examples to be read."""
        return lines_of(self._view, self._view.real_items(rows))

    def chain_sheet(self, row: int) -> bytes:
        """One sample's chain from p0 to its end, side by side."""
        return _sheet(self._pixels(self._chain(row)[1]), self.tile)

    def chain_lines(self, row: int) -> Lines:
        """The same to be read; an embedding on its way is nothing that can be."""
        if self._view.run.origin.features is not None:
            raise InputError("expected examples that can be read, but these are embeddings: their chains are not shown")
        x = self._chain(row)[1]
        return synthetic_lines(self._view, np.full(len(x), row), x)

    def chain_steps(self, row: int) -> list[int]:
        """After how many steps the chain is shown."""
        return [int(step) for step in self._chain(row)[0]]

    def _decoded(self, rows: np.ndarray) -> np.ndarray:
        """x of those samples; only what is not kept is worked out."""
        found = {int(row): self._samples.get(int(row)) for row in rows}
        missing = np.array([row for row, x in found.items() if x is None], dtype=np.int64)
        if len(missing):
            with self._decoding:
                decoded = self._view.decode(missing)
            for row, x in zip(missing.tolist(), decoded, strict=True):
                found[row] = self._samples.put(row, x.copy(), x.nbytes + 200)
        return np.stack([x for row in rows if (x := found[int(row)]) is not None])

    def _chain(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        with self._replaying:  # pictures and steps are asked for at once: the second finds what the first made
            known = self._chains.get(row)
            if known is None:
                steps, x = self._view.chain(row)
                known = self._chains.put(row, (steps, x), x.nbytes + 200)
        return known

    def _pixels(self, x: np.ndarray) -> np.ndarray:
        if self.form is Form.LINES:
            raise InputError("expected samples that can be seen, but these are read: ask for their lines")
        return pixels_of(self._view, x)

    def _wav(self, x: np.ndarray) -> bytes:
        items = self._view.run.encoding.items(x)
        if not isinstance(items, Waveforms):
            raise InputError("expected samples that can be heard, but these are no sounds")
        return wav_bytes(items.sounds[0], items.rate)


def _sheet(pixels: np.ndarray, tile: tuple[int, int]) -> bytes:
    """uint8 (n, channels, height, width) side by side, each reduced to `tile`."""
    pixels = _reduced(pixels, tile)
    count, channels, height, width = pixels.shape
    columns = min(count, SHEET_COLUMNS)
    lines = -(-count // columns)
    full = np.zeros((lines * columns, channels, height, width), dtype=np.uint8)
    full[:count] = pixels
    # (lines, columns, channels, height, width) -> (channels, lines, height, columns, width)
    sheet = full.reshape(lines, columns, channels, height, width).transpose(2, 0, 3, 1, 4)
    joined = sheet.reshape(channels, lines * height, columns * width)
    return png_bytes(joined, compress_level=QUICKLY)


def _reduced(pixels: np.ndarray, tile: tuple[int, int]) -> np.ndarray:
    if pixels.shape[2:] == tile:
        return pixels
    from PIL import Image

    small = [
        [np.asarray(Image.fromarray(channel).resize(tile[::-1], Image.Resampling.BOX)) for channel in image]
        for image in pixels
    ]
    return np.array(small, dtype=np.uint8)
