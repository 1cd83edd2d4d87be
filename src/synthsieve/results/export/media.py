"""Images as PNG, single or in grids as in the paper's Fig. 1, and sounds as WAV."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import numpy as np

from synthsieve.errors import DataError
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


def write_image_grid(path: Path, rows: list[np.ndarray]) -> None:
    """Write lines of images, each uint8 (n, channels, height, width), to one PNG with a pixel between them."""
    channels, height, width = rows[0].shape[1:]
    scale = max(1, 32 // height)
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


def write_samples_figure(path: Path, x: np.ndarray, y: np.ndarray, columns: int = 10) -> None:
    """Write a PNG with a row for each class of y (n,): its first `columns` samples.

    x: uint8 (n, 1 or 3, height, width).
    """
    _check_images(x, y, "y", columns=columns)
    write_image_grid(path, [x[y == c][:columns] for c in np.unique(y)])


def write_entropy_figure(path: Path, x: np.ndarray, entropy: np.ndarray, columns: int = 10, rows: int = 5) -> None:
    """Write a PNG of samples by entropy, lowest first, left to right and top to bottom.

    If there are more than fit, their ranks are evenly spaced from the lowest entropy to the highest. x: uint8
    (n, 1 or 3, height, width), samples of one class; entropy: (n,), nats.
    """
    _check_images(x, entropy, "entropy", columns=columns, rows=rows)
    if np.isnan(entropy).any():
        raise DataError("expected a number as entropy of each sample, got nan: check the logits", code="not-finite")
    shown = np.argsort(entropy, kind="stable")[spaced_ranks(len(x), columns * rows)]
    write_image_grid(path, [x[shown[start : start + columns]] for start in range(0, len(shown), columns)])


def spaced_ranks(n: int, count: int) -> np.ndarray:
    """At most `count` of the ranks 0 to n - 1, evenly spaced, both ends included: int64, increasing."""
    return np.round(np.linspace(0, n - 1, min(n, count))).astype(np.int64)


def _check_images(x: np.ndarray, other: np.ndarray, name: str, **counts: int) -> None:
    if x.ndim != 4 or x.dtype != np.uint8 or x.shape[1] not in (1, 3) or not len(x):
        message = f"expected images, uint8 (1 or more, 1 or 3, height, width), got {x.dtype} of shape {x.shape}"
        raise DataError(message, code="not-images")
    if other.shape != (len(x),):
        raise DataError(f"expected {name} of shape ({len(x)},), got {other.shape}", code="length-mismatch")
    for option, count in counts.items():
        if count < 1:
            raise DataError(f"expected {option} of at least 1, got {count}: try 10", code="out-of-range")
