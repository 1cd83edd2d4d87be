"""How examples become numbers for a network, and back: one class for each modality."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.errors import DataError


class Encoding(Protocol):
    """A pair of maps between examples and network input, with the figures they need."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def encode(self, x: np.ndarray) -> np.ndarray: ...

    def decode(self, x: np.ndarray) -> np.ndarray: ...

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class ImageEncoding:
    """uint8 pixels to [-1, 1] and back: encode(p) = p / 127.5 - 1.

    Attributes:
        shape: (channels, height, width) of one image.
    """

    shape: tuple[int, ...]

    def encode(self, x: np.ndarray) -> np.ndarray:
        """float32 (n, channels, height, width) in [-1, 1]; images that are floats already pass unchanged."""
        _check_shape(x, self.shape)
        if x.dtype == np.float32:
            return x
        if x.dtype != np.uint8:
            raise DataError(f"images to encode must be uint8 or float32, but came as {x.dtype}")
        encoded = x.astype(np.float32)
        encoded /= 127.5
        encoded -= 1.0
        return encoded

    def decode(self, x: np.ndarray) -> np.ndarray:
        """uint8 (n, channels, height, width), rounded; values outside [-1, 1] are clipped."""
        _check_shape(x, self.shape)
        return np.rint((np.clip(x, -1.0, 1.0) + 1.0) * 127.5).astype(np.uint8)

    def to_json(self) -> dict[str, Any]:
        return {"kind": Kind.IMAGE.value, "shape": list(self.shape)}


@dataclass(frozen=True, eq=False)
class VectorEncoding:
    """Columns standardised with figures of the training rows: encode(v) = (v - mean) / scale.

    Attributes:
        mean: float64 (features,).
        scale: float64 (features,), positive; 1 for a column that never changes.
    """

    mean: np.ndarray
    scale: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.mean),)

    def encode(self, x: np.ndarray) -> np.ndarray:
        """float32 (n, features), of mean 0 and standard deviation 1 over the training rows."""
        _check_shape(x, self.shape)
        return ((x - self.mean) / self.scale).astype(np.float32)

    def decode(self, x: np.ndarray) -> np.ndarray:
        """float32 (n, features), in the units of the source."""
        _check_shape(x, self.shape)
        return (x * self.scale + self.mean).astype(np.float32)

    def to_json(self) -> dict[str, Any]:
        return {"kind": Kind.VECTOR.value, "mean": self.mean.tolist(), "scale": self.scale.tolist()}


def fit_encoding(dataset: Dataset, train_indices: np.ndarray) -> Encoding:
    """The encoding of `dataset`, measured on the rows `train_indices` alone: labelled and unlabelled, none held out."""
    if dataset.kind is Kind.IMAGE:
        return ImageEncoding(dataset.shape)
    if len(train_indices) == 0:
        raise DataError("mean and scale need at least one training row, but there is none")
    x = dataset.train.x[train_indices]
    scale = x.std(axis=0, dtype=np.float64)
    scale[x.max(axis=0) == x.min(axis=0)] = 1.0  # by comparison: rounding leaves a constant column a tiny deviation
    return VectorEncoding(x.mean(axis=0, dtype=np.float64), scale)


def from_json(value: dict[str, Any]) -> Encoding:
    """The encoding that `to_json` described."""
    try:
        return _READERS[Kind(value["kind"])](value)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"a stored encoding is damaged or of a later version ({error!r})") from None


def _read_image(value: dict[str, Any]) -> Encoding:
    return ImageEncoding(tuple(int(side) for side in value["shape"]))


def _read_vector(value: dict[str, Any]) -> Encoding:
    mean, scale = np.asarray(value["mean"], dtype=np.float64), np.asarray(value["scale"], dtype=np.float64)
    if mean.ndim != 1 or mean.shape != scale.shape or not np.isfinite(mean).all() or not (scale > 0).all():
        raise ValueError("mean and scale must be finite, positive where they divide, and of one length")
    return VectorEncoding(mean, scale)


_READERS: dict[Kind, Callable[[dict[str, Any]], Encoding]] = {Kind.IMAGE: _read_image, Kind.VECTOR: _read_vector}


def _check_shape(x: np.ndarray, shape: tuple[int, ...]) -> None:
    if x.shape[1:] != shape:
        raise DataError(f"examples must have shape (n, {', '.join(map(str, shape))}), but came with {x.shape}")
