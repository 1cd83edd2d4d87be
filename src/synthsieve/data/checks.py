"""What every data set must satisfy before any training, whichever source it came from."""

from __future__ import annotations

import numpy as np

from synthsieve.data.dataset import UNLABELED, Dataset, Examples, Kind
from synthsieve.data.labels import listed
from synthsieve.errors import DataError

CHECK_ROWS = 4096


def check_dataset(dataset: Dataset) -> None:
    """Raise a `DataError` that names the first thing wrong with `dataset`."""
    check_examples(dataset.train, dataset.kind, dataset.num_classes, origin=f"{dataset.name}, training examples")
    _check_classes(dataset)
    for part, examples in (("validation", dataset.validation), ("test", dataset.test)):
        if examples is not None:
            _check_held_out(dataset, examples, part)


def check_examples(examples: Examples, kind: str, num_classes: int, *, origin: str) -> None:
    """Shapes, dtypes, ranges and lengths of one set of examples."""
    x, y, groups = examples.x, examples.y, examples.groups
    if len(x) == 0:
        raise DataError(f"{origin}: at least one row is needed, but none came")
    if len(x) != len(y):
        raise DataError(f"{origin}: every example needs one label, but {len(x)} examples came with {len(y)} labels")
    if kind is Kind.IMAGE and (x.ndim != 4 or x.dtype not in (np.uint8, np.float32)):
        raise DataError(
            f"{origin}: images must be uint8 or float32 (n, channels, height, width), but came as {x.dtype} {x.shape}"
        )
    if kind is Kind.VECTOR and (x.ndim != 2 or x.dtype != np.float32):
        raise DataError(f"{origin}: vectors must be float32 (n, features), but came as {x.dtype} {x.shape}")
    if kind is Kind.TABLE and (x.ndim != 2 or x.dtype != np.float64):
        raise DataError(f"{origin}: rows must be float64 (n, columns), but came as {x.dtype} {x.shape}")
    if kind is Kind.SOUND and (x.ndim != 4 or x.dtype != np.float32):
        raise DataError(f"{origin}: spectrograms must be float32 (n, 1, mels, frames), but came as {x.dtype} {x.shape}")
    if kind is Kind.TEXT and (x.ndim != 1 or x.dtype.kind != "S"):
        raise DataError(f"{origin}: texts must be UTF-8 bytes (n,), but came as {x.dtype} {x.shape}")
    if x.dtype.hasobject:
        raise DataError(f"{origin}: examples must be an array without objects, but came as {x.dtype}: convert them")
    if 0 in x.shape:
        raise DataError(f"{origin}: an example must hold at least one number, but came with shape {x.shape[1:]}")
    if x.dtype == np.float32 and isinstance(kind, Kind):
        _check_floats(x, kind, origin)
    if y.ndim != 1 or y.dtype != np.int64:
        raise DataError(f"{origin}: labels must be int64 (n,), but came as {y.dtype} {y.shape}")
    if y.min() < UNLABELED or y.max() >= num_classes:
        raise DataError(
            f"{origin}: labels must lie in 0..{num_classes - 1}, or be -1 for unlabelled, but {y.min()}..{y.max()} came"
        )
    weights = examples.weights
    if weights is not None and (weights.shape != y.shape or not (np.isfinite(weights).all() and (weights >= 0).all())):
        raise DataError(f"{origin}: weights must be finite and 0 or more, one for each of {len(y)} rows")
    if groups is not None and (groups.dtype != np.int64 or groups.shape != y.shape):
        raise DataError(
            f"{origin}: groups must be int64, one for each of {len(y)} rows, but came as {groups.dtype} {groups.shape}"
        )


def _check_floats(x: np.ndarray, kind: str, origin: str) -> None:
    for start in range(0, len(x), CHECK_ROWS):
        block = x[start : start + CHECK_ROWS]
        finite = np.isfinite(block)
        if not finite.all():
            row = start + int(np.argwhere(~finite)[0][0])
            raise DataError(
                f"{origin}: every value must be finite, but row {row} holds NaN or infinity: fill or remove it"
            )
        if kind is Kind.IMAGE and np.abs(block).max() > 1:
            raise DataError(
                f"{origin}: float images must lie in [-1, 1], but {np.abs(block).max():g} came: rescale them"
            )


def _check_classes(dataset: Dataset) -> None:
    present = np.unique(dataset.train.y[dataset.train.y != UNLABELED])
    if len(present) == 0:
        raise DataError(
            f"{dataset.name}: none of its {len(dataset.train):,} rows has a label: label at least one row of each class"
        )
    if dataset.num_classes < 2:
        raise DataError(
            f"{dataset.name}: at least two classes are needed, but only {listed(dataset.classes)} came:"
            " add labelled examples of another class"
        )
    missing = [dataset.classes[i] for i in sorted(set(range(dataset.num_classes)) - set(present.tolist()))]
    if missing:
        raise DataError(
            f"{dataset.name}: every class needs a labelled training example, but {listed(missing)} have none"
        )


def _check_held_out(dataset: Dataset, examples: Examples, part: str) -> None:
    origin = f"{dataset.name}, {part} examples"
    check_examples(examples, dataset.kind, dataset.num_classes, origin=origin)
    if examples.x.shape[1:] != dataset.shape or examples.x.dtype != dataset.train.x.dtype:
        raise DataError(
            f"{origin}: must look like the training examples, {dataset.train.x.dtype} {dataset.shape},"
            f" but are {examples.x.dtype} {examples.x.shape[1:]}"
        )
    if (examples.y == UNLABELED).any():
        raise DataError(
            f"{origin}: every {part} label must be known, but {int((examples.y == UNLABELED).sum())} are not:"
            " remove those rows"
        )
