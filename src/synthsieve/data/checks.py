"""Checks, each with one clear sentence: of files while they are read, and of every data set before training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from synthsieve.data.dataset import UNLABELED, Dataset, Examples, Kind
from synthsieve.errors import DataError
from synthsieve.io.printable import brief, listed

CHECK_ROWS = 4096
# What `Examples.x` must be: number of dimensions, dtypes (by name; S: bytes), and how that reads.
FORMS: dict[str, tuple[int, tuple[str, ...], str]] = {
    Kind.IMAGE: (4, ("uint8", "float32"), "images must be uint8 or float32 (n, channels, height, width)"),
    Kind.VECTOR: (2, ("float32",), "vectors must be float32 (n, features)"),
    Kind.TABLE: (2, ("float64",), "rows must be float64 (n, columns)"),
    Kind.SOUND: (4, ("float32",), "spectrograms must be float32 (n, 1, mels, frames)"),
    Kind.TEXT: (1, ("S",), "texts must be UTF-8 bytes (n,)"),
}


def check(condition: object, message: str, code: str) -> None:
    """Raise a `DataError` unless the condition holds."""
    if not condition:
        raise DataError(message, code=code)


def check_unique(names: Iterable[object], origin: str) -> None:
    """Refuse a table of which two columns have one name."""
    repeated = sorted(name for name, times in Counter(map(str, names)).items() if times > 1)
    check(
        not repeated,
        f"{origin}: columns need different names, but {listed(repeated)} are repeated: rename them",
        "repeated-column",
    )


@contextmanager
def reading(path: Path, form: str, advice: str = "it may be cut short, replace it") -> Iterator[None]:
    """Turn the errors of other libraries, which raise many kinds for a damaged file, into one `DataError`."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{path} cannot be read as {form} ({brief(error)}): {advice}", code="damaged-file") from None


def check_dataset(dataset: Dataset) -> None:
    """Raise a `DataError` that names the first thing wrong with `dataset`."""
    name, classes, y, like = dataset.name, dataset.classes, dataset.train.y, dataset.train.x
    _check_examples(dataset.train, dataset, f"{name}, training examples")
    present = set(np.unique(y).tolist()) - {UNLABELED}
    check(present, f"{name}: none of its {len(y):,} rows has a label: label some of each class", "no-labels")
    check(len(classes) > 1, f"{name}: two classes are needed, got only {listed(classes)}", "one-class")
    missing = [label for index, label in enumerate(classes) if index not in present]
    check(not missing, f"{name}: every class needs a label, but {listed(missing)} have none", "class-without-labels")
    for part, examples in (("validation", dataset.validation), ("test", dataset.test)):
        if examples is None:
            continue
        origin, x, unknown = f"{name}, {part} examples", examples.x, int((examples.y == UNLABELED).sum())
        _check_examples(examples, dataset, origin)
        fits, got = x.shape[1:] == dataset.shape and x.dtype == like.dtype, f"{x.dtype} {x.shape[1:]}"
        check(fits, f"{origin}: must be {like.dtype} {dataset.shape} as in training, not {got}", "unlike-training")
        check(not unknown, f"{origin}: {unknown} labels are not known: remove those rows", "unlabelled-test")


def _check_examples(examples: Examples, dataset: Dataset, origin: str) -> None:
    """Shapes, dtypes, ranges and lengths of one set of examples."""
    x, y, groups, weights = examples.x, examples.y, examples.groups, examples.weights
    got = f"got {x.dtype} {x.shape}"
    check(len(x), f"{origin}: at least one row is needed, got none", "no-rows")
    check(len(x) == len(y), f"{origin}: {len(x)} examples have {len(y)} labels: give one for each", "label-count")
    if dataset.kind in FORMS:
        ndim, dtypes, expected = FORMS[dataset.kind]
        fits = x.ndim == ndim and (x.dtype.name in dtypes or x.dtype.kind in dtypes)
        check(fits, f"{origin}: {expected}, {got}", "example-type")
    is_plain = not x.dtype.hasobject and 0 not in x.shape
    check(is_plain, f"{origin}: examples must be numbers, at least one, {got}", "example-type")
    if x.dtype == np.float32 and isinstance(dataset.kind, Kind):
        for start in range(0, len(x), CHECK_ROWS):
            block = np.abs(x[start : start + CHECK_ROWS]).reshape(len(x[start : start + CHECK_ROWS]), -1)
            bad = ~np.isfinite(block).all(axis=1)
            row, largest = start + int(bad.argmax()), block.max()
            check(not bad.any(), f"{origin}: row {row} holds NaN or infinity: fill or remove it", "not-finite")
            in_range = dataset.kind is not Kind.IMAGE or largest <= 1
            check(in_range, f"{origin}: float images must lie in [-1, 1], got {largest:g}", "pixel-range")
    is_index = y.ndim == 1 and y.dtype == np.int64
    check(is_index, f"{origin}: labels must be int64 (n,), got {y.dtype} {y.shape}", "label-type")
    in_range, last = y.min() >= UNLABELED and y.max() < dataset.num_classes, dataset.num_classes - 1
    check(in_range, f"{origin}: labels must lie in -1..{last}, got {y.min()}..{y.max()}", "label-range")
    if weights is not None:
        valid = weights.shape == y.shape and np.isfinite(weights).all() and (weights >= 0).all()
        check(valid, f"{origin}: weights must be finite and 0 or more, one for each of {len(y)} rows", "weights")
    if groups is not None:
        valid, got = groups.dtype == np.int64 and groups.shape == y.shape, f"{groups.dtype} {groups.shape}"
        check(valid, f"{origin}: groups must be int64 ({len(y)},), but are {got}", "group-shape")
