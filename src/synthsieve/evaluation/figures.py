"""Pictures of samples: those of each class, and one class by entropy."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from synthsieve.errors import DataError
from synthsieve.export.images import write_image_grid


def write_samples_figure(path: Path, x: np.ndarray, y: np.ndarray, columns: int = 10) -> None:
    """A PNG with a row a class, in the order of the classes: its first `columns` samples, unsorted.

    Args:
        x: uint8 (n, channels, height, width), one or three channels.
        y: (n,), the samples' classes.
    """
    _check_images(x, y, "y")
    _check_count("columns", columns)
    write_image_grid(path, [x[y == c][:columns] for c in np.unique(y)])


def write_entropy_figure(path: Path, x: np.ndarray, entropy: np.ndarray, columns: int = 10, rows: int = 5) -> None:
    """A PNG of samples by entropy, lowest first, left to right and top to bottom.

    Where there are more than fit, ranks are evenly spaced: round(i (n - 1) / (columns * rows - 1)), from the lowest
    entropy of all to the highest.

    Args:
        x: uint8 (n, channels, height, width), the samples of one class.
        entropy: (n,), nats.
    """
    _check_images(x, entropy, "entropy")
    _check_count("columns", columns)
    _check_count("rows", rows)
    if np.isnan(entropy).any():
        raise DataError("expected a number as every sample's entropy, got nan: check the logits they come from")
    shown = np.argsort(entropy, kind="stable")[spaced_ranks(len(x), columns * rows)]
    write_image_grid(path, [x[shown[start : start + columns]] for start in range(0, len(shown), columns)])


def spaced_ranks(n: int, count: int) -> np.ndarray:
    """At most `count` of the ranks 0 to n - 1, evenly spaced, both ends among them: int64, increasing."""
    return np.round(np.linspace(0, n - 1, min(n, count))).astype(np.int64)


def _check_images(x: np.ndarray, other: np.ndarray, name: str) -> None:
    if x.ndim != 4 or x.dtype != np.uint8 or x.shape[1] not in (1, 3):
        raise DataError(
            f"expected images, uint8 (n, 1 or 3, height, width), got {x.dtype} of shape {x.shape}: "
            "figures of samples are for images only"
        )
    if not len(x):
        raise DataError("expected at least one image, got none: draw some samples first")
    if other.shape != (len(x),):
        raise DataError(f"expected {name} of shape ({len(x)},), one for each image, got {other.shape}: pass both parts")


def _check_count(name: str, count: int) -> None:
    if count < 1:
        raise DataError(f"expected {name} of at least 1, got {count}: try 10")
