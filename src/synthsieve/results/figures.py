"""Pictures of samples, as in the paper's Fig. 1: samples of each class, and one class by entropy."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from synthsieve.errors import DataError
from synthsieve.results.export.media import write_image_grid


def write_samples_figure(path: Path, x: np.ndarray, y: np.ndarray, columns: int = 10) -> None:
    """Write a PNG with a row for each class of y (n,): its first `columns` samples.

    x: uint8 (n, 1 or 3, height, width).
    """
    _check(x, y, "y", columns=columns)
    write_image_grid(path, [x[y == c][:columns] for c in np.unique(y)])


def write_entropy_figure(path: Path, x: np.ndarray, entropy: np.ndarray, columns: int = 10, rows: int = 5) -> None:
    """Write a PNG of samples by entropy, lowest first, left to right and top to bottom.

    If there are more than fit, their ranks are evenly spaced from the lowest entropy to the highest. x: uint8
    (n, 1 or 3, height, width), samples of one class; entropy: (n,), nats.
    """
    _check(x, entropy, "entropy", columns=columns, rows=rows)
    if np.isnan(entropy).any():
        raise DataError("expected a number as entropy of each sample, got nan: check the logits", code="not-finite")
    shown = np.argsort(entropy, kind="stable")[spaced_ranks(len(x), columns * rows)]
    write_image_grid(path, [x[shown[start : start + columns]] for start in range(0, len(shown), columns)])


def spaced_ranks(n: int, count: int) -> np.ndarray:
    """At most `count` of the ranks 0 to n - 1, evenly spaced, both ends included: int64, increasing."""
    return np.round(np.linspace(0, n - 1, min(n, count))).astype(np.int64)


def _check(x: np.ndarray, other: np.ndarray, name: str, **counts: int) -> None:
    if x.ndim != 4 or x.dtype != np.uint8 or x.shape[1] not in (1, 3) or not len(x):
        message = f"expected images, uint8 (1 or more, 1 or 3, height, width), got {x.dtype} of shape {x.shape}"
        raise DataError(message, code="not-images")
    if other.shape != (len(x),):
        raise DataError(f"expected {name} of shape ({len(x)},), got {other.shape}", code="length-mismatch")
    for option, count in counts.items():
        if count < 1:
            raise DataError(f"expected {option} of at least 1, got {count}: try 10", code="out-of-range")
