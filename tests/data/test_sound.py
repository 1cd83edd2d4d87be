"""Spectrograms against closed forms, and waveforms reconstructed from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from synthsieve.data.modalities.sound import mel
from synthsieve.data.modalities.sound.format import SoundFormat
from synthsieve.errors import DataError
from tests.errors import raises

FORM = SoundFormat()


def sine(hertz: float, form: SoundFormat = FORM, seconds: float | None = None) -> np.ndarray:
    time = np.arange(round(form.rate * (seconds or form.seconds))) / form.rate
    return np.sin(2 * np.pi * hertz * time)


def test_mel_scale() -> None:
    hertz = np.linspace(0, 8000, 50)
    np.testing.assert_allclose(mel.hertz_of_mel(mel.mel_of_hertz(hertz)), hertz, atol=1e-9)
    assert mel.mel_of_hertz(700.0) == pytest.approx(2595 * np.log10(2))


def test_bands_add_up_to_one() -> None:
    bank = mel.mel_filterbank(FORM)
    centres = mel.centre_frequencies(FORM)
    hertz = np.arange(FORM.n_fft // 2 + 1) * FORM.rate / FORM.n_fft
    between = (hertz >= centres[0]) & (hertz <= centres[-1])
    np.testing.assert_allclose(bank.sum(axis=0)[between], 1, atol=1e-12)
    assert (bank[:, (hertz <= FORM.low) | (hertz >= FORM.high)] < 1e-12).all()
    assert ((bank > 0).sum(axis=0) <= 2).all()


def test_bands_peak_at_their_centres() -> None:
    fine = replace(FORM, n_fft=8192)
    hertz = np.arange(fine.n_fft // 2 + 1) * fine.rate / fine.n_fft
    peaks = hertz[mel.mel_filterbank(fine).argmax(axis=1)]
    np.testing.assert_allclose(peaks, mel.centre_frequencies(fine), atol=fine.rate / fine.n_fft)
    spacing = np.diff(mel.mel_of_hertz(mel.centre_frequencies(fine)))
    np.testing.assert_allclose(spacing, spacing[0])


def test_empty_bands() -> None:
    with raises(DataError, "sound-format"):
        mel.mel_filterbank(replace(FORM, n_fft=128, hop=64, mels=128))


def test_power_satisfies_parseval() -> None:
    """Sum over all bins of |FFT|^2 = n_fft x sum of the windowed squares, counting both sides of the spectrum."""
    waveform = np.random.default_rng(0).normal(size=FORM.samples)
    power = mel._power(waveform, FORM)
    both_sides = 2 * power.sum(axis=1) - power[:, 0] - power[:, -1]
    edge = FORM.n_fft - FORM.hop
    padded = np.pad(waveform, (edge // 2, edge - edge // 2))
    window = np.hanning(FORM.n_fft + 1)[:-1]
    for t in (0, 7, FORM.frames - 1):
        piece = padded[t * FORM.hop : t * FORM.hop + FORM.n_fft] * window
        assert both_sides[t] == pytest.approx(FORM.n_fft * np.square(piece).sum())


@pytest.mark.parametrize("hertz", [200, 440, 1000, 2500])
def test_a_tone_is_loudest_in_the_nearest_band(hertz: float) -> None:
    spectrogram = mel.log_mel(sine(hertz), FORM)
    assert spectrogram.shape == (FORM.mels, FORM.frames)
    assert spectrogram.dtype == np.float32
    nearest = np.abs(mel.mel_of_hertz(mel.centre_frequencies(FORM)) - mel.mel_of_hertz(hertz)).argmin()
    assert abs(int(spectrogram[:, FORM.frames // 2].argmax()) - int(nearest)) <= 1


def test_spectrograms_are_relative() -> None:
    waveform = np.random.default_rng(2).normal(size=FORM.samples)
    quiet, loud = mel.log_mel(1e-3 * waveform, FORM), mel.log_mel(waveform, FORM)
    np.testing.assert_allclose(quiet, loud, atol=1e-3)
    assert loud.max() == 0
    assert loud.min() >= FORM.floor


def test_silence() -> None:
    silent = mel.log_mel(np.zeros(100), FORM)
    assert (silent == FORM.floor).all()
    assert not mel.griffin_lim(silent[None], FORM, iterations=2).any()


def test_quiet_ends_are_trimmed() -> None:
    middle = sine(500, seconds=0.3)
    silence = np.zeros(FORM.hop * 20)
    alone = mel.log_mel(middle, FORM)
    around = np.concatenate([silence, middle, silence])
    np.testing.assert_allclose(mel.log_mel(around, FORM)[:, 4:-4], alone[:, 4:-4], atol=3)
    kept = mel.log_mel(around, replace(FORM, trim=None))
    assert np.abs(kept - alone).max() > 10


def test_stretching_removes_speed() -> None:
    """A tone that turns into another half way, however long it lasts."""
    words = [np.concatenate([sine(500, seconds=s), sine(1500, seconds=s)]) for s in (0.15, 0.2, 0.4)]
    stretched = [mel.log_mel(word, FORM) for word in words]
    padded = [mel.log_mel(word, replace(FORM, stretch=False)) for word in words]
    away = np.r_[1 : FORM.frames // 2 - 4, FORM.frames // 2 + 4 : FORM.frames - 1]  # from the turn and the ends
    bands = [spectrogram[:, away].argmax(axis=0).tolist() for spectrogram in stretched]
    assert bands[0] == bands[1] == bands[2]
    assert padded[0][:, away].argmax(axis=0).tolist() != padded[2][:, away].argmax(axis=0).tolist()


def test_sounds_of_any_length() -> None:
    for length in (1, 5, FORM.hop - 1, FORM.samples, 50 * FORM.samples):
        spectrogram = mel.log_mel(np.random.default_rng(3).normal(size=length), FORM)
        assert spectrogram.shape == (FORM.mels, FORM.frames)
        assert np.isfinite(spectrogram).all()


@pytest.mark.parametrize("length", [1, 7, 8, 9, 100])
def test_centred(length: int) -> None:
    waveform = np.arange(1, length + 1.0)
    fitted = mel.centred(waveform, 8)
    assert len(fitted) == 8
    if length >= 8:
        assert fitted[0] - 1 == pytest.approx(length - fitted[-1], abs=1)
    else:
        assert fitted.sum() == waveform.sum()


@pytest.mark.parametrize("hertz", [300, 1000, 2500])
def test_griffin_lim_keeps_the_frequency_of_a_tone(hertz: float) -> None:
    spectrogram = mel.log_mel(sine(hertz), FORM)
    back = mel.griffin_lim(spectrogram[None], FORM)[0]
    assert back.dtype == np.float32
    assert np.abs(back).max() == pytest.approx(mel.PEAK, rel=1e-5)
    loudest = np.abs(np.fft.rfft(back)).argmax() * FORM.rate / len(back)
    spacing = np.diff(mel.centre_frequencies(FORM))[np.searchsorted(mel.centre_frequencies(FORM), hertz) - 1]
    assert abs(loudest - hertz) < spacing  # the resolution of a band


def test_griffin_lim_keeps_the_spectrogram() -> None:
    """Two gliding tones with a pause between them."""
    time = np.arange(FORM.samples) / FORM.rate
    word = np.sin(2 * np.pi * (400 * time + 600 * time**2)) * (np.abs(time - FORM.seconds / 2) > 0.06)
    spectrogram = mel.log_mel(word, FORM)
    again = mel.log_mel(mel.griffin_lim(spectrogram[None], FORM)[0], replace(FORM, trim=None))
    loud = spectrogram > -25
    assert np.abs(again - spectrogram)[loud].mean() < 3
    assert np.corrcoef(again.ravel(), spectrogram.ravel())[0, 1] > 0.9


def test_griffin_lim_is_deterministic() -> None:
    many = np.stack([mel.log_mel(sine(hertz), FORM) for hertz in (300, 900, 2000)])
    group = mel.griffin_lim(many, FORM, iterations=5)
    np.testing.assert_array_equal(group, mel.griffin_lim(many, FORM, iterations=5))
    np.testing.assert_allclose(group[1], mel.griffin_lim(many[1:2], FORM, iterations=5)[0], atol=1e-4)


@pytest.mark.parametrize(
    "change",
    [
        {"mels": 30},
        {"frames": 0},
        {"rate": 0},
        {"hop": 400},
        {"high": 4001.0},
        {"floor": 3.0},
        {"trim": 0.0},
        {"n_fft": 1 << 20},
    ],
    ids=str,
)
def test_invalid_formats(change: dict[str, float]) -> None:
    (name,) = change
    with raises(DataError, "sound-format") as caught:
        replace(FORM, **change)  # type: ignore[arg-type]
    assert name in str(caught.value)


def test_formats_as_json_and_at_other_rates() -> None:
    for form in (FORM, replace(FORM, trim=None, stretch=False)):
        assert SoundFormat.from_json(form.to_json()) == form
    faster = FORM.at_rate(16000)
    assert (faster.n_fft, faster.hop, faster.seconds) == (2 * FORM.n_fft, 2 * FORM.hop, FORM.seconds)
    assert FORM.at_rate(4000).high == 2000
    assert mel.mel_filterbank(FORM.at_rate(200)).any(axis=1).all()
