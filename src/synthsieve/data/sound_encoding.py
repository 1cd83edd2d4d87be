"""Spectrograms for a network and back: each mel band about its mean, all on one scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.data.encoding import Codec, Encoding
from synthsieve.data.sound import griffin_lim
from synthsieve.data.sound_format import SoundFormat
from synthsieve.errors import DataError
from synthsieve.layout import Layout
from synthsieve.waveforms import Waveforms

BLOCK = 100  # sounds made audible at a time: some ten megabytes


@dataclass(frozen=True, eq=False)
class SoundEncoding:
    """encode(x) = (x - mean of its band) / scale.

    Attributes:
        form: what the spectrograms are.
        mean: float64 (mels,), decibels; of the training rows.
        scale: the deviation from it over all bands and frames; 1 where there is none.
    """

    form: SoundFormat
    mean: np.ndarray
    scale: float

    @property
    def layout(self) -> Layout:
        return Layout(Kind.SOUND, self.form.shape)

    def encode(self, x: np.ndarray) -> np.ndarray:
        """float32 (n, 1, mels, frames), of mean 0 in every band and mean square 1 over the training rows."""
        _check_shape(x, self.form)
        return ((x - self.mean[:, None]) / self.scale).astype(np.float32)

    def decode(self, x: np.ndarray) -> np.ndarray:
        """float32 (n, 1, mels, frames), decibels from the floor to 0."""
        _check_shape(x, self.form)
        decibels = x * self.scale + self.mean[:, None]
        return np.clip(decibels, self.form.floor, 0.0).astype(np.float32)

    def items(self, x: np.ndarray) -> Waveforms:
        """Sounds that can be played."""
        _check_shape(x, self.form)
        blocks = [griffin_lim(x[start : start + BLOCK, 0], self.form) for start in range(0, len(x), BLOCK)]
        return Waveforms([sound for block in blocks for sound in block], self.form.rate)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": Kind.SOUND.value,
            "form": self.form.to_json(),
            "mean": self.mean.tolist(),
            "scale": self.scale,
        }


def _fit(dataset: Dataset, rows: np.ndarray) -> Encoding:
    if not isinstance(dataset.about, SoundFormat):
        raise DataError(f"{dataset.name}: sounds need a SoundFormat as `about`, but {dataset.about!r} came")
    if len(rows) == 0:
        raise DataError("mean and scale need at least one training row, but there is none")
    x = dataset.train.x[rows]
    _check_shape(x, dataset.about)
    mean = x.mean(axis=(0, 1, 3), dtype=np.float64)
    variance = np.square(x - mean[:, None]).mean(dtype=np.float64)
    return SoundEncoding(dataset.about, mean, float(np.sqrt(variance)) if variance > 1e-12 else 1.0)


def _read(value: dict[str, Any]) -> Encoding:
    form = SoundFormat.from_json(value["form"])
    mean, scale = np.asarray(value["mean"], dtype=np.float64), float(value["scale"])
    if mean.shape != (form.mels,) or not np.isfinite(mean).all() or not 0 < scale < np.inf:
        raise ValueError("mean must be finite, one for each band, and scale positive")
    return SoundEncoding(form, mean, scale)


def _check_shape(x: np.ndarray, form: SoundFormat) -> None:
    if x.shape[1:] != form.shape:
        raise DataError(f"spectrograms must have shape (n, {', '.join(map(str, form.shape))}), but came with {x.shape}")


CODEC = Codec(_fit, _read)
