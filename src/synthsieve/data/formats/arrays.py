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
from typing import Any, NamedTuple

import numpy as np

from synthsieve.data.checks import check
from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.labels import read_labels
from synthsieve.errors import DataError

MAX_CHANNELS = 4
BYTES, SIGNED, UNIT = (0.0, 255.0), (-1.0, 1.0), (0.0, 1.0)
STANDARD_RANGES = (SIGNED, UNIT, BYTES)
CENTRAL = (0.1, 99.9)  # percentiles
OUTLIER_SHARE = 0.05  # of the range: where nearly all pixels lie within less of it, the others are outliers
PERCENTILE_VALUES = 1_000_000
AXES = ("hw", "chw", "hwc")


@dataclass(frozen=True)
class Features:
    """Examples ready for a `Dataset`."""

    x: np.ndarray  # uint8 or float32 images, or float32 vectors
    kind: Kind
    value_range: tuple[float, float] | None = None  # of images: what stands for [-1, 1]; (0, 255) for uint8
    notes: tuple[str, ...] = ()  # messages for the user, without the name of the file


@dataclass(frozen=True)
class ImageForm:
    """The form of a user's image array, so that synthetic images have the same."""

    axes: str  # of one image: "hw", "chw" or "hwc"
    dtype: str  # name of the array's dtype
    value_range: tuple[float, float] | None = None  # None for booleans, and for integers from 0 to 255

    @classmethod
    def of(cls, raw: np.ndarray, features: Features) -> ImageForm | None:
        """The form of an array (n, h, w), (n, c, h, w) or (n, h, w, c) read as `features`; None for vectors."""
        if features.kind is not Kind.IMAGE:
            return None
        span = None if features.x.dtype == np.uint8 else features.value_range
        with_channels = "chw" if raw.shape[1] <= MAX_CHANNELS else "hwc"
        return cls("hw" if raw.ndim == 3 else with_channels, raw.dtype.name, span)

    def range_for(self, raw: np.ndarray) -> tuple[float, float] | None:
        """The value range for scaling new images like the training images; None: infer it from them."""
        if self.value_range is not None:
            return self.value_range
        if raw.dtype.kind == "f":  # floats, though the training images were bytes
            return None
        return UNIT if self.dtype == "bool" else BYTES

    def restore_container(self, x: np.ndarray) -> np.ndarray:
        """Stored images, uint8 or float32 in [-1, 1] (n, c, h, w), in the user's form."""
        unit = x / 255.0 if x.dtype == np.uint8 else (x.astype(np.float64) + 1) / 2  # in [0, 1]
        low, high = self.value_range or (UNIT if self.dtype == "bool" else BYTES)
        values = low + unit * (high - low)
        rounded = values if np.dtype(self.dtype).kind == "f" and self.value_range else np.rint(values)
        images = rounded.astype(self.dtype)
        if self.axes == "hw":
            return images[:, 0]
        return images if self.axes == "chw" else np.ascontiguousarray(images.transpose(0, 2, 3, 1))

    def to_json(self) -> dict[str, Any]:
        span = None if self.value_range is None else list(self.value_range)
        return {"axes": self.axes, "dtype": self.dtype, "value_range": span}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ImageForm:
        """The form from `to_json`; KeyError, TypeError or ValueError if it is damaged."""
        low, high = (float(end) for end in value["value_range"] or BYTES)
        axes, dtype = value["axes"], np.dtype(str(value["dtype"]))
        if axes not in AXES or dtype.kind not in "buif" or not -np.inf < low < high < np.inf:
            raise ValueError(f"invalid image form {axes}, {dtype}, {low} to {high}")
        return cls(axes, dtype.name, None if value["value_range"] is None else (low, high))


PIXELS = ImageForm("chw", "uint8")  # of image files


class ArraySet(NamedTuple):
    """Examples and labels of one set as a file holds them, and how errors name the two."""

    x: np.ndarray
    y: np.ndarray
    x_origin: str
    y_origin: str
    groups: np.ndarray | None = None  # int64 (n,)


def array_dataset(
    name: str, train: ArraySet, test: ArraySet | None, value_range: tuple[float, float] | None = None
) -> Dataset:
    """The data set of one or two sets of arrays; test images are scaled like training images."""
    features = read_features(train.x, origin=train.x_origin, value_range=value_range)
    labels = read_labels(train.y, origin=train.y_origin)
    notes = [f"{train.x_origin}: {note}" for note in features.notes]
    test_set = None
    if test is not None:
        found = read_features(test.x, origin=test.x_origin, value_range=features.value_range)
        expected = f"must be {features.kind}s like the training examples, but holds {found.kind}s"
        check(found.kind is features.kind, f"{test.x_origin}: {expected}", "unlike-training")
        test_y = read_labels(test.y, origin=test.y_origin, classes=labels.classes).y
        test_set = Examples(found.x, test_y, test.groups)
        notes += [f"{test.x_origin}: {note}" for note in found.notes]
    train_set, form = Examples(features.x, labels.y, train.groups), ImageForm.of(train.x, features)
    return Dataset(name, features.kind, labels.classes, train_set, test_set, notes=tuple(notes), metadata=form)


