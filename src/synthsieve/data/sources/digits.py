"""The 1,797 handwritten digits of 8x8 pixels that come inside scikit-learn: the default that needs no download."""

from __future__ import annotations

import numpy as np

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.labels import read_labels
from synthsieve.data.registry import Request


def load_digits(request: Request) -> Dataset:
    """Images uint8 (1797, 1, 8, 8), the file's 0..16 scaled to 0..255 and rounded; no test set of its own."""
    from sklearn.datasets import load_digits as read

    bunch = read()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)[:, None]
    labels = read_labels(bunch.target, origin="digits")
    return Dataset("digits", Kind.IMAGE, labels.classes, Examples(images, labels.y))
