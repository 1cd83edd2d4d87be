"""What a source gives: examples with labels, before any split."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

UNLABELED = -1


class Kind(StrEnum):
    """What one example is, among the modalities that ship with the package; registered ones have other names."""

    IMAGE = "image"
    VECTOR = "vector"
    TABLE = "table"
    SOUND = "sound"
    TEXT = "text"


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
