"""A test or validation set in a file of its own, read as the training data were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from synthsieve.data.dataset import UNLABELED, Dataset, Examples, Kind
from synthsieve.data.in_memory import Held
from synthsieve.data.labels import listed
from synthsieve.data.new_examples import Learned, read_new
from synthsieve.data.sources import load
from synthsieve.errors import DataError
from synthsieve.progress import Progress


def with_own_set(
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
        raise DataError(f"{dataset.name} has a {part} set already: leave --{part} out, or remove that set")
    if features or dataset.kind == Kind.SOUND:
        raise DataError(
            f"--{part} takes a table, an .npz or a folder of images: put other data into {part}/ beside train/"
        )
    size = f"{dataset.shape[2]}x{dataset.shape[1]}" if dataset.kind == Kind.IMAGE and path.is_dir() else None
    own = load(str(path), label=label, text=text, image_size=size, progress=progress)
    if own.kind != dataset.kind:
        raise DataError(f"{path} must hold what the training data hold, {dataset.kind}s, but holds {own.kind}s")
    x = own.train.x
    if not path.is_dir():
        names = dataset.feature_names or ()
        learned = Learned(Held(x[:0], dataset.kind, dataset.about), dataset.shape, names, label=label, text=text)
        x = read_new(path, learned, progress=progress).x
    if x.shape[1:] != dataset.train.x.shape[1:]:
        raise DataError(f"examples of {path} must have shape {dataset.shape}, but came with {x.shape[1:]}")
    y = _as_classes_of(dataset, own, path)
    known = y != UNLABELED
    notes = (f"{path.name}: {int((~known).sum()):,} rows without a label are left out",) if not known.all() else ()
    dataset = replace(dataset, notes=(*dataset.notes, *notes))
    examples = Examples(x[known], y[known])
    return replace(dataset, test=examples) if part == "test" else replace(dataset, validation=examples)


def _as_classes_of(dataset: Dataset, own: Dataset, path: Path) -> np.ndarray:
    """Labels of `own` as indices into the classes of `dataset`: int64 (n,), -1 for unlabelled."""
    strangers = [name for name in own.classes if name not in dataset.classes]
    if strangers:
        raise DataError(
            f"{path}: labels must be among the training classes {listed(dataset.classes)}, but {listed(strangers)}"
            " came: give every class a training label, or remove these rows"
        )
    place = np.array([*(dataset.classes.index(name) for name in own.classes), UNLABELED], dtype=np.int64)
    return np.asarray(place[own.train.y])
