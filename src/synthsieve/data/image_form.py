"""How a user's array holds images, so that synthetic ones come back in the same form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.data.dataset import Kind
from synthsieve.data.features import BYTES, MOST_CHANNELS, UNIT, Features

AXES = ("hw", "chw", "hwc")


@dataclass(frozen=True)
class ImageForm:
    """What `data.features.read_features` took away.

    Attributes:
        axes: of one image: "hw", "chw" or "hwc".
        dtype: the array's, by name.
        value_range: what the values span; None for booleans, and for integers from 0 to 255.
    """

    axes: str
    dtype: str
    value_range: tuple[float, float] | None = None

    @classmethod
    def of(cls, raw: np.ndarray, features: Features) -> ImageForm | None:
        """The form of an array (n, h, w), (n, c, h, w) or (n, h, w, c) that was read as `features`; None of vectors."""
        if features.kind is not Kind.IMAGE:
            return None
        span = None if features.x.dtype == np.uint8 else features.value_range
        with_channels = "chw" if raw.shape[1] <= MOST_CHANNELS else "hwc"
        return cls("hw" if raw.ndim == 3 else with_channels, raw.dtype.name, span)

    def range_for(self, raw: np.ndarray) -> tuple[float, float] | None:
        """By which range new images are read, so that they are scaled as the first ones were; None: look at them."""
        if self.value_range is not None:
            return self.value_range
        if raw.dtype.kind == "f":  # floats beside bytes: nobody knows yet what they span
            return None
        return UNIT if self.dtype == "bool" else BYTES

    def give_back(self, x: np.ndarray) -> np.ndarray:
        """Images as stored, uint8 or float32 in [-1, 1] (n, c, h, w), in the user's form."""
        share = x / 255.0 if x.dtype == np.uint8 else (x.astype(np.float64) + 1) / 2  # of the way from black to white
        if self.value_range is not None:
            low, high = self.value_range
            values = low + share * (high - low)
            images = (values if np.dtype(self.dtype).kind == "f" else np.rint(values)).astype(self.dtype)
        elif self.dtype == "bool":
            images = share > 0.5
        else:
            images = np.rint(share * 255).astype(self.dtype)
        if self.axes == "hw":
            return images[:, 0]
        return images if self.axes == "chw" else np.ascontiguousarray(images.transpose(0, 2, 3, 1))

    def to_json(self) -> dict[str, Any]:
        span = None if self.value_range is None else list(self.value_range)
        return {"axes": self.axes, "dtype": self.dtype, "value_range": span}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ImageForm:
        """What `to_json` gave; a KeyError, TypeError or ValueError means that it is damaged."""
        span = None if value["value_range"] is None else _read_range(value["value_range"])
        dtype = np.dtype(str(value["dtype"]))
        if value["axes"] not in AXES or dtype.kind not in "buif":
            raise ValueError(f"no form of images is {value['axes']}, {dtype}, {span}")
        return cls(value["axes"], dtype.name, span)


PIXELS = ImageForm("chw", "uint8")  # of files of images


def _read_range(given: Any) -> tuple[float, float]:
    low, high = (float(end) for end in given)
    if not -np.inf < low < high < np.inf:
        raise ValueError(f"no images lie between {low} and {high}")
    return low, high
