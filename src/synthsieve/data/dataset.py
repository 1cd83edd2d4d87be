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
        y: int64 (n,), an index into the data set's `classes`, or -1 where the label is not known.
        groups: int64 (n,) or None. Examples of one group (the digits of one photo) always stay on one side of a split.
        weights: float64 (n,) or None, how much each label counts in training; of mean about 1.
    """

    x: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None = None
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class Dataset:
    """A named source with its training examples and, where the source has one, its test set.

    Attributes:
        name: of the source.
        kind: a `Kind`, or the name of a registered modality.
        classes: the label of each class index, as text.
        train: the examples to split into labelled, unlabelled and validation.
        test: the source's test set, or None: then the split takes one from `train`.
        feature_names: for vectors that came from named columns.
        metadata: what the encoding needs beside the arrays: the schema of a table, the format of sounds, the range of
            pixel values that became [-1, 1].
        notes: messages for the user (how floats were scaled, which files were skipped).
        validation: labelled rows that the user gave for validation, or None: then the split takes some from `train`.
    """

    name: str
    kind: str
    classes: tuple[str, ...]
    train: Examples
    test: Examples | None = None
    feature_names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    metadata: Any = None
    validation: Examples | None = None

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one example."""
        return tuple(self.train.x.shape[1:])
