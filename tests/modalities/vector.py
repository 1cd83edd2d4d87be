"""Vectors of two kinds that can be told apart."""

import numpy as np

from synthsieve.data.dataset import Dataset, Examples, Kind


def dataset(n=120, seed=0):
    """Two clouds in five dimensions."""
    generator = np.random.default_rng(seed)
    y = np.arange(n) % 2
    x = generator.normal(0, 1, (n, 5)) + 4 * y[:, None]
    return Dataset("clouds", Kind.VECTOR, ("low", "high"), Examples(x.astype(np.float32), y.astype(np.int64)))
