"""What to load, what a source gives (examples with labels, before any split), and how networks see one example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.io.progress import NullProgress, Progress

UNLABELED = -1


class Kind(StrEnum):
    """What one example is, among the modalities that ship with the package; registered ones have other names."""

    IMAGE = "image"
    VECTOR = "vector"
    TABLE = "table"
    SOUND = "sound"
    TEXT = "text"


@dataclass(frozen=True)
class Request:
    """What to load."""

    source: str  # the name or the path as given
    label: str | None = None  # the label column, for tables
    data_dir: Path | None = None  # where to look first and download to, for named sources
    text: str | None = None  # the text column, for tables whose examples are sentences
    schema: Path | None = None  # a TOML file that names the types of columns, for tables
    features: Path | None = None  # a .npy of embeddings that stand for the rows of a table
    image_size: str | None = None  # of images in a folder, such as "64" or "64x48"; None chooses by the images
    progress: Progress = field(default_factory=NullProgress)  # receives how far a download or a long read has come

    @property
    def path(self) -> Path:
        return Path(self.source).expanduser()


@dataclass(frozen=True)
class Examples:
    """Examples, their labels and the group each belongs to.

    Attributes:
        x: images (n, channels, height, width), uint8 or float32 in [-1, 1]; vectors (n, features), float32; rows of a
            table (n, columns), float64, NaN where a cell is missing; spectrograms (n, 1, mels, frames), float32; texts
            (n,), UTF-8 bytes. A registered modality may store any array without objects.
    """

    x: np.ndarray
    y: np.ndarray  # int64 (n,), an index into the data set's `classes`, or -1 where the label is not known
    groups: np.ndarray | None = None  # int64 (n,): examples of one group always stay on one side of a split
    weights: np.ndarray | None = None  # float64 (n,), how much each label counts in training; of mean about 1

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class Dataset:
    """A named source with its training examples and, where the source has one, its test set."""

    name: str  # of the source
    kind: str  # a `Kind`, or the name of a registered modality
    classes: tuple[str, ...]  # the label of each class index, as text
    train: Examples  # to split into labelled, unlabelled and validation
    test: Examples | None = None  # the source's test set, or None: then the split takes one from `train`
    feature_names: tuple[str, ...] | None = None  # for vectors that came from named columns
    notes: tuple[str, ...] = ()  # messages for the user (how floats were scaled, which files were skipped)
    metadata: Any = None  # what the encoding needs besides the arrays: the schema of a table, the format of sounds
    validation: Examples | None = None  # labelled rows that the user gave for validation

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one example."""
        return tuple(self.train.x.shape[1:])


@dataclass(frozen=True)
class InputSpec:
    """One example as networks see it.

    `details` are what else the networks of that kind need (the columns of a table, the size of a vocabulary): numbers,
    text, and tuples of them.
    """

    kind: str  # the modality, such as `image`, `vector`, `table`, `sound`, `text`, or a registered one
    shape: tuple[int, ...]  # of the array that `Encoding.encode` makes of one example
    details: tuple[Any, ...] = ()

    @classmethod
    def of(cls, given: InputSpec | Sequence[int]) -> InputSpec:
        """The same, or that of a shape: three sides are an image, anything else is a vector."""
        if isinstance(given, InputSpec):
            return given
        return cls("image" if len(given) == 3 else "vector", tuple(given))
