"""The parameters of a spectrogram, and waveforms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from synthsieve.data.checks import check

MAX_RATE = 384_000
MAX_SIDE = 1024
MAX_FFT = 1 << 15
MIN_FFT = 256  # at low rates: with fewer frequencies some bands would be empty


@dataclass(frozen=True)
class SoundFormat:
    """A log-mel spectrogram (mels, frames) of `seconds`, in decibels relative to its maximum.

    With `stretch`, a sound of any length fills all frames at its original pitch, so that the speed of speech does not
    matter. Otherwise longer sounds are cropped at both ends, and shorter ones padded with silence.
    """

    rate: int = 8000  # samples per second
    n_fft: int = 512  # samples of one window, even
    hop: int = 136  # samples from one frame to the next, at most n_fft / 2; frame t is centred at (t + 1/2) hop
    mels: int = 24  # number of bands, a multiple of 4 for convolutional networks
    frames: int = 24  # number of time steps, a multiple of 4
    low: float = 100.0  # the lowest frequency, in Hz
    high: float = 3800.0  # the highest
    floor: float = -50.0  # the minimum, in decibels, below 0; silence is all floor
    trim: float | None = 30.0  # quiet ends are removed if they are this many decibels below the loudest part
    stretch: bool = True

    def __post_init__(self) -> None:
        ranges = {"rate": MAX_RATE, "n_fft": MAX_FFT, "hop": self.n_fft // 2, "mels": MAX_SIDE, "frames": MAX_SIDE}
        for name, high in ranges.items():
            value, multiple = getattr(self, name), {"n_fft": 2, "mels": 4, "frames": 4}.get(name, 1)
            valid = isinstance(value, int) and multiple <= value <= high and value % multiple == 0
            expected = f"an integer from {multiple} to {high:,}, a multiple of {multiple}"
            check(valid, f"{name} of a sound format must be {expected}, got {value!r}", "sound-format")
        got = f"low={self.low:g}, high={self.high:g}, rate={self.rate}, floor={self.floor}, trim={self.trim}"
        valid = 0 <= self.low < self.high <= self.rate / 2
        check(valid, f"a sound format needs 0 <= low < high <= rate / 2, got {got}", "sound-format")
        valid = isfinite(self.floor) and self.floor < 0 and (self.trim is None or self.trim > 0)
        check(valid, f"a sound format needs floor < 0 and trim > 0 or None, got {got}", "sound-format")

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
    """Sounds."""

    sounds: Sequence[np.ndarray]  # float32 arrays of samples in [-1, 1], of any length
    rate: int  # samples per second

    def __len__(self) -> int:
        return len(self.sounds)
