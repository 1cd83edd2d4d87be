"""A split and its file, `split.json`: the indices of every part, their hash, and a fingerprint of the data."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.dataset import UNLABELED, Dataset
from synthsieve.data.labels import listed
from synthsieve.errors import DataError
from synthsieve.io.files import parse_json, write_json

FORMAT = "synthsieve split 1"
PARTS = ("labeled", "unlabeled", "validation", "test", "excluded")
FINGERPRINT_ROWS = 256
MAX_ROWS = 100_000_000  # of one part: a range of a few characters could claim any number


@dataclass(frozen=True, eq=False)
class Split:
    """Sorted int64 indices of each part.

    Attributes:
        source: name of the data set.
        classes: its classes.
        seed: what the split was drawn with.
        labeled: rows of `dataset.train` whose labels training sees.
        unlabeled: rows of `dataset.train` whose labels training does not see, known or not.
        validation: rows that choose the model, of `dataset.validation` if `validation_is_own`, else of `dataset.train`.
        test: rows of `dataset.test` if `test_is_own`, otherwise of `dataset.train`.
        excluded: rows used nowhere: without a label, yet of a group that is held out.
        test_is_own: whether the publisher's test set is used.
        grouped: whether groups were kept on one side.
        fingerprint: SHA-256 of the labels, the shapes and a sample of the values of the data set.
        counts: part -> class -> rows; rows without a known label are not counted.
        notes: messages for the user.
        validation_is_own: whether the user's own validation set is used.
    """

    source: str
    classes: tuple[str, ...]
    seed: int
    labeled: np.ndarray
    unlabeled: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    excluded: np.ndarray
    test_is_own: bool
    grouped: bool
    fingerprint: str
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    validation_is_own: bool = False

    @cached_property
    def hash(self) -> str:
        """SHA-256 over every part: its name, its length and its indices as little-endian int64."""
        digest = hashlib.sha256(f"test_is_own={self.test_is_own}".encode())
        if self.validation_is_own:
            digest.update(b"/validation_is_own")
        for part in PARTS:
            indices = np.ascontiguousarray(getattr(self, part), dtype="<i8")
            digest.update(f"/{part}/{len(indices)}/".encode())
            digest.update(indices.tobytes())
        return digest.hexdigest()

    def visible_labels(self, dataset: Dataset) -> np.ndarray:
        """Labels of `dataset.train` as training may see them: int64 (n,), -1 everywhere but in `labeled`."""
        y = np.full(len(dataset.train), UNLABELED, dtype=np.int64)
        y[self.labeled] = dataset.train.y[self.labeled]
        return y

    def check_against(self, dataset: Dataset) -> None:
        """Raise a `DataError` unless this split was made from this very data set."""
        if self.classes != dataset.classes:
            raise DataError(
                f"the split has classes {listed(self.classes)}, but {dataset.name!r} {listed(dataset.classes)}",
                code="other-data",
            )
        if self.fingerprint != fingerprint(dataset):
            raise DataError(
                f"the split of {self.source!r} was made from other rows or labels than {dataset.name!r} has now",
                code="other-data",
            )

    def to_json(self) -> dict[str, Any]:
        """The manifest: readable figures first, then each part's indices as ranges."""
        return {
            "format": FORMAT,
            "source": self.source,
            "seed": self.seed,
            "hash": self.hash,
            "fingerprint": self.fingerprint,
            "classes": list(self.classes),
            "test_is_own": self.test_is_own,
            "validation_is_own": self.validation_is_own,
            "grouped": self.grouped,
            "notes": list(self.notes),
            "sizes": {part: len(getattr(self, part)) for part in PARTS},
            "counts": self.counts,
            "indices": {part: ranges_of(getattr(self, part)) for part in PARTS},
        }

    def write(self, path: Path) -> None:
        """Write the manifest, atomically."""
        write_json(path, self.to_json())

    @staticmethod
    def from_json(value: Any, *, origin: str = "the split") -> Split:
        """The split of a manifest; one whose indices do not have the hash it states is refused."""
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise DataError(
                f"{origin} is not a split manifest of format {FORMAT!r}: make a new split", code="unknown-format"
            )
        try:
            parts = {part: indices_of(value["indices"][part]) for part in PARTS}
            split = Split(
                source=str(value["source"]),
                classes=_texts(value["classes"]),
                seed=int(value["seed"]),
                test_is_own=bool(value["test_is_own"]),
                validation_is_own=bool(value.get("validation_is_own", False)),
                grouped=bool(value["grouped"]),
                fingerprint=str(value["fingerprint"]),
                counts=_counts(value["counts"]),
                notes=_texts(value["notes"]),
                **parts,
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DataError(f"{origin} is damaged ({error!r}): make a new split", code="damaged-file") from None
        if split.hash != value.get("hash"):
            raise DataError(f"{origin} was changed: its hash is wrong: make a new split", code="damaged-file")
        return split

    @staticmethod
    def read(path: Path) -> Split:
        """Read a manifest and check its hash."""
        try:
            value = parse_json(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(
                f"{path} cannot be read as a split manifest ({error}): make a new split", code="damaged-file"
            ) from None
        return Split.from_json(value, origin=str(path))


def _texts(value: list[str]) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError("classes and notes must be lists of text")
    return tuple(value)


def _counts(value: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    if any(not isinstance(number, int) for each in value.values() for number in each.values()):
        raise ValueError("counts must be whole numbers")
    return value


def fingerprint(dataset: Dataset) -> str:
    """SHA-256 of shapes, classes, all labels and groups, and the values of up to 256 evenly spaced rows of each set."""
    # Class names may come from folders whose names are not UTF-8, which Python holds as lone surrogates.
    digest = hashlib.sha256("\n".join((dataset.kind, *dataset.classes)).encode(errors="surrogatepass"))
    for examples in (dataset.train, dataset.test, dataset.validation):
        if examples is None:
            continue
        digest.update(f"/{examples.x.dtype}{examples.x.shape}/".encode())
        digest.update(np.ascontiguousarray(examples.y, dtype="<i8").tobytes())
        if examples.groups is not None:
            digest.update(np.ascontiguousarray(examples.groups, dtype="<i8").tobytes())
        rows = np.unique(np.linspace(0, len(examples) - 1, FINGERPRINT_ROWS).astype(np.int64))
        digest.update(np.ascontiguousarray(examples.x[rows]).tobytes())
    return digest.hexdigest()


def ranges_of(indices: np.ndarray) -> str:
    """Sorted indices as ranges: [0, 1, 2, 5, 7, 8] -> "0-2,5,7-8"."""
    if len(indices) == 0:
        return ""
    breaks = np.flatnonzero(np.diff(indices) != 1)
    starts = indices[np.concatenate([[0], breaks + 1])].tolist()
    ends = indices[np.concatenate([breaks, [len(indices) - 1]])].tolist()
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def indices_of(ranges: str) -> np.ndarray:
    """The inverse of `ranges_of`; ranges that are not in rising order are refused."""
    pieces: list[np.ndarray] = []
    last, count = -1, 0
    for item in ranges.split(",") if ranges else []:
        start, _, end = item.partition("-")
        first, final = int(start), int(end or start)
        count += final + 1 - first
        if not last < first <= final < 1 << 62:
            raise ValueError(f"range {item[:50]!r} out of order")
        if count > MAX_ROWS:
            raise ValueError(f"more than {MAX_ROWS:,} rows")
        pieces.append(np.arange(first, final + 1, dtype=np.int64))
        last = final
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)
