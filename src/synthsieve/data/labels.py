"""Labels become class indices: 0, 1, 2, ... in sorted order, -1 where the label is not known.

`read_labels` is for files, whose labels are integers or text. `read_targets` is for labels in memory, of any type, with
-1, None, NaN or an empty text where a label is not known; classes keep that type.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from synthsieve.data.checks import check
from synthsieve.data.dataset import UNLABELED
from synthsieve.io.printable import listed, sort_naturally

MAX_LABEL_LENGTH = 200  # characters
MIN_ROWS_FOR_ID = 20  # rows: with fewer, labels that all differ are no sign of an identifier
MANY_CLASSES = 50  # from here on, more classes than half the labels are a mistake, not very few labels
MANY_NUMBERS = 10  # numbers with a fraction: more different ones are rather measurements than classes


@dataclass(frozen=True)
class Labels:
    """Class indices, and the labels as text."""

    y: np.ndarray  # int64 (n,), indices into `classes`, or -1
    classes: tuple[str, ...]  # distinct: integers in numerical order, other text in its own
    notes: tuple[str, ...] = ()  # messages for the user


class TypedLabels(NamedTuple):
    """Class indices, and the labels in the type they came in."""

    y: np.ndarray  # int64 (n,), indices into `classes`, or -1
    classes: np.ndarray  # distinct, sorted


def read_labels(raw: np.ndarray, *, origin: str, classes: tuple[str, ...] | None = None) -> Labels:
    """Class indices of `raw` (n,): integers with -1 for unlabelled, or text with "" for unlabelled.

    With `classes` given (a test set), every label must be one of them. `origin` names the data in errors.
    """
    raw = np.asarray(raw)
    raw = raw[:, 0] if raw.ndim == 2 and raw.shape[1] == 1 else raw
    check(raw.ndim == 1, f"{origin}: labels must have shape (n,), got {raw.shape}", "label-shape")
    raw = raw.astype(np.int64) if raw.dtype.kind == "b" else raw
    is_integer = raw.dtype.kind in "iu"
    got = f"{raw.min(initial=0)}" if is_integer else f"{raw.dtype}"
    valid = raw.dtype.kind == "U" or (is_integer and not (raw < UNLABELED).any())
    expected = "text or integers from 0 (unlabelled: empty or -1)"
    check(valid, f"{origin}: labels must be {expected}, got {got}", "label-type")
    known = np.asarray(raw != (UNLABELED if is_integer else ""))
    texts, inverse = np.unique(raw[known].astype(str), return_inverse=True)
    present: list[str] = texts.tolist()
    classes = tuple(sort_naturally(present)) if classes is None else classes
    index = {text: i for i, text in enumerate(classes)}
    unknown = [text for text in present if text not in index]
    problem = f"{listed(unknown)} are not among the training classes {listed(classes)}: remove these rows"
    check(not unknown, f"{origin}: {problem}", "unknown-class")
    y = np.full(len(raw), UNLABELED, dtype=np.int64)
    y[known] = np.array([index[text] for text in present], dtype=np.int64)[inverse.reshape(-1)]
    return Labels(y, classes)


def check_classes(labels: Labels, *, origin: str) -> tuple[str, ...]:
    """Refuse labels that look like an identifier or like measured numbers; a note where they may be either.

    `origin` names the labels in the message: "a.csv: column 'id'".
    """
    count, labeled = len(labels.classes), int((labels.y != UNLABELED).sum())
    found = f"{origin} has {count:,} different values in {labeled:,} labelled rows"
    if _are_fractions(labels.classes):
        what = "a measured number: synthsieve predicts classes, so sort the numbers into bins, or name the class column"
        check(count < MANY_NUMBERS or count <= labeled / 2, f"{found}: it looks like {what}", "not-classes")
        return (f"{found}, each taken as a class: it may be {what}",) if count > MANY_NUMBERS else ()
    all_differ = count == labeled == len(labels.y) and labeled >= MIN_ROWS_FOR_ID
    what = "an identifier" if count > 0.9 * labeled else "an identifier or a measured number"
    are_classes = not all_differ and (count <= labeled / 2 or count < MANY_CLASSES)
    check(are_classes, f"{found}: it looks like {what}, not a class: name the class column", "not-classes")
    if count > labeled / 2 and count >= MIN_ROWS_FOR_ID:
        return (f"{found}, each taken as a class: check that it is not an identifier",)
    return ()


def _are_fractions(classes: tuple[str, ...]) -> bool:
    """Whether all are numbers, and some of them not whole."""
    try:
        numbers = np.array(classes, dtype=str).astype(np.float64)
    except ValueError:
        return False
    return bool(np.isfinite(numbers).all() and (numbers != np.rint(numbers)).any())


def check_lengths(texts: Iterable[str], *, origin: str) -> None:
    """Refuse long labels before they become an array, which takes as much for each row as for the longest."""
    longest = max(map(len, texts), default=0)
    problem = f"a label has {longest:,} characters, more than {MAX_LABEL_LENGTH}: name the label column"
    check(longest <= MAX_LABEL_LENGTH, f"{origin}: {problem}", "long-label")


def read_targets(given: Any, classes: np.ndarray | None = None) -> TypedLabels:
    """Class indices of any labels (n,); with `classes` given, a label that is none of them counts as -1."""
    raw = as_labels(given)
    known = is_known(raw)
    if classes is None:
        classes, inverse = np.unique(_common_type(raw[known], whole=not known.all()), return_inverse=True)
        y = np.full(len(raw), UNLABELED, dtype=np.int64)
        y[known] = inverse.reshape(-1)
        return TypedLabels(y, classes)
    index = {label: i for i, label in enumerate(classes.tolist())}
    flat = [index.get(_plain(label), UNLABELED) if ok else UNLABELED for label, ok in zip(raw, known, strict=True)]
    return TypedLabels(np.array(flat, dtype=np.int64), classes)


def as_labels(given: Any) -> np.ndarray:
    """Labels in any container as an array of any shape; a masked label is not known.

    A list of text keeps its items, because numpy would turn -1 and NaN among them into text.
    """
    if isinstance(given, np.ma.MaskedArray):
        return without_mask(given)
    if hasattr(given, "detach"):  # a torch tensor
        return np.asarray(given.detach().cpu().numpy())
    plain = np.asarray(given)
    if plain.dtype.kind == "T":  # numpy's strings of any length
        return plain.astype(object)
    if not isinstance(given, list | tuple) or plain.dtype.kind not in "US" or plain.ndim != 1:
        return plain
    return object_array(given)


def object_array(items: list[Any] | tuple[Any, ...]) -> np.ndarray:
    """An array (n,) of the items themselves."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def without_mask(given: Any) -> np.ndarray:
    """A masked array as a plain one: numbers with NaN where they are masked, all else with None."""
    plain, masked = np.asarray(given.data), np.ma.getmaskarray(given)
    if not masked.any():
        return plain
    dtypes: dict[str, Any] = {"i": np.float64, "u": np.float64, "f": plain.dtype}
    filled = plain.astype(dtypes.get(plain.dtype.kind, object))
    filled[masked] = np.nan if filled.dtype.kind == "f" else None
    return filled


