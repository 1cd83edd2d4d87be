"""Small images of two kinds that can be separated."""

import numpy as np

from synthsieve.data.dataset import Dataset, Examples, Kind


def dataset(n=120, seed=0):
    """Bright above or bright below, 8x8 grey."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    x = rng.integers(0, 60, (n, 1, 8, 8))
    x[y == 0, :, :4] += 150
    x[y == 1, :, 4:] += 150
    return Dataset("stripes", Kind.IMAGE, ("above", "below"), Examples(x.astype(np.uint8), y.astype(np.int64)))
