"""Axes, dtype and value range of a user's images, so that synthetic images have the same form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.data.dataset import Kind
from synthsieve.data.formats.arrays import BYTES, MAX_CHANNELS, UNIT, Features

AXES = ("hw", "chw", "hwc")


@dataclass(frozen=True)
class ImageForm:
    """The form of a user's image array.

    Attributes:
        axes: of one image: "hw", "chw" or "hwc".
        dtype: name of the array's dtype.
        value_range: of the values; None for booleans, and for integers from 0 to 255.
    """

    axes: str
    dtype: str
    value_range: tuple[float, float] | None = None

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
        if self.value_range is not None:
            low, high = self.value_range
            values = low + unit * (high - low)
            images = (values if np.dtype(self.dtype).kind == "f" else np.rint(values)).astype(self.dtype)
        elif self.dtype == "bool":
            images = unit > 0.5
        else:
            images = np.rint(unit * 255).astype(self.dtype)
        if self.axes == "hw":
            return images[:, 0]
        return images if self.axes == "chw" else np.ascontiguousarray(images.transpose(0, 2, 3, 1))

    def to_json(self) -> dict[str, Any]:
        span = None if self.value_range is None else list(self.value_range)
        return {"axes": self.axes, "dtype": self.dtype, "value_range": span}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ImageForm:
        """The form from `to_json`; KeyError, TypeError or ValueError if it is damaged."""
        span = None if value["value_range"] is None else _read_range(value["value_range"])
        dtype = np.dtype(str(value["dtype"]))
        if value["axes"] not in AXES or dtype.kind not in "buif":
            raise ValueError(f"invalid image form {value['axes']}, {dtype}, {span}")
        return cls(value["axes"], dtype.name, span)


PIXELS = ImageForm("chw", "uint8")  # of image files


def _read_range(given: Any) -> tuple[float, float]:
    low, high = (float(end) for end in given)
    if not -np.inf < low < high < np.inf:
        raise ValueError(f"invalid value range {low} to {high}")
    return low, high
