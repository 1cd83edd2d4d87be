"""Sounds of two kinds that can be separated."""

import numpy as np

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.modalities.sound.format import SoundFormat
from synthsieve.data.modalities.sound.reading import from_waveforms

FORM = SoundFormat(rate=4000, n_fft=128, hop=64, mels=8, frames=8, low=100, high=2000, floor=-40)
PITCHES = (300, 1200)


def tone(hertz, rng, rate=FORM.rate, seconds=FORM.seconds):
    """A tone of about that pitch, any phase, with a little noise."""
    time = np.arange(round(rate * seconds)) / rate
    pitch = hertz * rng.uniform(0.9, 1.1)
    return np.sin(2 * np.pi * (pitch * time + rng.uniform())) + 0.05 * rng.normal(size=len(time))


def dataset(n=120, seed=0):
    """A low and a high tone."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    waves = [tone(PITCHES[label], rng) for label in y]
    examples = Examples(from_waveforms(waves, FORM.rate, FORM), y.astype(np.int64))
    return Dataset("tones", Kind.SOUND, ("low", "high"), examples, metadata=FORM)