def read_features(raw: np.ndarray, *, origin: str, value_range: tuple[float, float] | None = None) -> Features:
    """Images or vectors from an array of a file.

    `value_range` is what images span (of a training set, or given by the user); None looks at the values.
    """
    is_number = raw.dtype.kind in "buif"
    check(is_number, f"{origin}: examples must be numbers, got {raw.dtype}: convert them first", "example-type")
    if raw.ndim == 2:
        return Features(as_float32(raw, origin), Kind.VECTOR)
    images = _channels_first(raw, origin)
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
        notes.append(
            f"{clipped:,} of {images.size:,} pixel values lie outside the range of training, {value_range[0]:g} to"
            f" {value_range[1]:g}, and are clipped to it"
        )
    return Features(scaled, Kind.IMAGE, value_range, tuple(notes))


def scaling_note(value_range: tuple[float, float]) -> str:
    """The note on which range was taken."""
    return f"pixel values {value_range[0]:g} to {value_range[1]:g} are scaled to [-1, 1]"


def _channels_first(raw: np.ndarray, origin: str) -> np.ndarray:
    """(n, channels, height, width), from any of the accepted layouts."""
    if raw.ndim == 3:
        return raw[:, None]
    if raw.ndim == 4 and 1 <= raw.shape[1] <= MAX_CHANNELS:
        return raw
    if raw.ndim == 4 and 1 <= raw.shape[3] <= MAX_CHANNELS:
        return np.ascontiguousarray(raw.transpose(0, 3, 1, 2))
    raise DataError(
        f"{origin}: examples must have shape (n, features), (n, height, width) or, with 1 to {MAX_CHANNELS} channels"
        f" first or last, (n, channels, height, width), got shape {raw.shape}",
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
    is_float = images.dtype.kind == "f"
    if images.size == 0:
        return SIGNED if is_float else BYTES
    low, high = float(images.min()), float(images.max())
    if is_float and -1 <= low < 0 and high <= 1:
        return SIGNED
    if low >= 0 and low == high:  # blank images have no range of their own
        return UNIT if is_float and high <= 1 else (0.0, max(high, 255.0))
    for standard in (UNIT, BYTES) if is_float else (BYTES,):
        if low >= 0 and standard[1] / 2 < high <= standard[1]:
            return standard
    if low == high:
        return low, low + 1.0
    # A range that a few pixels stretch would squeeze all others into a small part of [-1, 1].
    flat = images.reshape(-1)
    some = flat[:: max(1, flat.size // PERCENTILE_VALUES)]
    near_low, near_high = (float(value) for value in np.percentile(some, CENTRAL))
    got = f"pixel values lie in [{low:g}, {high:g}], but nearly all of them in [{near_low:g}, {near_high:g}]"
    advice = "correct the few outliers, or scale all images to [0, 1]"
    is_spread = near_low == near_high or near_high - near_low >= OUTLIER_SHARE * (high - low)
    check(is_spread, f"{origin}: {got}: {advice}", "pixel-outliers")
    return low, high


def _are_bytes(images: np.ndarray, value_range: tuple[float, float]) -> bool:
    """Whether integer images are bytes in their full range, while the other images span `value_range`."""
    if value_range not in STANDARD_RANGES or (images.size and (images.min() < 0 or images.max() > BYTES[1])):
        return False
    return value_range != UNIT or bool(images.size and images.max() > 1)


def _rescaled(images: np.ndarray, value_range: tuple[float, float], origin: str) -> tuple[np.ndarray, int]:
    """float32 in [-1, 1], and how many values outside `value_range` were clipped.

    A standard range is not left, and no other by more than its own width: that would be images of another kind.
    """
    low, high = value_range
    slack = 0.0 if value_range in STANDARD_RANGES else high - low
    least, most = (images.min(), images.max()) if images.size else value_range
    got = f"{origin}: pixel values must lie in [{low:g}, {high:g}] as in training, but lie in [{least:g}, {most:g}]"
    check(low - slack <= least and most <= high + slack, got, "pixel-range")
    if value_range == SIGNED and images.dtype == np.float32:
        return images, 0
    scaled = (images.astype(np.float64) - low) * (2.0 / (high - low)) - 1.0
    outside = int(((images < low) | (images > high)).sum()) if slack else 0
    return np.clip(scaled, -1.0, 1.0).astype(np.float32), outside
