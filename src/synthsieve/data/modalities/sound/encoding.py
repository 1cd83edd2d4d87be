"""The encoding of spectrograms: each mel band is centred, and all are divided by one scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.data.checks import check
from synthsieve.data.dataset import Dataset, InputSpec, Kind
from synthsieve.data.modalities.encoding import Codec, Encoding, check_rows, check_shape
from synthsieve.data.modalities.sound.format import SoundFormat, Waveforms
from synthsieve.data.modalities.sound.mel import griffin_lim

BLOCK = 100  # sounds per call of griffin_lim: some ten megabytes


@dataclass(frozen=True, eq=False)
class SoundEncoding:
    """encode(x) = (x - mean of its band) / scale."""

    form: SoundFormat
    mean: np.ndarray  # float64 (mels,), decibels; of the training rows
    scale: float  # the standard deviation from it over all bands and frames; 1 if there is none

    @property
    def input_spec(self) -> InputSpec:
        return InputSpec(Kind.SOUND, self.form.shape)

    def encode(self, x: np.ndarray) -> np.ndarray:
        """float32 (n, 1, mels, frames), with mean 0 in every band and mean square 1 over the training rows."""
        check_shape(x, self.form.shape)
        return ((x - self.mean[:, None]) / self.scale).astype(np.float32)

    def decode(self, x: np.ndarray) -> np.ndarray:
        """float32 (n, 1, mels, frames), decibels from the floor to 0."""
        check_shape(x, self.form.shape)
        decibels = x * self.scale + self.mean[:, None]
        return np.clip(decibels, self.form.floor, 0.0).astype(np.float32)

    def items(self, x: np.ndarray) -> Waveforms:
        """Waveforms by `griffin_lim`."""
        check_shape(x, self.form.shape)
        blocks = [griffin_lim(x[start : start + BLOCK, 0], self.form) for start in range(0, len(x), BLOCK)]
        return Waveforms([sound for block in blocks for sound in block], self.form.rate)

    def to_json(self) -> dict[str, Any]:
        numbers = {"mean": self.mean.tolist(), "scale": self.scale}
        return {"kind": Kind.SOUND.value, "form": self.form.to_json(), **numbers}


def _fit(dataset: Dataset, rows: np.ndarray) -> Encoding:
    problem = f"{dataset.name}: `metadata` must be a SoundFormat, got {dataset.metadata!r}"
    check(isinstance(dataset.metadata, SoundFormat), problem, "no-sound-format")
    check_rows(rows)
    x = dataset.train.x[rows]
    check_shape(x, dataset.metadata.shape)
    mean = x.mean(axis=(0, 1, 3), dtype=np.float64)
    variance = np.square(x - mean[:, None]).mean(dtype=np.float64)
    return SoundEncoding(dataset.metadata, mean, float(np.sqrt(variance)) if variance > 1e-12 else 1.0)


def _read(value: dict[str, Any]) -> Encoding:
    form = SoundFormat.from_json(value["form"])
    mean, scale = np.asarray(value["mean"], dtype=np.float64), float(value["scale"])
    if mean.shape != (form.mels,) or not np.isfinite(mean).all() or not 0 < scale < np.inf:
        raise ValueError("mean must be finite, one for each band, and scale positive")
    return SoundEncoding(form, mean, scale)


CODEC = Codec(_fit, _read)
