"""Vectors of two kinds that can be separated."""

import numpy as np

from synthsieve.data.dataset import Dataset, Examples, Kind


def dataset(n=120, seed=0):
    """Two clouds in five dimensions."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    x = rng.normal(0, 1, (n, 5)) + 4 * y[:, None]
    return Dataset("clouds", Kind.VECTOR, ("low", "high"), Examples(x.astype(np.float32), y.astype(np.int64)))
