"""How examples become numbers for a network, and back: one class for each modality, and the registry of all.

One's own is added with `register_encoding`; `synthsieve.register_modality` does that together with its networks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Protocol

import numpy as np

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.data.features import bytes_as_floats
from synthsieve.data.image_form import PIXELS, ImageForm
from synthsieve.errors import DataError
from synthsieve.layout import Layout

ENTRY_POINTS = "synthsieve.modalities"
MOST_SIDE = 1 << 16  # of a stored image's shape
SMALLEST_SCALE = float(np.finfo(np.float32).tiny)  # below it float32 has but a few digits: such a column is constant
SIDE_MULTIPLE = 4  # of the images that networks take


class Encoding(Protocol):
    """A pair of maps between examples and network input, with the figures they need."""

    @property
    def layout(self) -> Layout:
        """What networks must know of an encoded example."""
        ...

    def encode(self, x: np.ndarray) -> np.ndarray:
        """Examples as stored, (n, ...), -> network input, (n, *layout.shape)."""
        ...

    def decode(self, x: np.ndarray) -> np.ndarray:
        """Network input, or what a generator makes, -> examples as stored."""
        ...

    def items(self, x: np.ndarray) -> Any:
        """Examples as stored -> as people have them: images, a pyarrow table, waveforms, sentences."""
        ...

    def to_json(self) -> dict[str, Any]:
        """All that `from_json` needs, with the modality's name under `kind`."""
        ...


@dataclass(frozen=True)
class ImageEncoding:
    """Pixels to [-1, 1] and back: encode(p) = p / 127.5 - 1 for uint8; float images are in [-1, 1] already.

    Networks halve images twice, so a height or width that is no multiple of 4 is padded with its outermost pixels, and
    cut back by `decode`.

    Attributes:
        shape: (channels, height, width) of one image.
        form: how the source held images, and the range of values that became [-1, 1]; new images are read alike.
    """

    shape: tuple[int, ...]
    form: ImageForm = PIXELS

    @property
    def layout(self) -> Layout:
        channels, *sides = self.shape
        return Layout(Kind.IMAGE, (channels, *(side + sum(_margins(side)) for side in sides)))

    def encode(self, x: np.ndarray) -> np.ndarray:
        """float32 (n, *layout.shape) in [-1, 1]."""
        _check_shape(x, self.shape)
        if x.dtype not in (np.float32, np.uint8):
            raise DataError(f"images to encode must be uint8 or float32, but came as {x.dtype}")
        if self.layout.shape != self.shape:
            x = np.pad(x, ((0, 0), (0, 0), *(_margins(side) for side in self.shape[1:])), mode="edge")
        return bytes_as_floats(x)

    def decode(self, x: np.ndarray) -> np.ndarray:
        """uint8 (n, *shape), rounded; values outside [-1, 1] are clipped."""
        _check_shape(x, self.layout.shape)
        if self.layout.shape != self.shape:
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
    """Pixels to add before and after, up to the next multiple of 4."""
    missing = -side % SIDE_MULTIPLE
    return missing // 2, missing - missing // 2


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
    def layout(self) -> Layout:
        return Layout(Kind.VECTOR, self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.mean),)

    def encode(self, x: np.ndarray) -> np.ndarray:
        """float32 (n, features), of mean 0 and standard deviation 1 over the training rows."""
        _check_shape(x, self.shape)
        with np.errstate(over="ignore"):  # a number beyond float32 is infinite, and told where it is used
            return ((x - self.mean) / self.scale).astype(np.float32)

    def decode(self, x: np.ndarray) -> np.ndarray:
        """float32 (n, features), in the units of the source."""
        _check_shape(x, self.shape)
        return (x * self.scale + self.mean).astype(np.float32)

    def items(self, x: np.ndarray) -> np.ndarray:
        """x itself."""
        return x

    def to_json(self) -> dict[str, Any]:
        return {"kind": Kind.VECTOR.value, "mean": self.mean.tolist(), "scale": self.scale.tolist()}