def stray_words(classes: np.ndarray) -> list[str]:
    """Classes, among three or more of text, that look like a marker for unlabelled which numpy turned into text."""
    return [word for word in ("-1", "nan", "None", "<NA>") if len(classes) > 2 and word in classes.tolist()]


def is_known(raw: np.ndarray) -> np.ndarray:
    """Which labels are known: bool (n,)."""
    kind = raw.dtype.kind
    if kind == "O":
        return np.array([_is_label(value) for value in raw], dtype=bool)
    if kind in "mM":
        return ~np.isnat(raw)
    if kind in "if":
        return np.asarray((raw != UNLABELED) & (raw == raw))  # NaN is not itself
    return np.asarray(raw != "") if kind == "U" else np.ones(len(raw), dtype=bool)


def _is_label(value: Any) -> bool:
    if isinstance(value, str | bool):
        return value != ""
    return _is_present(value) and value != UNLABELED


def _is_present(value: Any) -> bool:
    nan = isinstance(value, float | np.floating) and value != value
    return not nan and value is not None and type(value).__name__ not in ("NAType", "NaTType")


def _common_type(labels: np.ndarray, *, whole: bool) -> np.ndarray:
    """Labels of an object array in the one type they share; with `whole`, floats that are whole become integers.

    Integers become floats where NaN is among them; the user means integers.
    """
    if labels.dtype.kind == "O" and len(labels):
        one_type = len({isinstance(label, str) for label in labels}) == 1
        check(one_type, "labels must all be text or all numbers, got both: write 1 as '1'", "mixed-labels")
        labels = np.array(labels.tolist())
    if whole and labels.dtype.kind == "f" and np.isfinite(labels).all() and (labels == np.rint(labels)).all():
        return labels.astype(np.int64)
    return labels


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def read_groups(given: Any, count: int) -> np.ndarray:
    """A number for the group of each of `count` rows, named by any type: int64 (count,); an unnamed row is a group."""
    names = as_labels(given)
    problem = f"groups must name one for each of {count} rows, got shape {names.shape}"
    check(names.shape == (count,), problem, "group-shape")
    numbers: dict[Any, int] = {}
    keys = (_plain(name) if _is_present(name) else (None, row) for row, name in enumerate(names))
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
