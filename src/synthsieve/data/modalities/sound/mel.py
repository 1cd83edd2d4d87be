"""Log-mel spectrograms of waveforms, and waveforms from spectrograms by the Griffin-Lim iteration.

mel(f) = 2595 log10(1 + f / 700). Bands are triangles of height 1 over mel, so that neighbours add up to 1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.signal import get_window

from synthsieve.data.checks import check
from synthsieve.data.modalities.sound.format import SoundFormat

ITERATIONS = 60
MOMENTUM = 0.9
NNLS_UPDATES = 30
PEAK = 0.9  # of generated waveforms: a spectrogram is relative, without a loudness
EPSILON = 1e-12
MAX_STRETCH = 3  # a longer sound is cropped first, so that its frames do not lie too far apart


def mel_of_hertz(hertz: np.ndarray | float) -> np.ndarray:
    """2595 log10(1 + f / 700)."""
    return 2595.0 * np.log10(1.0 + np.asarray(hertz, dtype=np.float64) / 700.0)


def hertz_of_mel(mel: np.ndarray | float) -> np.ndarray:
    """700 (10^(m / 2595) - 1)."""
    return 700.0 * (10.0 ** (np.asarray(mel, dtype=np.float64) / 2595.0) - 1.0)


def centre_frequencies(form: SoundFormat) -> np.ndarray:
    """The centre of each band in Hz, evenly spaced in mel between low and high. float64 (mels,)."""
    edges = np.linspace(mel_of_hertz(form.low), mel_of_hertz(form.high), form.mels + 2)
    return hertz_of_mel(edges[1:-1])


@lru_cache(maxsize=8)
def mel_filterbank(form: SoundFormat) -> np.ndarray:
    """The weight of each frequency bin in each band: max(0, 1 - |mel(f) - centre| / spacing). float64 (mels, bins).

    bins = n_fft / 2 + 1, at k rate / n_fft Hz. Raises if a band lies between two bins and would be empty.
    """
    mel = mel_of_hertz(np.arange(form.n_fft // 2 + 1) * form.rate / form.n_fft)
    spacing = (mel_of_hertz(form.high) - mel_of_hertz(form.low)) / (form.mels + 1)
    centres = mel_of_hertz(form.low) + spacing * np.arange(1, form.mels + 1)
    bank: np.ndarray = np.maximum(0.0, 1.0 - np.abs(mel[None] - centres[:, None]) / spacing)
    band = int(bank.any(axis=1).argmin())
    where = f"band {band} at {centre_frequencies(form)[band]:.0f} Hz lies between two frequency bins"
    problem = f"a sound format with {form.mels} mels needs a larger n_fft than {form.n_fft}: {where}"
    check(bank[band].any(), problem, "sound-format")
    bank.setflags(write=False)
    return bank


def log_mel(waveform: np.ndarray, form: SoundFormat) -> np.ndarray:
    """The spectrogram of one waveform (samples,) without its quiet ends: float32 (mels, frames).

    10 log10(power / largest power), no lower than `floor`. Frame t is centred at (t + 1/2) / frames of the sound.
    """
    sound = trimmed(np.asarray(waveform, dtype=np.float64), form)
    if not form.stretch or len(sound) > MAX_STRETCH * form.samples:
        sound = centred(sound, MAX_STRETCH * form.samples if form.stretch else form.samples)
    power = mel_filterbank(form) @ _power(sound, form).T  # (mels, bins) (bins, frames)
    loudest = power.max()
    if loudest <= 0 or not np.isfinite(loudest):
        return np.full((form.mels, form.frames), form.floor, dtype=np.float32)
    lowest = 10.0 ** (form.floor / 10)
    decibels: np.ndarray = 10.0 * np.log10(np.maximum(power / loudest, lowest))
    return decibels.astype(np.float32)


def trimmed(waveform: np.ndarray, form: SoundFormat) -> np.ndarray:
    """The waveform from its first to its last hop that is less than `trim` decibels below the loudest hop."""
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
    """A waveform cropped at both ends, or padded with silence, to (samples,)."""
    extra = len(waveform) - samples
    if extra >= 0:
        return waveform[extra // 2 : extra // 2 + samples]
    return np.pad(waveform, (-extra // 2, -extra - -extra // 2))


def griffin_lim(decibels: np.ndarray, form: SoundFormat, *, iterations: int = ITERATIONS) -> np.ndarray:
    """Waveforms whose spectrograms are near the given ones (n, mels, frames): float32 (n, samples), peak 0.9.

    Phases start as those of steady tones, so the result is deterministic; silence stays silence.
    """
    lowest = 10.0 ** (form.floor / 10)
    power = np.maximum(10.0 ** (np.minimum(decibels, 20.0).astype(np.float64) / 10) - lowest, 0.0)
    magnitude = np.sqrt(_bins_of_bands(power, form)).astype(np.float32)  # (n, frames, bins)
    waveforms = _waveform_of_magnitude(magnitude, form, iterations)
    peak = np.abs(waveforms).max(axis=1, keepdims=True)
    return np.divide(PEAK * waveforms, peak, out=np.zeros_like(waveforms), where=peak > EPSILON)


def _bins_of_bands(power: np.ndarray, form: SoundFormat) -> np.ndarray:
    """Power in frequency bins that gives these bands: (n, mels, frames) -> (n, frames, bins).

    Non-negative least squares by multiplicative updates, S <- S * (W' M) / (W' W S).
    """
    bank = mel_filterbank(form)
    bands = power.transpose(0, 2, 1)  # (n, frames, mels)
    spread = (bands / bank.sum(axis=1)) @ bank
    wanted, square = bands @ bank, bank.T @ bank
    for _ in range(NNLS_UPDATES):
        spread *= wanted / (spread @ square + EPSILON)
    return spread


def _waveform_of_magnitude(magnitude: np.ndarray, form: SoundFormat, iterations: int) -> np.ndarray:
    """(n, frames, bins) -> float32 (n, samples), by the fast Griffin-Lim iteration (Perraudin 2013)."""
    import torch
    from torch.nn import functional

    frame, bin_ = torch.arange(form.frames), torch.arange(form.n_fft // 2 + 1)[:, None]
    phase = 2 * torch.pi * (form.hop * frame * bin_ / form.n_fft + 0.5 * bin_.square() / len(bin_))
    # A silent frame on either side: istft, which starts and ends at the centre of a frame, then covers all samples.
    target, phase = (functional.pad(t, (1, 1)) for t in (torch.from_numpy(magnitude).mT, phase))
    window = torch.from_numpy(_window(form)).float()
    stft: dict[str, Any] = {"n_fft": form.n_fft, "hop_length": form.hop, "window": window}
    spectrum, previous = torch.polar(target, phase.float().expand_as(target)), torch.zeros(())
    for _ in range(iterations):
        waveform = torch.istft(spectrum, **stft)
        consistent = torch.stft(waveform, **stft, pad_mode="constant", return_complex=True)
        ahead = consistent + MOMENTUM * (consistent - previous)
        spectrum, previous = target * torch.sgn(ahead), consistent
    waveform = torch.istft(spectrum, **stft)
    return waveform[:, form.hop // 2 : form.hop // 2 + form.samples].numpy()


def _power(sound: np.ndarray, form: SoundFormat) -> np.ndarray:
    """|FFT|^2 of `frames` windows, evenly spread over a sound of any length: (length,) -> (frames, bins)."""
    centres = (np.arange(form.frames) + 0.5) * len(sound) / form.frames
    padded = np.pad(sound, form.n_fft // 2)
    windows = padded[np.floor(centres).astype(np.int64)[:, None] + np.arange(form.n_fft)]
    spectrum = np.fft.rfft(windows * _window(form), axis=-1)
    power: np.ndarray = np.square(spectrum.real) + np.square(spectrum.imag)
    return power


@lru_cache(maxsize=8)
def _window(form: SoundFormat) -> np.ndarray:
    """A periodic Hann window, float64 (n_fft,)."""
    window: np.ndarray = get_window("hann", form.n_fft)
    return window