@dataclass(frozen=True)
class Codec:
    """How the encoding of one modality is made, and read again.

    Attributes:
        fit: data set and training rows -> encoding; it looks at no other row.
        read: what `to_json` gave -> encoding; a KeyError, TypeError or ValueError means that it is damaged.
    """

    fit: Callable[[Dataset, np.ndarray], Encoding]
    read: Callable[[dict[str, Any]], Encoding]


def register_encoding(kind: str, codec: Codec) -> None:
    """Let data sets of `kind` be encoded by `codec`; a kind that is taken is refused."""
    if kind in _CODECS:
        raise DataError(f"a modality must have a name of its own, but {kind!r} is taken: choose another")
    _CODECS[kind] = codec


def fit_encoding(dataset: Dataset, train_indices: np.ndarray) -> Encoding:
    """The encoding of `dataset`, measured on the rows `train_indices` alone: labelled and unlabelled, none held out."""
    return _codec(dataset.kind).fit(dataset, train_indices)


def from_json(value: dict[str, Any]) -> Encoding:
    """The encoding that `to_json` described."""
    try:
        return _codec(value["kind"]).read(value)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise DataError(f"a stored encoding is damaged or of a later version ({error!r})") from None


def _codec(kind: str) -> Codec:
    if kind not in _CODECS:
        for point in entry_points(group=ENTRY_POINTS, name=kind):
            point.load()()  # it calls register_modality
    if kind not in _CODECS:
        raise DataError(f"no modality {kind!r} is registered, only {', '.join(sorted(_CODECS))}: register it first")
    found = _CODECS[kind]
    if isinstance(found, str):
        codec: Codec = import_module(found).CODEC
        return codec
    return found


def _fit_image(dataset: Dataset, rows: np.ndarray) -> Encoding:
    return ImageEncoding(dataset.shape, dataset.about or PIXELS)


def _read_image(value: dict[str, Any]) -> Encoding:
    shape = tuple(int(side) for side in value["shape"])
    if len(shape) != 3 or not all(1 <= side <= MOST_SIDE for side in shape):
        raise ValueError(f"no image has the shape {shape}")
    return ImageEncoding(shape, ImageForm.from_json(value["form"]) if "form" in value else PIXELS)


def _fit_vector(dataset: Dataset, rows: np.ndarray) -> Encoding:
    if len(rows) == 0:
        raise DataError("mean and scale need at least one training row, but there is none")
    x = dataset.train.x[rows]
    scale = x.std(axis=0, dtype=np.float64)
    scale[x.max(axis=0) == x.min(axis=0)] = 1.0  # by comparison: rounding leaves a constant column a tiny deviation
    scale[scale < SMALLEST_SCALE] = 1.0
    return VectorEncoding(x.mean(axis=0, dtype=np.float64), scale)


def _read_vector(value: dict[str, Any]) -> Encoding:
    mean, scale = np.asarray(value["mean"], dtype=np.float64), np.asarray(value["scale"], dtype=np.float64)
    if mean.ndim != 1 or mean.shape != scale.shape or not np.isfinite(mean).all() or not (scale > 0).all():
        raise ValueError("mean and scale must be finite, positive where they divide, and of one length")
    return VectorEncoding(mean, scale)


# Modules hold theirs as `CODEC`, imported when it is first needed.
_CODECS: dict[str, Codec | str] = {
    Kind.IMAGE: Codec(_fit_image, _read_image),
    Kind.VECTOR: Codec(_fit_vector, _read_vector),
    Kind.TABLE: "synthsieve.data.table_encoding",
    Kind.SOUND: "synthsieve.data.sound_encoding",
    Kind.TEXT: "synthsieve.data.text_encoding",
}


def _check_shape(x: np.ndarray, shape: tuple[int, ...]) -> None:
    if x.shape[1:] != shape:
        raise DataError(f"examples must have shape {tuple(shape)} each, but came with {x.shape[1:]}")
