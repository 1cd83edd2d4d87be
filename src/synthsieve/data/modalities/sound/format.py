"""The parameters of a spectrogram, and waveforms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from synthsieve.errors import DataError

MAX_RATE = 384_000
MAX_SIDE = 1024
MAX_FFT = 1 << 15
MIN_FFT = 256  # at low rates: with fewer frequencies some bands would be empty


@dataclass(frozen=True)
class SoundFormat:
    """A log-mel spectrogram (mels, frames) of `seconds`, in decibels relative to its maximum.

    Attributes:
        rate: samples per second.
        n_fft: samples of one window, even.
        hop: samples from one frame to the next, at most n_fft / 2; frame t is centred at sample (t + 1/2) hop.
        mels, frames: number of bands and of time steps, multiples of 4 for convolutional networks.
        low, high: the lowest and the highest frequency, in Hz.
        floor: the minimum, in decibels, below 0; silence is all floor.
        trim: quiet ends are removed if they are this many decibels below the loudest part; None keeps them.
        stretch: a sound of any length fills all frames at its original pitch, so that the speed of speech does not
            matter. Otherwise longer sounds are cropped at both ends, and shorter ones padded with silence.
    """

    rate: int = 8000
    n_fft: int = 512
    hop: int = 136
    mels: int = 24
    frames: int = 24
    low: float = 100.0
    high: float = 3800.0
    floor: float = -50.0
    trim: float | None = 30.0
    stretch: bool = True

    def __post_init__(self) -> None:
        for name, low, high in (
            ("rate", 1, MAX_RATE),
            ("n_fft", 2, MAX_FFT),
            ("hop", 1, self.n_fft // 2),
            ("mels", 4, MAX_SIDE),
            ("frames", 4, MAX_SIDE),
        ):
            value = getattr(self, name)
            multiple = {"n_fft": 2, "mels": 4, "frames": 4}.get(name, 1)
            if not isinstance(value, int) or not low <= value <= high or value % multiple:
                expected = f"an integer from {low} to {high:,}" + f", a multiple of {multiple}" * (multiple > 1)
                raise DataError(f"{name} of a sound format must be {expected}, got {value!r}", code="sound-format")
        if not 0 <= self.low < self.high <= self.rate / 2:
            raise DataError(
                f"a sound format needs 0 <= low < high <= rate / 2, got low={self.low:g}, high={self.high:g},"
                f" rate={self.rate}",
                code="sound-format",
            )
        if not (isfinite(self.floor) and self.floor < 0) or (self.trim is not None and not self.trim > 0):
            raise DataError(
                f"a sound format needs floor < 0 and trim > 0 or None, got floor={self.floor}, trim={self.trim}",
                code="sound-format",
            )

    @property
    def samples(self) -> int:
        """Samples of the waveform that the frames cover."""
        return self.frames * self.hop

    @property
    def seconds(self) -> float:
        return self.samples / self.rate

    @property
    def shape(self) -> tuple[int, int, int]:
        """(1, mels, frames), of one example."""
        return (1, self.mels, self.frames)

    def at_rate(self, rate: int) -> SoundFormat:
        """The same durations and bands at another rate, with frequencies up to half of it."""
        factor = rate / self.rate
        n_fft = max(MIN_FFT, 2 * round(self.n_fft * factor / 2))
        hop = max(1, min(round(self.hop * factor), n_fft // 2))
        return replace(
            self, rate=rate, n_fft=n_fft, hop=hop, low=min(self.low, rate / 80), high=min(self.high, rate / 2)
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> SoundFormat:
        """The format from `to_json`; KeyError, TypeError, ValueError or DataError if it is damaged."""
        fields: dict[str, Any] = {name: int(value[name]) for name in ("rate", "n_fft", "hop", "mels", "frames")}
        fields |= {name: float(value[name]) for name in ("low", "high", "floor")}
        trim = None if value["trim"] is None else float(value["trim"])
        return cls(**fields, trim=trim, stretch=bool(value["stretch"]))


@dataclass(frozen=True)
class Waveforms:
    """Sounds.

    Attributes:
        sounds: float32 arrays of samples in [-1, 1], of any length.
        rate: samples per second.
    """

    sounds: Sequence[np.ndarray]
    rate: int

    def __len__(self) -> int:
        return len(self.sounds)
