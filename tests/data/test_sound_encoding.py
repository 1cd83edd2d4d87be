"""The encoding of spectrograms."""

from __future__ import annotations

import numpy as np
import pytest

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.data.modalities.registry import fit_encoding, from_json
from synthsieve.data.modalities.sound.format import Waveforms
from synthsieve.errors import DataError
from tests.errors import raises
from tests.modalities import sound

ROWS = np.arange(0, 60)


def test_only_training_rows_are_used() -> None:
    dataset = sound.dataset()
    encoding = fit_encoding(dataset, ROWS)
    encoded = encoding.encode(dataset.train.x[ROWS])
    assert encoded.dtype == np.float32
    np.testing.assert_allclose(encoded.mean(axis=(0, 1, 3)), 0, atol=1e-5)
    assert np.square(encoded).mean() == pytest.approx(1, abs=1e-4)
    dataset.train.x[60:] = 0
    assert fit_encoding(dataset, ROWS).to_json() == encoding.to_json()


def test_round_trip_and_json() -> None:
    dataset = sound.dataset()
    encoding = from_json(fit_encoding(dataset, ROWS).to_json())
    assert encoding.input_spec.kind == Kind.SOUND
    assert encoding.input_spec.shape == dataset.shape
    np.testing.assert_allclose(encoding.decode(encoding.encode(dataset.train.x)), dataset.train.x, atol=1e-4)


def test_decoded_range() -> None:
    encoding = fit_encoding(sound.dataset(), ROWS)
    extreme = np.random.default_rng(0).normal(0, 100, (3, *encoding.input_spec.shape)).astype(np.float32)
    decoded = encoding.decode(extreme)
    assert decoded.dtype == np.float32
    assert decoded.min() == sound.FORM.floor
    assert decoded.max() == 0


def test_items_are_waveforms() -> None:
    dataset = sound.dataset()
    items = fit_encoding(dataset, ROWS).items(dataset.train.x[:2])
    assert isinstance(items, Waveforms)
    assert items.rate == sound.FORM.rate
    for wave, hertz in zip(items.sounds, sound.PITCHES, strict=True):
        loudest = np.abs(np.fft.rfft(wave)).argmax() * items.rate / len(wave)
        assert loudest == pytest.approx(hertz, rel=0.35)  # tones lie within a tenth; a band is wide


@pytest.mark.parametrize("change", [{"mean": [0.0]}, {"scale": 0}, {"form": {}}, {"mean": [np.nan] * 8}])
def test_damaged_encoding(change: dict[str, object]) -> None:
    value = fit_encoding(sound.dataset(), ROWS).to_json()
    with raises(DataError, "damaged-encoding"):
        from_json({**value, **change})


def test_invalid_input() -> None:
    plain = sound.dataset()
    no_format = Dataset("tones", Kind.SOUND, plain.classes, plain.train)
    with raises(DataError, "no-sound-format"):
        fit_encoding(no_format, ROWS)
    with raises(DataError, "no-training-rows"):
        fit_encoding(plain, ROWS[:0])
    with raises(DataError, "shape"):
        fit_encoding(plain, ROWS).encode(np.zeros((2, 1, 4, 4), dtype=np.float32))
