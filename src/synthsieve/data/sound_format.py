"""Which spectrogram a sound becomes: every figure that `data.sound` needs, checked once."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any

from synthsieve.errors import DataError

MOST_RATE = 384_000
MOST_SIDE = 1024
MOST_FFT = 1 << 15
LEAST_FFT = 256  # at low rates: fewer frequencies than this would leave bands without any


@dataclass(frozen=True)
class SoundFormat:
    """A log-mel spectrogram (mels, frames) of `seconds`, in decibels under its loudest point.

    Attributes:
        rate: samples a second.
        n_fft: samples under one window.
        hop: samples from one frame to the next; frame t is centred at sample (t + 1/2) hop.
        mels: bands; frames: points in time. Both are multiples of 4, as convolutional networks need.
        low, high: where the first band begins and the last one ends, in Hz.
        floor: the quietest value, in decibels, below 0; silence is all floor.
        trim: a sound's quiet ends are cut off, as far as they lie so many decibels under its loudest part; None keeps
            them.
        stretch: a sound fills all frames, however long it was, at its own pitch: slow and quick speakers then look
            alike. Without it a longer sound loses both ends, and a shorter one gains silence.
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
        for name, most in (("rate", MOST_RATE), ("n_fft", MOST_FFT), ("hop", self.n_fft)):
            _check(name, getattr(self, name), 1, most)
        for name in ("mels", "frames"):
            side = getattr(self, name)
            _check(name, side, 4, MOST_SIDE)
            if side % 4:
                raise DataError(f"a sound format's {name} must be a multiple of 4, but {side} came")
        if self.n_fft % 2 or self.hop > self.n_fft // 2:
            raise DataError(
                f"a sound format's n_fft must be even and at least twice its hop, but {self.n_fft} and {self.hop} came"
            )
        if not 0 <= self.low < self.high <= self.rate / 2:
            raise DataError(
                "a sound format needs 0 <= low < high <= half its rate, but"
                f" low={self.low:g}, high={self.high:g}, rate={self.rate} came"
            )
        if not (isfinite(self.floor) and self.floor < 0) or (self.trim is not None and not self.trim > 0):
            raise DataError(
                f"a sound format needs floor < 0 and trim > 0 or none, but floor={self.floor}, trim={self.trim} came"
            )

    @property
    def samples(self) -> int:
        """Of the waveform that all frames together stand for."""
        return self.frames * self.hop

    @property
    def seconds(self) -> float:
        return self.samples / self.rate

    @property
    def shape(self) -> tuple[int, int, int]:
        """(1, mels, frames): one example as the networks see it."""
        return (1, self.mels, self.frames)

    def at_rate(self, rate: int) -> SoundFormat:
        """The same milliseconds and bands for sounds of another rate; bands above half of it are brought under it."""
        factor = rate / self.rate
        n_fft = max(LEAST_FFT, 2 * round(self.n_fft * factor / 2))
        hop = max(1, min(round(self.hop * factor), n_fft // 2))
        return replace(
            self, rate=rate, n_fft=n_fft, hop=hop, low=min(self.low, rate / 80), high=min(self.high, rate / 2)
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> SoundFormat:
        """What `to_json` gave; a KeyError, TypeError, ValueError or DataError means that it is damaged."""
        return cls(
            rate=int(value["rate"]),
            n_fft=int(value["n_fft"]),
            hop=int(value["hop"]),
            mels=int(value["mels"]),
            frames=int(value["frames"]),
            low=float(value["low"]),
            high=float(value["high"]),
            floor=float(value["floor"]),
            trim=None if value["trim"] is None else float(value["trim"]),
            stretch=bool(value["stretch"]),
        )


def _check(name: str, value: int, least: int, most: int) -> None:
    if not isinstance(value, int) or not least <= value <= most:
        raise DataError(f"a sound format's {name} must be a whole number from {least} to {most:,}, but {value!r} came")
