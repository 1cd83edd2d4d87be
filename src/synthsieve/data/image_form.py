"""How a user's array holds images, so that synthetic ones come back in the same form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.data.features import MOST_CHANNELS

AXES = ("hw", "chw", "hwc")


@dataclass(frozen=True)
class ImageForm:
    """What `data.features.read_features` took away.

    Attributes:
        axes: of one image: "hw", "chw" or "hwc".
        dtype: the array's, by name.
        value_range: what floats span; None for integers and booleans.
    """

    axes: str
    dtype: str
    value_range: tuple[float, float] | None = None

    @classmethod
    def of(cls, raw: np.ndarray, value_range: tuple[float, float] | None) -> ImageForm:
        """The form of an array (n, h, w), (n, c, h, w) or (n, h, w, c)."""
        with_channels = "chw" if raw.shape[1] <= MOST_CHANNELS else "hwc"
        return cls("hw" if raw.ndim == 3 else with_channels, raw.dtype.name, value_range)

    def give_back(self, x: np.ndarray) -> np.ndarray:
        """Images as stored, uint8 or float32 in [-1, 1] (n, c, h, w), in the user's form."""
        share = x / 255.0 if x.dtype == np.uint8 else (x.astype(np.float64) + 1) / 2  # of the way from black to white
        if self.value_range is not None:
            low, high = self.value_range
            images = (low + share * (high - low)).astype(self.dtype)
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
        low, high = (None, None) if value["value_range"] is None else map(float, value["value_range"])
        span = None if low is None or high is None else (low, high)
        dtype = np.dtype(str(value["dtype"]))
        rises = span is None or (np.isfinite(span).all() and span[0] < span[1])
        if value["axes"] not in AXES or dtype.kind not in "buif" or not rises:
            raise ValueError(f"no form of images is {value['axes']}, {dtype}, {span}")
        return cls(value["axes"], dtype.name, span)
