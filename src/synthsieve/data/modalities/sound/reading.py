"""Sounds of any source become spectrograms of one format: from audio files, or from waveforms in memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from math import ceil, gcd
from pathlib import Path

import numpy as np
from scipy.signal import resample_poly

from synthsieve.data.checks import check
from synthsieve.data.formats.audio import read_audio, read_header
from synthsieve.data.modalities.sound.format import SoundFormat
from synthsieve.data.modalities.sound.mel import log_mel
from synthsieve.io.progress import NullProgress, Progress

MAX_INFERRED_RATE = 16_000  # faster sounds are resampled: speech and most noises are below 8 kHz
FRAMES = (16, 128)  # the minimum and maximum of an inferred format


def from_files(paths: Sequence[Path], form: SoundFormat, progress: Progress | None = None) -> np.ndarray:
    """The spectrogram of each audio file: float32 (n, 1, mels, frames). One sound is held at a time."""
    progress = progress or NullProgress()
    x = np.empty((len(paths), *form.shape), dtype=np.float32)
    with closing(progress):
        for i, path in enumerate(paths):
            x[i, 0] = log_mel(resampled(*read_audio(path), form.rate), form)
            progress.update(i + 1, len(paths), "sounds read")
    return x


def from_waveforms(waveforms: Sequence[np.ndarray] | np.ndarray, rate: int, form: SoundFormat) -> np.ndarray:
    """The spectrogram of each waveform (samples,) of `rate` samples per second: float32 (n, 1, mels, frames)."""
    x = np.empty((len(waveforms), *form.shape), dtype=np.float32)
    for i, waveform in enumerate(waveforms):
        sound = np.asarray(waveform)
        valid = sound.ndim == 1 and sound.dtype.kind in "fiu" and len(sound) and np.isfinite(sound).all()
        got = f"number {i} is {sound.dtype} {sound.shape}: average its channels, or remove it"
        check(valid, f"a waveform must be finite numbers (samples,), at least one, but {got}", "waveform")
        x[i, 0] = log_mel(resampled(sound, rate, form.rate), form)
    return x


def format_of_files(paths: Sequence[Path]) -> SoundFormat:
    """The format inferred from file headers: the most common rate (at most 16 kHz), the median length."""
    heads = [read_header(path) for path in paths]
    return format_of_lengths([head.seconds for head in heads], [head.rate for head in heads])


def format_of_lengths(seconds: Sequence[float], rates: Sequence[int]) -> SoundFormat:
    """The same from the length in seconds and the rate of each sound."""
    check(len(seconds), "a sound format needs at least one sound", "no-rows")
    values, counts = np.unique(np.asarray(rates), return_counts=True)
    form = SoundFormat().at_rate(min(int(values[np.argmax(counts)]), MAX_INFERRED_RATE))
    wanted = float(np.median(np.asarray(seconds))) * form.rate / form.hop
    frames = int(np.clip(4 * ceil(wanted / 4), *FRAMES))
    return replace(form, frames=frames, high=min(8000.0, form.rate / 2))


def resampled(waveform: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    """The same sound at `wanted` samples per second."""
    if rate == wanted:
        return waveform
    common = gcd(rate, wanted)
    sound: np.ndarray = resample_poly(np.asarray(waveform, dtype=np.float64), wanted // common, rate // common)
    return sound
