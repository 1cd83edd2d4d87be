"""Labels as a user holds them: any type, with -1, None, NaN or an empty text where a label is not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.data.containers import without_mask
from synthsieve.data.dataset import UNLABELED
from synthsieve.errors import DataError


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
    raw = as_labels(given)
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


def as_labels(given: Any) -> np.ndarray:
    """Labels in any container as an array, whose shape is not looked at.

    A list stays as it is, for numpy would turn the -1 or the NaN beside its texts into text. A masked label is not
    known.
    """
    if isinstance(given, np.ma.MaskedArray):
        return without_mask(given)
    if hasattr(given, "detach"):  # a torch tensor
        return np.asarray(given.detach().cpu().numpy())
    plain = np.asarray(given)
    if plain.dtype.kind == "T":  # numpy's texts of any length
        return plain.astype(object)
    if not isinstance(given, list | tuple) or plain.dtype.kind not in "US" or plain.ndim != 1:
        return plain
    varied = np.empty(len(given), dtype=object)
    varied[:] = given
    return varied


def stray_words(classes: np.ndarray) -> list[str]:
    """Classes, among three or more of text, that look like a word for unlabelled which numpy turned into text."""
    return [word for word in ("-1", "nan", "None", "<NA>") if len(classes) > 2 and word in classes.tolist()]


def is_known(raw: np.ndarray) -> np.ndarray:
    """Which labels are known: bool (n,)."""
    if raw.dtype.kind == "f":
        return ~np.isnan(raw) & (raw != UNLABELED)
    if raw.dtype.kind == "i":
        return np.asarray(raw != UNLABELED)
    if raw.dtype.kind in "mM":
        return ~np.isnat(raw)
    if raw.dtype.kind == "U":
        return np.asarray(raw != "")
    if raw.dtype.kind == "O":
        return np.array([_is_label(value) for value in raw], dtype=bool)
    return np.ones(len(raw), dtype=bool)


def _is_label(value: Any) -> bool:
    if not _is_there(value) or (isinstance(value, str) and value == ""):
        return False
    return isinstance(value, str | bool) or value != UNLABELED


def _is_there(value: Any) -> bool:
    nan = isinstance(value, float | np.floating) and value != value
    return not nan and value is not None and type(value).__name__ not in ("NAType", "NaTType")


def _typed(labels: np.ndarray, *, whole: bool) -> np.ndarray:
    """Labels of an object array in the one type they share; with `whole`, floats that are whole become integers.

    Integers beside NaN come as floats, and their user thinks of integers.
    """
    if labels.dtype.kind == "O" and len(labels):
        if len({isinstance(label, str) for label in labels}) > 1:
            raise DataError(
                "labels must all be text or all be numbers, but both came: write 1 as '1', or give each class a number"
            )
        labels = np.array(labels.tolist())
    if whole and labels.dtype.kind == "f" and np.isfinite(labels).all() and (labels == np.rint(labels)).all():
        return labels.astype(np.int64)
    return labels


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def read_groups(given: Any, count: int) -> np.ndarray:
    """A number for each of `count` groups' names, of any type: int64 (count,); a row without one is its own group."""
    names = as_labels(given)
    if names.shape != (count,):
        raise DataError(f"groups must name one for each of {count} rows, but came with shape {names.shape}")
    numbers: dict[Any, int] = {}
    keys = (_plain(name) if _is_there(name) else (None, row) for row, name in enumerate(names))
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
