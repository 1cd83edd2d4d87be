"""Spectrograms for a network and back."""

from __future__ import annotations

import numpy as np
import pytest
from tests.modalities import sound

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.data.encoding import fit_encoding, from_json
from synthsieve.errors import DataError
from synthsieve.waveforms import Waveforms

ROWS = np.arange(0, 60)


def test_training_rows_alone_are_measured() -> None:
    dataset = sound.dataset()
    encoding = fit_encoding(dataset, ROWS)
    encoded = encoding.encode(dataset.train.x[ROWS])
    assert encoded.dtype == np.float32
    np.testing.assert_allclose(encoded.mean(axis=(0, 1, 3)), 0, atol=1e-5)
    assert np.square(encoded).mean() == pytest.approx(1, abs=1e-4)
    dataset.train.x[60:] = 0
    assert fit_encoding(dataset, ROWS).to_json() == encoding.to_json()


def test_there_and_back_and_through_json() -> None:
    dataset = sound.dataset()
    encoding = from_json(fit_encoding(dataset, ROWS).to_json())
    assert encoding.layout.kind == Kind.SOUND
    assert encoding.layout.shape == dataset.shape
    np.testing.assert_allclose(encoding.decode(encoding.encode(dataset.train.x)), dataset.train.x, atol=1e-4)


def test_what_a_generator_makes_stays_between_floor_and_zero() -> None:
    encoding = fit_encoding(sound.dataset(), ROWS)
    wild = np.random.default_rng(0).normal(0, 100, (3, *encoding.layout.shape)).astype(np.float32)
    decoded = encoding.decode(wild)
    assert decoded.dtype == np.float32
    assert decoded.min() == sound.FORM.floor
    assert decoded.max() == 0


def test_items_can_be_played() -> None:
    dataset = sound.dataset()
    items = fit_encoding(dataset, ROWS).items(dataset.train.x[:2])
    assert isinstance(items, Waveforms)
    assert items.rate == sound.FORM.rate
    for wave, hertz in zip(items.sounds, sound.PITCHES, strict=True):
        loudest = np.abs(np.fft.rfft(wave)).argmax() * items.rate / len(wave)
        assert loudest == pytest.approx(hertz, rel=0.35)  # tones lie within a tenth; a band is wide


@pytest.mark.parametrize("change", [{"mean": [0.0]}, {"scale": 0}, {"form": {}}, {"mean": [np.nan] * 8}])
def test_a_damaged_encoding_is_refused(change: dict[str, object]) -> None:
    value = fit_encoding(sound.dataset(), ROWS).to_json()
    with pytest.raises(DataError, match="damaged"):
        from_json({**value, **change})


def test_a_data_set_without_its_format_is_refused() -> None:
    plain = sound.dataset()
    nothing = Dataset("tones", Kind.SOUND, plain.classes, plain.train)
    with pytest.raises(DataError, match="need a SoundFormat"):
        fit_encoding(nothing, ROWS)
    with pytest.raises(DataError, match="at least one training row"):
        fit_encoding(plain, ROWS[:0])
    with pytest.raises(DataError, match="must have shape"):
        fit_encoding(plain, ROWS).encode(np.zeros((2, 1, 4, 4), dtype=np.float32))
