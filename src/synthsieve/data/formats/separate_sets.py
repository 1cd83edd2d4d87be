"""A test or validation set in a separate file, read in the same way as the training data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from synthsieve.data.dataset import UNLABELED, Dataset, Examples, Kind
from synthsieve.data.formats.new_examples import ExpectedInput, read_new
from synthsieve.data.in_memory import InMemoryData
from synthsieve.data.labels import listed
from synthsieve.data.registry import load
from synthsieve.errors import DataError
from synthsieve.io.progress import Progress


def with_separate_set(
    dataset: Dataset,
    part: str,
    path: Path,
    *,
    label: str | None = None,
    text: str | None = None,
    features: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """The data set with the labelled examples at `path` as its `test` or `validation` part.

    Columns are read by the schema of the training data; rows without a label are left out.
    """
    if getattr(dataset, part) is not None:
        raise DataError(f"{dataset.name} already has a {part} set: omit --{part}, or remove that set", code="has-set")
    if features or dataset.kind == Kind.SOUND:
        raise DataError(
            f"--{part} takes a table, an .npz or images: put others into {part}/ beside train/", code="unsupported-set"
        )
    size = f"{dataset.shape[2]}x{dataset.shape[1]}" if dataset.kind == Kind.IMAGE and path.is_dir() else None
    separate = load(str(path), label=label, text=text, image_size=size, progress=progress)
    if separate.kind != dataset.kind:
        raise DataError(f"{path} must hold {dataset.kind}s, but holds {separate.kind}s", code="unlike-training")
    x = separate.train.x
    if not path.is_dir():
        names = dataset.feature_names or ()
        expected = ExpectedInput(
            InMemoryData(x[:0], dataset.kind, dataset.metadata), dataset.shape, names, label=label, text=text
        )
        x = read_new(path, expected, progress=progress).x
    if x.shape[1:] != dataset.train.x.shape[1:]:
        raise DataError(
            f"examples of {path} must have shape {dataset.shape}, but came with {x.shape[1:]}", code="unlike-training"
        )
    y = _class_indices(dataset, separate, path)
    known = y != UNLABELED
    notes = (f"{path.name}: {int((~known).sum()):,} rows without a label are left out",) if not known.all() else ()
    dataset = replace(dataset, notes=(*dataset.notes, *notes))
    examples = Examples(x[known], y[known])
    return replace(dataset, test=examples) if part == "test" else replace(dataset, validation=examples)


def _class_indices(dataset: Dataset, separate: Dataset, path: Path) -> np.ndarray:
    """Labels of `separate` as indices into the classes of `dataset`: int64 (n,), -1 for unlabelled."""
    unknown = [name for name in separate.classes if name not in dataset.classes]
    if unknown:
        raise DataError(
            f"{path}: labels must be among the training classes {listed(dataset.classes)}, but {listed(unknown)}"
            " came: give every class a training label, or remove these rows",
            code="unknown-class",
        )
    place = np.array([*(dataset.classes.index(name) for name in separate.classes), UNLABELED], dtype=np.int64)
    return np.asarray(place[separate.train.y])
