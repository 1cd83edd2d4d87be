"""Labels as a user holds them: any type, with -1, None, NaN or an empty text where a label is not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.data.dataset import UNLABELED


@dataclass(frozen=True)
class Targets:
    """Class indices and what they stand for.

    Attributes:
        y: int64 (n,), indices into `classes`, or -1.
        classes: the distinct known labels, sorted, in the type they came in.
    """

    y: np.ndarray
    classes: np.ndarray


def read_targets(given: Any, classes: np.ndarray | None = None) -> Targets:
    """Class indices of any labels (n,); with `classes` given, a label that is none of them counts as -1."""
    raw = np.asarray(given)
    known = is_known(raw)
    if classes is None:
        labels = _typed(raw[known], whole=not known.all())
        classes, inverse = np.unique(labels, return_inverse=True)
        y = np.full(len(raw), UNLABELED, dtype=np.int64)
        y[known] = inverse.reshape(-1)
        return Targets(y, classes)
    index = {label: i for i, label in enumerate(classes.tolist())}
    flat = [index.get(_plain(label), UNLABELED) if ok else UNLABELED for label, ok in zip(raw, known, strict=True)]
    return Targets(np.array(flat, dtype=np.int64), classes)


def is_known(raw: np.ndarray) -> np.ndarray:
    """Which labels are known: bool (n,)."""
    if raw.dtype.kind == "f":
        return ~np.isnan(raw) & (raw != UNLABELED)
    if raw.dtype.kind == "i":
        return np.asarray(raw != UNLABELED)
    if raw.dtype.kind == "U":
        return np.asarray(raw != "")
    if raw.dtype.kind == "O":
        return np.array([_is_label(value) for value in raw], dtype=bool)
    return np.ones(len(raw), dtype=bool)


def _is_label(value: Any) -> bool:
    missing = value is None or (isinstance(value, float) and value != value) or type(value).__name__ == "NAType"
    if missing or (isinstance(value, str) and value == ""):
        return False
    return isinstance(value, str | bool) or value != UNLABELED


def _typed(labels: np.ndarray, *, whole: bool) -> np.ndarray:
    """Labels of an object array in the one type they share; with `whole`, floats that are whole become integers.

    Integers beside NaN come as floats, and their user thinks of integers.
    """
    if labels.dtype.kind == "O" and len(labels):
        labels = np.array(labels.tolist(), dtype=object if _is_varied(labels) else None)
    if whole and labels.dtype.kind == "f" and np.isfinite(labels).all() and (labels == np.rint(labels)).all():
        return labels.astype(np.int64)
    return labels


def _is_varied(labels: np.ndarray) -> bool:
    """Text beside numbers: numpy would turn the numbers into text without a word."""
    return len({isinstance(label, str) for label in labels}) > 1


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
