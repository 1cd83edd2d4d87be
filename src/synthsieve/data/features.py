"""Arrays as files hold them become images (n, channels, height, width) or vectors (n, features).

The rules look at the shape and the dtype first and at values only for floating-point images:

| array | becomes |
|---|---|
| (n, features), any number | float32 vectors, values unchanged |
| (n, height, width) | images of one channel |
| (n, c, h, w) or (n, h, w, c), c from 1 to 4 | images; where both could be, channels first |
| uint8 images, other integers within 0..255, booleans (0 and 255) | uint8 images |
| float images with a negative value | must lie in [-1, 1]; kept |
| float images within [0, 1] | x -> 2 x - 1 |
| float images within [0, 255], some above 1 | x -> x / 127.5 - 1 |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synthsieve.data.dataset import Kind
from synthsieve.errors import DataError

MOST_CHANNELS = 4


@dataclass(frozen=True)
class Features:
    """Examples ready for a `Dataset`.

    Attributes:
        x: uint8 or float32 images, or float32 vectors.
        kind: which of the two.
        value_range: for images that came as floats, the (low, high) that was mapped to [-1, 1]; otherwise None.
    """

    x: np.ndarray
    kind: Kind
    value_range: tuple[float, float] | None = None


def read_features(raw: np.ndarray, *, origin: str, value_range: tuple[float, float] | None = None) -> Features:
    """Images or vectors from an array of a file; `value_range` fixes what float images span instead of guessing it."""
    if raw.dtype.kind not in "buif":
        raise DataError(f"{origin}: examples must be numbers, but came as {raw.dtype}: convert them first")
    if raw.ndim == 2:
        return Features(as_float32(raw, origin), Kind.VECTOR)
    if raw.ndim not in (3, 4):
        raise DataError(
            f"{origin}: examples must have shape (n, features), (n, height, width) or (n, channels, height, width),"
            f" but came with shape {raw.shape}"
        )
    images = channels_first(raw, origin)
    if raw.dtype.kind != "f":
        return Features(_as_uint8(images, origin), Kind.IMAGE)
    images = as_float32(images, origin)
    if value_range is None:
        value_range = guess_value_range(images, origin)
    return Features(_rescaled(images, value_range, origin), Kind.IMAGE, value_range)


def channels_first(raw: np.ndarray, origin: str) -> np.ndarray:
    """(n, channels, height, width), from any of the accepted layouts."""
    if raw.ndim == 3:
        return raw[:, None]
    if 1 <= raw.shape[1] <= MOST_CHANNELS:
        return raw
    if 1 <= raw.shape[3] <= MOST_CHANNELS:
        return np.ascontiguousarray(raw.transpose(0, 3, 1, 2))
    raise DataError(
        f"{origin}: images must have 1 to {MOST_CHANNELS} channels, first or last, but came with shape {raw.shape}"
    )


def as_float32(raw: np.ndarray, origin: str) -> np.ndarray:
    """float32, refusing what is not finite before or after the cast."""
    with np.errstate(over="ignore"):
        x = np.ascontiguousarray(raw, dtype=np.float32)
    bad = ~np.isfinite(x)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise DataError(
            f"{origin}: every value must be finite in float32, but {int(bad.sum())} are not (the first is {raw[first]}"
            f" at index {first}): fill or remove them"
        )
    return x


def guess_value_range(images: np.ndarray, origin: str) -> tuple[float, float]:
    """The span that float images are meant to fill, by the rules at the head of this file."""
    if images.size == 0:
        return (-1.0, 1.0)
    low, high = float(images.min()), float(images.max())
    if low < 0:
        return (-1.0, 1.0)
    if high <= 1:
        return (0.0, 1.0)
    if high <= 255:
        return (0.0, 255.0)
    raise DataError(
        f"{origin}: float images must lie in [-1, 1], [0, 1] or [0, 255], but came in [{low:g}, {high:g}]: rescale them"
    )


def _rescaled(images: np.ndarray, value_range: tuple[float, float], origin: str) -> np.ndarray:
    low, high = value_range
    if images.size and (images.min() < low or images.max() > high):
        raise DataError(
            f"{origin}: float images must lie in [{low:g}, {high:g}], but came in"
            f" [{images.min():g}, {images.max():g}]: rescale them"
        )
    if (low, high) == (-1.0, 1.0):
        return images
    scaled = (images.astype(np.float64) - low) * (2.0 / (high - low)) - 1.0
    return np.clip(scaled, -1.0, 1.0).astype(np.float32)


def _as_uint8(images: np.ndarray, origin: str) -> np.ndarray:
    if images.dtype.kind == "b":
        return images.astype(np.uint8) * np.uint8(255)
    if images.dtype != np.uint8 and images.size and (images.min() < 0 or images.max() > 255):
        raise DataError(
            f"{origin}: integer images must lie in 0..255, but came in {images.min()}..{images.max()}: rescale them"
        )
    return np.ascontiguousarray(images, dtype=np.uint8)
