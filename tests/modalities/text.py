"""Sentences of two kinds that can be separated."""

import numpy as np

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.modalities.text.encoding import store_texts

SUBJECTS = ("the film", "this story", "the cast", "her new play", "a long scene", "the music")
VERBS = ("is", "seems", "was", "feels")
WORDS = {
    "bad": ("dull", "awful", "boring", "weak", "a mess", "far too long"),
    "good": ("lovely", "moving", "bright", "a joy", "great fun", "very funny"),
}
ENDS = ("", " .", " from start to end", " , they say", " for everyone", " tonight")


def sentences(n=120, seed=0):
    """n sentences, every second one good, and 0 for bad, 1 for good."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    texts = [
        f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(list(WORDS.values())[label])}{rng.choice(ENDS)}"
        for label in y
    ]
    return texts, y


def dataset(n=120, seed=0):
    """Opinions, good and bad."""
    texts, y = sentences(n, seed)
    return Dataset("opinions", Kind.TEXT, tuple(WORDS), Examples(store_texts(texts).x, y.astype(np.int64)))
