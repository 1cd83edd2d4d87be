"""Arrays as files hold them become images (n, channels, height, width) or vectors (n, features).

The rules look at the shape and the dtype first, and at values only for images:

| array | becomes |
|---|---|
| (n, features), any number | float32 vectors, values unchanged |
| (n, height, width) | images of one channel |
| (n, c, h, w) or (n, h, w, c), c from 1 to 4 | images; where both could be, channels first |
| booleans | uint8 images, 0 and 255 |
| integer images within 0..255, some above 127 | uint8 images |
| float images within [-1, 1], some negative | kept |
| float images within [0, 1], some above 0.5 | x -> 2 x - 1 |
| float images within [0, 255], some above 127.5 | x -> x / 127.5 - 1 |
| all other images | their own least and greatest value become -1 and 1 |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synthsieve.data.dataset import Kind
from synthsieve.errors import DataError

MAX_CHANNELS = 4
BYTES = (0.0, 255.0)
SIGNED = (-1.0, 1.0)
UNIT = (0.0, 1.0)
STANDARD_RANGES = (SIGNED, UNIT, BYTES)
CENTRAL = (0.1, 99.9)  # percentiles
OUTLIER_SHARE = 0.05  # of the range: where nearly all pixels lie within less of it, the others are outliers
PERCENTILE_VALUES = 1_000_000


@dataclass(frozen=True)
class Features:
    """Examples ready for a `Dataset`.

    Attributes:
        x: uint8 or float32 images, or float32 vectors.
        kind: which of the two.
        value_range: for images, the (low, high) that stands for [-1, 1]; (0, 255) for uint8 images.
        notes: messages for the user, without the name of the file.
    """

    x: np.ndarray
    kind: Kind
    value_range: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()


def read_features(raw: np.ndarray, *, origin: str, value_range: tuple[float, float] | None = None) -> Features:
    """Images or vectors from an array of a file.

    `value_range` is what images span (of a training set, or given by the user); None looks at the values.
    """
    if raw.dtype.kind not in "buif":
        raise DataError(
            f"{origin}: examples must be numbers, but came as {raw.dtype}: convert them first", code="example-type"
        )
    if raw.ndim == 2:
        return Features(as_float32(raw, origin), Kind.VECTOR)
    if raw.ndim not in (3, 4):
        raise DataError(
            f"{origin}: examples must have shape (n, features), (n, height, width) or (n, channels, height, width),"
            f" but came with shape {raw.shape}",
            code="example-shape",
        )
    images = channels_first(raw, origin)
    if raw.dtype.kind == "b":
        return Features(images.astype(np.uint8) * np.uint8(255), Kind.IMAGE, BYTES)
    if raw.dtype.kind == "f":
        images = as_float32(images, origin)
    given = value_range is not None
    value_range = value_range or guess_value_range(images, origin)
    if raw.dtype.kind != "f" and _are_bytes(images, value_range):
        return Features(np.ascontiguousarray(images, dtype=np.uint8), Kind.IMAGE, BYTES)
    scaled, clipped = _rescaled(images, value_range, origin)
    notes = [] if given or value_range == SIGNED else [scaling_note(value_range)]
    if clipped:
        notes.append(_clipping_note(images, value_range, clipped))
    return Features(scaled, Kind.IMAGE, value_range, tuple(notes))


def scaling_note(value_range: tuple[float, float]) -> str:
    """The note on which range was taken."""
    return f"pixel values {value_range[0]:g} to {value_range[1]:g} are scaled to [-1, 1]"


def channels_first(raw: np.ndarray, origin: str) -> np.ndarray:
    """(n, channels, height, width), from any of the accepted layouts."""
    if raw.ndim == 3:
        return raw[:, None]
    if 1 <= raw.shape[1] <= MAX_CHANNELS:
        return raw
    if 1 <= raw.shape[3] <= MAX_CHANNELS:
        return np.ascontiguousarray(raw.transpose(0, 3, 1, 2))
    raise DataError(
        f"{origin}: images must have 1 to {MAX_CHANNELS} channels, first or last, but came with shape {raw.shape}",
        code="example-shape",
    )


def bytes_as_floats(images: np.ndarray) -> np.ndarray:
    """uint8 images as float32 in [-1, 1]; float32 images as they are."""
    if images.dtype == np.float32:
        return images
    floats = images.astype(np.float32)
    floats /= 127.5
    floats -= 1.0
    return floats


def as_float32(raw: np.ndarray, origin: str) -> np.ndarray:
    """float32, refusing what is not finite before or after the cast."""
    with np.errstate(over="ignore"):
        x = np.ascontiguousarray(raw, dtype=np.float32)
    bad = ~np.isfinite(x)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise DataError(
            f"{origin}: every value must be finite in float32, but {int(bad.sum())} are not (the first is {raw[first]}"
            f" at index {first}): fill or remove them",
            code="not-finite",
        )
    return x


def guess_value_range(images: np.ndarray, origin: str) -> tuple[float, float]:
    """The span that images are meant to fill, by the rules at the head of this file."""
    if images.size == 0:
        return SIGNED if images.dtype.kind == "f" else BYTES
    low, high = float(images.min()), float(images.max())
    if images.dtype.kind == "f" and -1 <= low < 0 and high <= 1:
        return SIGNED
    if low >= 0 and low == high:  # blank images have no range of their own
        return UNIT if images.dtype.kind == "f" and high <= 1 else (0.0, max(high, 255.0))
    for standard in (UNIT, BYTES) if images.dtype.kind == "f" else (BYTES,):
        if low >= 0 and standard[1] / 2 < high <= standard[1]:
            return standard
    if low == high:
        return low, low + 1.0
    _check_outliers(images, low, high, origin)
    return low, high


def _check_outliers(images: np.ndarray, low: float, high: float, origin: str) -> None:
    """Refuse a range that a few pixels stretch: all others would be squeezed into a small part of it."""
    flat = images.reshape(-1)
    some = flat[:: max(1, flat.size // PERCENTILE_VALUES)]
    near_low, near_high = (float(value) for value in np.percentile(some, CENTRAL))
    if 0 < near_high - near_low < OUTLIER_SHARE * (high - low):
        raise DataError(
            f"{origin}: pixel values lie in [{low:g}, {high:g}], but nearly all of them in [{near_low:g},"
            f" {near_high:g}]: correct the few outliers, or scale all images to [0, 1]",
            code="pixel-outliers",
        )


def _are_bytes(images: np.ndarray, value_range: tuple[float, float]) -> bool:
    """Whether integer images are bytes in their full range, beside images that span `value_range`."""
    if value_range not in STANDARD_RANGES or (images.size and (images.min() < 0 or images.max() > BYTES[1])):
        return False
    return value_range != UNIT or bool(images.size and images.max() > 1)


def _rescaled(images: np.ndarray, value_range: tuple[float, float], origin: str) -> tuple[np.ndarray, int]:
    """float32 in [-1, 1], and how many values outside `value_range` were clipped.

    A standard range is not left, and no other by more than its own width: that would be images of another kind.
    """
    low, high = value_range
    slack = 0.0 if value_range in STANDARD_RANGES else high - low
    if images.size and (images.min() < low - slack or images.max() > high + slack):
        raise DataError(
            f"{origin}: pixel values must lie in [{low:g}, {high:g}], as in training, but came in"
            f" [{images.min():g}, {images.max():g}]: rescale them",
            code="pixel-range",
        )
    if value_range == SIGNED and images.dtype == np.float32:
        return images, 0
    scaled = (images.astype(np.float64) - low) * (2.0 / (high - low)) - 1.0
    outside = int(((images < low) | (images > high)).sum()) if slack else 0
    return np.clip(scaled, -1.0, 1.0).astype(np.float32), outside


def _clipping_note(images: np.ndarray, value_range: tuple[float, float], clipped: int) -> str:
    low, high = value_range
    return (
        f"{clipped:,} of {images.size:,} pixel values lie outside the range of training, {low:g} to {high:g}, and are"
        " clipped to it"
    )
