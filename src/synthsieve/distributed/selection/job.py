"""What every worker of a selection on a cluster knows: files in blocks of rows, arrays between stages, class plans."""

from __future__ import annotations

import os
import shutil
import uuid
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.distributed.selection.partition import Splits
from synthsieve.errors import SelectionError
from synthsieve.io.parquet import arrow_source
from synthsieve.selection import validation
from synthsieve.selection.gradients import residuals_of
from synthsieve.selection.options import SelectionOptions
from synthsieve.selection.tables import Shards, batches, read_labels, read_matrix, readable_parquet

HIDDEN = ".synthsieve-work"
# A block's numbers, as float64, and its rows.
_MAX_BYTES = 64_000_000
_MAX_ROWS = 250_000


@dataclass(frozen=True)
class RowBlock:
    """The rows that one task reads: `start` to `stop` of one file; `first_row` is the number of the first in all."""

    file: Path
    start: int
    stop: int
    first_row: int

    @property
    def num_rows(self) -> int:
        return self.stop - self.start


def rows_in_a_block(width: int) -> int:
    """How many rows of `width` numbers are read at a time."""
    return max(1_000, min(_MAX_ROWS, _MAX_BYTES // (8 * max(1, width))))


def cut(shards: Shards, rows: int) -> tuple[RowBlock, ...]:
    """All rows in blocks of one file each, of about `rows` rows: whole row groups, unless one alone is twice as large.

    A row group is decoded from its start, so pieces of one cost more than a group of their size.
    """
    import pyarrow.parquet as pq

    found, first_row = [], 0
    for file in shards.files:
        with readable_parquet(file), pq.ParquetFile(arrow_source(file)) as parquet:
            groups = range(parquet.metadata.num_row_groups)
            ends = list(accumulate(parquet.metadata.row_group(group).num_rows for group in groups))
        start = 0
        for stop in _stops(ends, rows):
            found.append(RowBlock(file, start, stop, first_row))
            first_row += stop - start
            start = stop
    return tuple(found)


def _stops(ends: list[int], rows: int) -> list[int]:
    """Where blocks end, for row groups that end at `ends`."""
    stops: list[int] = []
    start = before = 0
    for end in ends:
        if before > start and end - start > rows:
            stops.append(before)
            start = before
        pieces, size = -(-(end - start) // (2 * rows)), end - start
        if pieces > 1:
            stops += [start + size * piece // pieces for piece in range(1, pieces + 1)]
            start = end
        before = end
    return [*stops, before] if before > start else stops


@dataclass(frozen=True)
class WorkFolder:
    """Arrays on disk between the stages, one .npy file each, without pickle.

    A hidden folder inside the output folder, so that finished files are moved into place by a rename.
    """

    path: Path

    @classmethod
    def within(cls, out: Path) -> WorkFolder:
        """The empty work folder of `out`; files of an earlier, interrupted job are removed."""
        work = cls(out / HIDDEN)
        work.remove()
        work.path.mkdir(parents=True)
        return work

    def place(self, kind: str, number: int) -> Path:
        return self.path / kind / f"{number:06d}"

    def save(self, kind: str, number: int, **arrays: np.ndarray) -> None:
        """Each array as KIND/NUMBER/KEY.npy, atomically, but not synced to disk."""
        folder = self.place(kind, number)
        folder.mkdir(parents=True, exist_ok=True)
        for key, array in arrays.items():
            partial = folder / f".{key}.{uuid.uuid4().hex}.partial"  # two workers may both run a task
            with partial.open("wb") as file:
                np.save(file, array, allow_pickle=False)
            os.replace(partial, folder / f"{key}.npy")

    def load(self, kind: str, number: int, key: str) -> np.ndarray:
        """KIND/NUMBER/KEY.npy, memory-mapped."""
        array: np.ndarray = np.load(self.place(kind, number) / f"{key}.npy", mmap_mode="r", allow_pickle=False)
        return array

    def publish(self, name: str, target: Path) -> None:
        """Give a finished file or folder its final name, replacing an earlier one."""
        if target.is_dir():
            shutil.rmtree(target)
        os.replace(self.path / name, target)

    def remove(self, kind: str = "") -> None:
        """Remove the arrays of one kind, or everything."""
        shutil.rmtree(self.path / kind, ignore_errors=True)


@dataclass(frozen=True)
class SelectionJob:
    """A selection from files; every worker must see the folder `work` under the same name.

    `classes` are the labels of the output columns, or of the class indices; None where labels are indices. `widths`
    is how many numbers a row has of each kind of output.
    """

    shards: Shards
    blocks: tuple[RowBlock, ...]
    work: WorkFolder
    options: SelectionOptions
    classes: tuple[Any, ...] | None = None
    widths: dict[str, int] = field(default_factory=dict)

    @property
    def output(self) -> str | None:
        """What entropies are computed from: logits before probabilities; None with gradients alone."""
        return next((kind for kind in ("logits", "probabilities") if kind in self.shards.outputs), None)

    def read_labels(self, number: int) -> np.ndarray:
        """The labels of a block as in the file."""
        block = self.blocks[number]
        return read_labels(batches(block.file, [self.shards.label], block.start, block.stop), self.shards.label)

    def read_output(self, number: int, kind: str) -> np.ndarray:
        """Logits, probabilities or gradients of a block, checked: (n, d)."""
        block, columns = self.blocks[number], self.shards.outputs[kind]
        read = read_matrix(batches(block.file, columns, block.start, block.stop), columns, block.num_rows)
        if read.shape[1] != self.widths.get(kind, read.shape[1]):
            raise SelectionError(
                f"expected lists of {self.widths[kind]} numbers in {columns[0]} as in the first row, "
                f"got {read.shape[1]} in row {block.first_row}: correct those rows",
                code="ragged",
            )
        if kind == "probabilities":
            return validation.probabilities(read, first_row=block.first_row)
        return validation.matrix(read, kind, first_row=block.first_row)

    def points(self, number: int, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The points that distances are measured between, of some rows of a block and their classes: (m, d)."""
        if "gradients" in self.shards.outputs:
            return self.read_output(number, "gradients")[rows]
        assert self.output is not None
        return residuals_of(self.read_output(number, self.output)[rows], self.output, labels)

    def wanted_parts(self, size: int) -> int:
        """Into how many parts a class of `size` rows is split."""
        return -(-size // self.options.part_rows)


@dataclass(frozen=True)
class ClassPlan:
    """How one class is selected from.

    Attributes:
        label: the class index; place: its place among the classes that survived.
        size: how many rows survived.
        count: maximum number of picks; bound: stop when L is at most this, 0 for none.
        splits: the boxes of its parts; None for a class in one part.
        first_part: the number of its first part among the parts of all classes.
        shares: of the picks, for each part, estimated from the picks of a sample; picks_in_sample: how many those were.
    """

    label: int
    place: int
    size: int
    count: int
    bound: float
    splits: Splits | None = None
    first_part: int = 0
    shares: tuple[float, ...] = (1.0,)
    picks_in_sample: int = 1

    @property
    def parts(self) -> range:
        return range(self.first_part, self.first_part + (1 if self.splits is None else self.splits.num_leaves))
