"""Sounds of any source become spectrograms of one format: from .wav files, or from waveforms in memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from math import ceil, gcd
from pathlib import Path

import numpy as np
from scipy.signal import resample_poly

from synthsieve.data.sound import log_mel
from synthsieve.data.sound_format import SoundFormat
from synthsieve.data.wav import read_header, read_wav
from synthsieve.errors import DataError
from synthsieve.progress import Progress, Silent

HIGHEST_RATE = 16_000  # sounds that came faster are brought down to it: speech and most noises lie under 8 kHz
FRAMES = (16, 128)  # the fewest and the most that a format made to measure has


def from_files(paths: Sequence[Path], form: SoundFormat, progress: Progress | None = None) -> np.ndarray:
    """The spectrogram of each .wav file: float32 (n, 1, mels, frames). One sound is held at a time."""
    progress = progress or Silent()
    x = np.empty((len(paths), *form.shape), dtype=np.float32)
    with closing(progress):
        for i, path in enumerate(paths):
            x[i, 0] = log_mel(resampled(*read_wav(path), form.rate), form)
            progress.update(i + 1, len(paths), "sounds read")
    return x


def from_waveforms(waveforms: Sequence[np.ndarray] | np.ndarray, rate: int, form: SoundFormat) -> np.ndarray:
    """The spectrogram of each waveform (samples,) of `rate` samples a second: float32 (n, 1, mels, frames)."""
    x = np.empty((len(waveforms), *form.shape), dtype=np.float32)
    for i, waveform in enumerate(waveforms):
        sound = np.asarray(waveform)
        if sound.ndim != 1 or sound.dtype.kind not in "fiu" or not len(sound) or not np.isfinite(sound).all():
            raise DataError(
                f"a waveform must be finite numbers (samples,), at least one, but number {i} came as {sound.dtype}"
                f" {sound.shape}: take the mean of its channels, and leave out what is empty or not finite"
            )
        x[i, 0] = log_mel(resampled(sound, rate, form.rate), form)
    return x


def format_of_files(paths: Sequence[Path]) -> SoundFormat:
    """A format made to measure, from headers alone: the commonest rate (16 kHz at most), the middle length."""
    heads = [read_header(path) for path in paths]
    return format_of_lengths([head.seconds for head in heads], [head.rate for head in heads])


def format_of_lengths(seconds: Sequence[float], rates: Sequence[int]) -> SoundFormat:
    """The same for lengths in seconds and rates that are known, one of each a sound."""
    if not len(seconds):
        raise DataError("a sound format needs at least one sound, but none came")
    values, counts = np.unique(np.asarray(rates), return_counts=True)
    plain = SoundFormat().at_rate(min(int(values[np.argmax(counts)]), HIGHEST_RATE))
    wanted = float(np.median(np.asarray(seconds))) * plain.rate / plain.hop
    frames = int(np.clip(4 * ceil(wanted / 4), *FRAMES))
    return SoundFormat(**{**plain.to_json(), "frames": frames, "high": min(8000.0, plain.rate / 2)})


def resampled(waveform: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    """The same sound at `wanted` samples a second."""
    if rate == wanted:
        return waveform
    common = gcd(rate, wanted)
    sound: np.ndarray = resample_poly(np.asarray(waveform, dtype=np.float64), wanted // common, rate // common)
    return sound
