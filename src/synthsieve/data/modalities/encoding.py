"""Encodings between stored examples and network input: the interface, and those of images and vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from synthsieve.data.checks import check
from synthsieve.data.dataset import Dataset, InputSpec, Kind
from synthsieve.data.formats.arrays import PIXELS, ImageForm, bytes_as_floats

MAX_SIDE = 1 << 16  # of a stored image
MIN_SCALE = float(np.finfo(np.float32).tiny)  # a smaller scale is imprecise: the column counts as constant
SIDE_MULTIPLE = 4  # convolutional networks halve images twice


class Encoding(Protocol):
    """A pair of maps between stored examples and network input."""

    @property
    def input_spec(self) -> InputSpec:
        """The kind, shape and details of an encoded example."""
        ...

    def encode(self, x: np.ndarray) -> np.ndarray:
        """Stored examples, (n, ...), -> network input, (n, *input_spec.shape)."""
        ...

    def decode(self, x: np.ndarray) -> np.ndarray:
        """Network input, or the output of a generator, -> stored examples."""
        ...

    def items(self, x: np.ndarray) -> Any:
        """Stored examples -> items for users: images, a pyarrow table, waveforms, sentences."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Everything that `from_json` needs, with the modality under `kind`."""
        ...


def check_shape(x: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raise if examples x (n, ...) do not have this shape each."""
    fits = x.ndim > 0 and x.shape[1:] == tuple(shape)
    check(fits, f"examples must have shape {tuple(shape)} each, got {x.shape[1:]}", "shape")


def check_rows(rows: np.ndarray) -> None:
    """Raise if there are no rows to fit an encoding on."""
    check(len(rows), "an encoding needs at least one training row", "no-training-rows")


@dataclass(frozen=True)
class ImageEncoding:
    """Pixels to [-1, 1] and back: encode(p) = p / 127.5 - 1 for uint8; float images are in [-1, 1] already.

    A height or width that is not a multiple of 4 is padded with edge pixels; `decode` crops it again.
    """

    shape: tuple[int, ...]  # (channels, height, width) of one image
    form: ImageForm = PIXELS  # of the user's images; new images are read in the same way

    @property
    def input_spec(self) -> InputSpec:
        channels, *sides = self.shape
        return InputSpec(Kind.IMAGE, (channels, *(side + sum(_margins(side)) for side in sides)))

    def encode(self, x: np.ndarray) -> np.ndarray:
        """float32 (n, *input_spec.shape) in [-1, 1]."""
        check_shape(x, self.shape)
        check(x.dtype in (np.float32, np.uint8), f"images must be uint8 or float32, got {x.dtype}", "dtype")
        if self.input_spec.shape != self.shape:
            x = np.pad(x, ((0, 0), (0, 0), *(_margins(side) for side in self.shape[1:])), mode="edge")
        return bytes_as_floats(x)

    def decode(self, x: np.ndarray) -> np.ndarray:
        """uint8 (n, *shape), rounded; values outside [-1, 1] are clipped."""
        check_shape(x, self.input_spec.shape)
        if self.input_spec.shape != self.shape:
            (top, _), (left, _) = (_margins(side) for side in self.shape[1:])
            x = x[:, :, top : top + self.shape[1], left : left + self.shape[2]]
        return np.rint((np.clip(x, -1.0, 1.0) + 1.0) * 127.5).astype(np.uint8)

    def items(self, x: np.ndarray) -> np.ndarray:
        """x itself."""
        return x

    def to_json(self) -> dict[str, Any]:
        plain = {"kind": Kind.IMAGE.value, "shape": list(self.shape)}
        return plain if self.form == PIXELS else {**plain, "form": self.form.to_json()}


def _margins(side: int) -> tuple[int, int]:
    """Pixels to add before and after, for a multiple of 4."""
    missing = -side % SIDE_MULTIPLE
    return missing // 2, missing - missing // 2


@dataclass(frozen=True, eq=False)
class VectorEncoding:
    """Columns standardized by the training rows: encode(v) = (v - mean) / scale."""

    mean: np.ndarray  # float64 (features,)
    scale: np.ndarray  # float64 (features,), positive; 1 for a constant column

    @property
    def input_spec(self) -> InputSpec:
        return InputSpec(Kind.VECTOR, self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.mean),)

    def encode(self, x: np.ndarray) -> np.ndarray:
        """float32 (n, features), with mean 0 and standard deviation 1 over the training rows."""
        check_shape(x, self.shape)
        with np.errstate(over="ignore"):  # the caller reports values beyond float32 as infinite
            return ((x - self.mean) / self.scale).astype(np.float32)

    def decode(self, x: np.ndarray) -> np.ndarray:
        """float32 (n, features), in the units of the source."""
        check_shape(x, self.shape)
        return (x * self.scale + self.mean).astype(np.float32)

    def items(self, x: np.ndarray) -> np.ndarray:
        """x itself."""
        return x

    def to_json(self) -> dict[str, Any]:
        return {"kind": Kind.VECTOR.value, "mean": self.mean.tolist(), "scale": self.scale.tolist()}


@dataclass(frozen=True)
class Codec:
    """How the encoding of one modality is fitted and read."""

    fit: Callable[[Dataset, np.ndarray], Encoding]  # from these training rows only
    read: Callable[[dict[str, Any]], Encoding]  # from `to_json`; KeyError, TypeError or ValueError if it is damaged


def _read_image(value: dict[str, Any]) -> Encoding:
    shape = tuple(int(side) for side in value["shape"])
    if len(shape) != 3 or not all(1 <= side <= MAX_SIDE for side in shape):
        raise ValueError(f"invalid image shape {shape}")
    return ImageEncoding(shape, ImageForm.from_json(value["form"]) if "form" in value else PIXELS)


def _fit_vector(dataset: Dataset, rows: np.ndarray) -> Encoding:
    check_rows(rows)
    x = dataset.train.x[rows]
    scale = x.std(axis=0, dtype=np.float64)
    scale[x.max(axis=0) == x.min(axis=0)] = 1.0  # exactly: by rounding, the deviation of a constant column is not 0
    scale[scale < MIN_SCALE] = 1.0
    return VectorEncoding(x.mean(axis=0, dtype=np.float64), scale)


def _read_vector(value: dict[str, Any]) -> Encoding:
    mean, scale = np.asarray(value["mean"], dtype=np.float64), np.asarray(value["scale"], dtype=np.float64)
    if mean.ndim != 1 or mean.shape != scale.shape or not np.isfinite(mean).all() or not (scale > 0).all():
        raise ValueError("mean must be finite, scale positive, and both of one length")
    return VectorEncoding(mean, scale)


IMAGE = Codec(lambda dataset, _: ImageEncoding(dataset.shape, dataset.metadata or PIXELS), _read_image)
VECTOR = Codec(_fit_vector, _read_vector)
