"""Labels of any kind become class indices: 0, 1, 2, ... in sorted order, -1 where the label is not known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from synthsieve.data.dataset import UNLABELED
from synthsieve.errors import DataError
from synthsieve.natural_order import sort_naturally

LONGEST_LABEL = 200  # characters
FEWEST_FOR_ID = 20  # rows: in shorter data, labels that all differ are no sign of an identifier
MANY_CLASSES = 50  # from here on, more classes than half the labels are a mistake, not very few labels
MANY_NUMBERS = 10  # numbers with a fraction: more different ones are rather measured than classes


@dataclass(frozen=True)
class Labels:
    """Class indices and the text of each class.

    Attributes:
        y: int64 (n,), indices into `classes`, or -1.
        classes: the distinct labels as text, integers in numerical order, other text in its own.
        notes: sentences worth telling the user.
    """

    y: np.ndarray
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read_labels(raw: np.ndarray, *, origin: str, classes: tuple[str, ...] | None = None) -> Labels:
    """Class indices of `raw` (n,): integers with -1 for unlabelled, or text with "" for unlabelled.

    With `classes` given (a test set), every label must be one of them. `origin` names the place in errors.
    """
    texts, known = _as_text(np.asarray(raw), origin)
    if classes is None:
        classes = tuple(sort_naturally({str(text) for text in np.unique(texts[known])}))
    index = {text: i for i, text in enumerate(classes)}
    distinct, inverse = np.unique(texts, return_inverse=True)
    strangers = [str(text) for text in np.unique(texts[known]) if str(text) not in index]
    if strangers:
        raise DataError(
            f"{origin}: labels must be among the training classes {listed(classes)}, but {listed(strangers)} came:"
            " give every class at least one training example, or remove these rows"
        )
    of_distinct = np.array([index.get(str(text), UNLABELED) for text in distinct], dtype=np.int64)
    y = of_distinct[inverse.reshape(-1)] if len(distinct) else np.zeros(0, dtype=np.int64)
    return Labels(np.where(known, y, UNLABELED).astype(np.int64), classes)


def check_classes(labels: Labels, *, origin: str) -> tuple[str, ...]:
    """Refuse labels that look like an identifier or like measured numbers; a note where they may be either.

    `origin` names the labels in the sentence: "a.csv: column 'id'".
    """
    count, labeled = len(labels.classes), int((labels.y != UNLABELED).sum())
    said = f"{origin} has {count:,} different values in {labeled:,} labelled rows"
    if _are_fractions(labels.classes):
        what = "a measured number: synthsieve predicts classes, so sort the numbers into bins, or name the class column"
        if count >= MANY_NUMBERS and count > labeled / 2:
            raise DataError(f"{said}: it looks like {what}")
        return (f"{said}, each taken as a class: it may be {what}",) if count > MANY_NUMBERS else ()
    all_differ = count == labeled == len(labels.y) and labeled >= FEWEST_FOR_ID
    if all_differ or (count > labeled / 2 and count >= MANY_CLASSES):
        what = "an identifier" if count > 0.9 * labeled else "an identifier or a measured number"
        raise DataError(f"{said}: it looks like {what}, not a class: name the class column")
    if count > labeled / 2 and count >= FEWEST_FOR_ID:
        return (f"{said}, each taken as a class: check that it is not an identifier",)
    return ()


def _are_fractions(classes: tuple[str, ...]) -> bool:
    """Whether all are numbers, and some of them not whole."""
    try:
        numbers = np.array(classes, dtype=str).astype(np.float64)
    except ValueError:
        return False
    return bool(np.isfinite(numbers).all() and (numbers != np.rint(numbers)).any())


def check_lengths(texts: Iterable[str], *, origin: str) -> None:
    """Refuse long texts before they become an array, which takes as much for each row as for the longest."""
    longest = max(map(len, texts), default=0)
    if longest > LONGEST_LABEL:
        raise DataError(
            f"{origin}: labels may have {LONGEST_LABEL} characters at most, but one has {longest:,}: name the column of"
            " classes"
        )


def _as_text(raw: np.ndarray, origin: str) -> tuple[np.ndarray, np.ndarray]:
    """Labels as text (n,) and which of them are known (n,)."""
    if raw.ndim == 2 and raw.shape[1] == 1:
        raw = raw[:, 0]
    if raw.ndim != 1:
        raise DataError(f"{origin}: labels must have shape (n,), but came with shape {raw.shape}: pass one label a row")
    if raw.dtype.kind == "b":
        return raw.astype(np.int64).astype(str), np.ones(len(raw), dtype=bool)
    if raw.dtype.kind in "iu":
        if len(raw) and raw.min() < UNLABELED:
            raise DataError(
                f"{origin}: integer labels must be 0 or more, or -1 for unlabelled, but {raw.min()} came:"
                " renumber the classes or store them as text"
            )
        return raw.astype(str), raw != UNLABELED
    if raw.dtype.kind == "U":
        return raw, raw != ""
    raise DataError(
        f"{origin}: labels must be integers or text, but came as {raw.dtype}: convert them, with -1 or an empty"
        " text for unlabelled"
    )


def listed(items: tuple[str, ...] | list[str], most: int = 8) -> str:
    """`a, b, c`, cut after `most` items."""
    shown = ", ".join(repr(str(item)) for item in items[:most])
    return shown if len(items) <= most else f"{shown}, ... ({len(items)} in all)"
