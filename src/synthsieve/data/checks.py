"""What every data set must satisfy before any training, whichever source it came from; and helpers for readers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from synthsieve.data.dataset import UNLABELED, Dataset, Examples, Kind
from synthsieve.data.labels import listed
from synthsieve.errors import DataError
from synthsieve.io.npz import MAX_EMPTY_LENGTH, MAX_EXPANSION, SLACK

CHECK_ROWS = 4096
# What `Examples.x` must be: number of dimensions, dtypes (by name; S: bytes), and how that reads.
FORMS: dict[str, tuple[int, tuple[str, ...], str]] = {
    Kind.IMAGE: (4, ("uint8", "float32"), "images must be uint8 or float32 (n, channels, height, width)"),
    Kind.VECTOR: (2, ("float32",), "vectors must be float32 (n, features)"),
    Kind.TABLE: (2, ("float64",), "rows must be float64 (n, columns)"),
    Kind.SOUND: (4, ("float32",), "spectrograms must be float32 (n, 1, mels, frames)"),
    Kind.TEXT: (1, ("S",), "texts must be UTF-8 bytes (n,)"),
}


def brief(error: Exception) -> str:
    """The first line of another library's error without its full stop, or its type where it says nothing."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def check_declared_size(path: Path, shape: Sequence[int], item_size: int, *, what: str, compressed: bool = True) -> int:
    """The bytes that an array of `shape` needs; refused, before any allocation, where the file cannot hold them."""
    claimed = math.prod(shape) * item_size
    size = path.stat().st_size
    most = size * MAX_EXPANSION + SLACK if compressed else size
    empty = not claimed and max(shape, default=0) > MAX_EMPTY_LENGTH  # any number of empty rows fills no byte
    if claimed > most or empty or any(side < 0 for side in shape):
        raise DataError(
            f"{path}: {what} claims shape {tuple(shape)}, but the file has only {size:,} bytes: download it again",
            code="damaged-file",
        )
    return claimed


def check_dataset(dataset: Dataset) -> None:
    """Raise a `DataError` that names the first thing wrong with `dataset`."""
    check_examples(dataset.train, dataset.kind, dataset.num_classes, origin=f"{dataset.name}, training examples")
    _check_classes(dataset)
    for part, examples in (("validation", dataset.validation), ("test", dataset.test)):
        if examples is not None:
            _check_held_out(dataset, examples, part)


def check_examples(examples: Examples, kind: str, num_classes: int, *, origin: str) -> None:
    """Shapes, dtypes, ranges and lengths of one set of examples."""
    x, y, groups, weights = examples.x, examples.y, examples.groups, examples.weights
    if len(x) == 0:
        raise DataError(f"{origin}: at least one row is needed, but none came", code="no-rows")
    if len(x) != len(y):
        raise DataError(f"{origin}: {len(x)} examples came with {len(y)} labels: give one for each", code="label-count")
    if kind in FORMS:
        ndim, dtypes, expected = FORMS[kind]
        if x.ndim != ndim or (x.dtype.name not in dtypes and x.dtype.kind not in dtypes):
            raise DataError(f"{origin}: {expected}, but came as {x.dtype} {x.shape}", code="example-type")
    if x.dtype.hasobject or 0 in x.shape:
        raise DataError(
            f"{origin}: examples must be numbers, at least one, but came as {x.dtype} {x.shape}", code="example-type"
        )
    if x.dtype == np.float32 and isinstance(kind, Kind):
        _check_floats(x, kind, origin)
    if y.ndim != 1 or y.dtype != np.int64:
        raise DataError(f"{origin}: labels must be int64 (n,), but came as {y.dtype} {y.shape}", code="label-type")
    if y.min() < UNLABELED or y.max() >= num_classes:
        raise DataError(
            f"{origin}: labels must lie in -1..{num_classes - 1}, but {y.min()}..{y.max()} came", code="label-range"
        )
    if weights is not None and (weights.shape != y.shape or not (np.isfinite(weights).all() and (weights >= 0).all())):
        raise DataError(
            f"{origin}: weights must be finite and 0 or more, one for each of {len(y)} rows", code="weights"
        )
    if groups is not None and (groups.dtype != np.int64 or groups.shape != y.shape):
        raise DataError(
            f"{origin}: groups must be int64 ({len(y)},), but are {groups.dtype} {groups.shape}", code="group-shape"
        )


def _check_floats(x: np.ndarray, kind: str, origin: str) -> None:
    for start in range(0, len(x), CHECK_ROWS):
        block = x[start : start + CHECK_ROWS]
        finite = np.isfinite(block)
        if not finite.all():
            row = start + int(np.argwhere(~finite)[0][0])
            raise DataError(f"{origin}: row {row} holds NaN or infinity: fill or remove it", code="not-finite")
        if kind is Kind.IMAGE and np.abs(block).max() > 1:
            raise DataError(
                f"{origin}: float images must lie in [-1, 1], but {np.abs(block).max():g} came", code="pixel-range"
            )


def _check_classes(dataset: Dataset) -> None:
    present = set(np.unique(dataset.train.y).tolist()) - {UNLABELED}
    if not present:
        raise DataError(
            f"{dataset.name}: none of its {len(dataset.train):,} rows has a label: label some of each class",
            code="no-labels",
        )
    if dataset.num_classes < 2:
        raise DataError(
            f"{dataset.name}: two classes are needed, but only {listed(dataset.classes)} came: label more",
            code="one-class",
        )
    missing = [name for index, name in enumerate(dataset.classes) if index not in present]
    if missing:
        raise DataError(
            f"{dataset.name}: every class needs a label, but {listed(missing)} have none", code="class-without-labels"
        )


def _check_held_out(dataset: Dataset, examples: Examples, part: str) -> None:
    origin = f"{dataset.name}, {part} examples"
    check_examples(examples, dataset.kind, dataset.num_classes, origin=origin)
    if examples.x.shape[1:] != dataset.shape or examples.x.dtype != dataset.train.x.dtype:
        raise DataError(
            f"{origin}: must have the type and shape of the training examples, {dataset.train.x.dtype}"
            f" {dataset.shape}, but are {examples.x.dtype} {examples.x.shape[1:]}",
            code="unlike-training",
        )
    if (examples.y == UNLABELED).any():
        raise DataError(
            f"{origin}: {int((examples.y == UNLABELED).sum())} labels are not known: remove those rows",
            code="unlabelled-test",
        )
