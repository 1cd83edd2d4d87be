"""From a waveform to its log-mel spectrogram, and back by Griffin and Lim's iteration; numpy and scipy alone.

mel(f) = 2595 log10(1 + f / 700). Bands are triangles of height 1 over mel, so that neighbours add up to 1.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import fft

from synthsieve.data.sound_format import SoundFormat
from synthsieve.errors import DataError

ITERATIONS = 60
MOMENTUM = 0.9  # of the fast Griffin-Lim iteration (Perraudin 2013)
SPREADINGS = 30  # multiplicative updates from bands to bins
PEAK = 0.9  # of a waveform made from a spectrogram, which does not say how loud it was
TINY = 1e-12
MOST_STRETCH = 3  # a longer sound loses its ends first: frames too far apart would pass over what lies between them


def mel_of_hertz(hertz: np.ndarray | float) -> np.ndarray:
    """2595 log10(1 + f / 700)."""
    return 2595.0 * np.log10(1.0 + np.asarray(hertz, dtype=np.float64) / 700.0)


def hertz_of_mel(mel: np.ndarray | float) -> np.ndarray:
    """700 (10^(m / 2595) - 1)."""
    return 700.0 * (10.0 ** (np.asarray(mel, dtype=np.float64) / 2595.0) - 1.0)


def centre_frequencies(form: SoundFormat) -> np.ndarray:
    """The peak of each band in Hz, evenly spaced in mel between low and high. float64 (mels,)."""
    edges = np.linspace(mel_of_hertz(form.low), mel_of_hertz(form.high), form.mels + 2)
    return hertz_of_mel(edges[1:-1])


@lru_cache(maxsize=8)
def mel_filterbank(form: SoundFormat) -> np.ndarray:
    """How much of each frequency bin each band takes: max(0, 1 - |mel(f) - centre| / spacing). float64 (mels, bins).

    bins = n_fft / 2 + 1, at k rate / n_fft Hz. A band between two bins, which would hear nothing, is refused.
    """
    mel = mel_of_hertz(np.arange(form.n_fft // 2 + 1) * form.rate / form.n_fft)
    spacing = (mel_of_hertz(form.high) - mel_of_hertz(form.low)) / (form.mels + 1)
    centres = mel_of_hertz(form.low) + spacing * np.arange(1, form.mels + 1)
    bank: np.ndarray = np.maximum(0.0, 1.0 - np.abs(mel[None] - centres[:, None]) / spacing)
    if not bank.any(axis=1).all():
        deaf = int(np.flatnonzero(~bank.any(axis=1))[0])
        raise DataError(
            f"a sound format of {form.mels} mels needs a longer n_fft than {form.n_fft}: band {deaf} at"
            f" {centre_frequencies(form)[deaf]:.0f} Hz lies between two of its frequencies"
        )
    bank.setflags(write=False)
    return bank


def log_mel(waveform: np.ndarray, form: SoundFormat) -> np.ndarray:
    """The spectrogram of one waveform (samples,), its quiet ends cut off: float32 (mels, frames).

    10 log10(power / largest power), no lower than `floor`. Frame t is centred at (t + 1/2) / frames of the sound.
    """
    sound = trimmed(np.asarray(waveform, dtype=np.float64), form)
    if not form.stretch or len(sound) > MOST_STRETCH * form.samples:
        sound = centred(sound, MOST_STRETCH * form.samples if form.stretch else form.samples)
    power = mel_filterbank(form) @ _power(sound, form).T  # (mels, bins) (bins, frames)
    loudest = power.max()
    if loudest <= 0 or not np.isfinite(loudest):
        return np.full((form.mels, form.frames), form.floor, dtype=np.float32)
    lowest = 10.0 ** (form.floor / 10)
    decibels: np.ndarray = 10.0 * np.log10(np.maximum(power / loudest, lowest))
    return decibels.astype(np.float32)


def trimmed(waveform: np.ndarray, form: SoundFormat) -> np.ndarray:
    """The waveform from its first to its last hop that is less than `trim` decibels under its loudest hop."""
    if form.trim is None or len(waveform) < form.hop:
        return waveform
    hops = waveform[: len(waveform) // form.hop * form.hop].reshape(-1, form.hop)
    energy = np.square(hops).mean(axis=1)
    loud = np.flatnonzero(energy > energy.max() * 10.0 ** (-form.trim / 10))
    if not len(loud):  # silence
        return waveform
    last = len(waveform) if loud[-1] + 1 == len(hops) else (loud[-1] + 1) * form.hop
    return waveform[loud[0] * form.hop : last]


def centred(waveform: np.ndarray, samples: int) -> np.ndarray:
    """The middle `samples` of a longer waveform, or a shorter one between two stretches of silence. (samples,)."""
    extra = len(waveform) - samples
    if extra >= 0:
        return waveform[extra // 2 : extra // 2 + samples]
    return np.pad(waveform, (-extra // 2, -extra - -extra // 2))


def griffin_lim(decibels: np.ndarray, form: SoundFormat, *, iterations: int = ITERATIONS) -> np.ndarray:
    """Waveforms whose spectrograms are near the given ones (n, mels, frames): float32 (n, samples), peak 0.9.

    Phases start as those of steady tones, and are made consistent by Griffin and Lim's iteration: no chance is in it,
    and silence comes back as silence.
    """
    lowest = 10.0 ** (form.floor / 10)
    power = np.maximum(10.0 ** (np.minimum(decibels, 20.0).astype(np.float64) / 10) - lowest, 0.0)
    magnitude = np.sqrt(_bins_of_bands(power, form)).astype(np.float32)  # (n, frames, bins)
    waveforms = _with_consistent_phase(magnitude, form, iterations)
    peak = np.abs(waveforms).max(axis=1, keepdims=True)
    return np.divide(PEAK * waveforms, peak, out=np.zeros_like(waveforms), where=peak > TINY)


def _bins_of_bands(power: np.ndarray, form: SoundFormat) -> np.ndarray:
    """Power in frequency bins whose bands are those given: (n, mels, frames) -> (n, frames, bins).

    Non-negative least squares by multiplicative updates, S <- S * (W' M) / (W' W S), from an even share of each band.
    """
    bank = mel_filterbank(form)
    bands = power.transpose(0, 2, 1)  # (n, frames, mels)
    spread = (bands / bank.sum(axis=1)) @ bank
    wanted, square = bands @ bank, bank.T @ bank
    for _ in range(SPREADINGS):
        spread *= wanted / (spread @ square + TINY)
    return spread


def _with_consistent_phase(magnitude: np.ndarray, form: SoundFormat, iterations: int) -> np.ndarray:
    """(n, frames, bins) -> float32 (n, samples): the phase of a real signal, found by going there and back."""
    frame, bin_ = np.arange(form.frames)[:, None], np.arange(form.n_fft // 2 + 1)[None]
    start = 2 * np.pi * form.hop * frame * bin_ / form.n_fft + np.pi * np.square(bin_) / bin_.size
    spectrum = magnitude * np.exp(1j * start).astype(np.complex64)
    before = np.zeros((), dtype=np.complex64)
    for _ in range(iterations):
        consistent = _spectrum(_waveform(spectrum, form), form)
        ahead = consistent + MOMENTUM * (consistent - before)
        before = consistent
        spectrum = magnitude * (ahead / np.maximum(np.abs(ahead), np.float32(TINY)))
    return _waveform(spectrum, form)


def _power(sound: np.ndarray, form: SoundFormat) -> np.ndarray:
    """|FFT|^2 under `frames` windows evenly spread over a sound of any length: (length,) -> (frames, bins)."""
    centres = (np.arange(form.frames) + 0.5) * len(sound) / form.frames
    padded = np.pad(sound, form.n_fft // 2)
    windows = padded[np.floor(centres).astype(np.int64)[:, None] + np.arange(form.n_fft)]
    spectrum = fft.rfft(windows * _window(form), axis=-1)
    power: np.ndarray = np.square(spectrum.real) + np.square(spectrum.imag)
    return power


def _spectrum(waveforms: np.ndarray, form: SoundFormat) -> np.ndarray:
    """The short-time Fourier transform at steps of `hop`: (n, samples) -> complex (n, frames, bins)."""
    edge = form.n_fft - form.hop
    padded = np.pad(waveforms, ((0, 0), (edge // 2, edge - edge // 2)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, form.n_fft, axis=1)[:, :: form.hop]
    spectrum: np.ndarray = fft.rfft(windows * _window(form).astype(waveforms.dtype), axis=-1)
    return spectrum


def _waveform(spectrum: np.ndarray, form: SoundFormat) -> np.ndarray:
    """The signal whose transform is nearest: complex (n, frames, bins) -> (n, samples)."""
    window = _window(form)
    frames = fft.irfft(spectrum, n=form.n_fft, axis=-1)
    frames *= window.astype(frames.dtype)
    edge = form.n_fft - form.hop
    signal = np.zeros((len(spectrum), form.samples + edge), dtype=frames.dtype)
    weight = np.zeros(form.samples + edge)
    for t in range(form.frames):
        place = slice(t * form.hop, t * form.hop + form.n_fft)
        signal[:, place] += frames[:, t]
        weight[place] += np.square(window)
    kept = slice(edge // 2, edge // 2 + form.samples)
    return signal[:, kept] / np.maximum(weight[kept], 1e-3).astype(frames.dtype)


@lru_cache(maxsize=8)
def _window(form: SoundFormat) -> np.ndarray:
    """Hann's, periodic. float64 (n_fft,)."""
    window: np.ndarray = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(form.n_fft) / form.n_fft)
    window.setflags(write=False)
    return window
