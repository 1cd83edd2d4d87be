"""Images as PNG and sounds as WAV."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import numpy as np

from synthsieve.io.files import atomic_write

MAX_CHANNELS = 4  # of a PNG: grey, grey and alpha, colour, colour and alpha


def png_bytes(image: np.ndarray, *, compress_level: int = 6) -> bytes:
    """A PNG of uint8 (channels, height, width), 1 to 4 channels; lossless."""
    from PIL import Image

    pixels = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(stream, format="PNG", compress_level=compress_level)
    return stream.getvalue()


def resized(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """uint8 (channels, height, width), by averaging."""
    from PIL import Image

    return np.stack([np.asarray(Image.fromarray(each).resize((width, height), Image.Resampling.BOX)) for each in image])


def write_image_grid(path: Path, rows: list[np.ndarray], scale: int | None = None) -> None:
    """Write lines of images, each uint8 (n, channels, height, width), to one PNG with a pixel between them."""
    channels, height, width = rows[0].shape[1:]
    scale = scale or max(1, 32 // height)
    columns = max(len(row) for row in rows)
    grid = np.full((channels, len(rows) * (height + 1) + 1, columns * (width + 1) + 1), 255, dtype=np.uint8)
    for i, row in enumerate(rows):
        for j, image in enumerate(row):
            top, left = 1 + i * (height + 1), 1 + j * (width + 1)
            grid[:, top : top + height, left : left + width] = image
    with atomic_write(path) as partial:
        partial.write_bytes(png_bytes(grid.repeat(scale, axis=1).repeat(scale, axis=2)))


def wav_bytes(sound: np.ndarray, rate: int) -> bytes:
    """A WAV with one channel of 16-bit samples; values outside [-1, 1] are clipped."""
    samples = np.rint(np.clip(sound, -1, 1) * 32767).astype("<i2")
    stream = io.BytesIO()
    with wave.open(stream, "wb") as target:
        target.setnchannels(1)
        target.setsampwidth(2)
        target.setframerate(rate)
        target.writeframes(samples.tobytes())
    return stream.getvalue()


def write_wav(path: Path, sound: np.ndarray, rate: int) -> None:
    """Write `wav_bytes` to a file, atomically."""
    with atomic_write(path) as partial:
        partial.write_bytes(wav_bytes(sound, rate))
