"""What every worker of a selection on a cluster knows, and the reads that several stages share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from synthsieve.distributed.selection.blocks import Block
from synthsieve.distributed.selection.partition import Splits
from synthsieve.distributed.selection.work_dir import WorkFolder
from synthsieve.errors import SelectionError
from synthsieve.selection import validation
from synthsieve.selection.gradients import residuals_of
from synthsieve.selection.options import SelectionOptions
from synthsieve.selection.tables import Shards, batches, read_labels, read_matrix


@dataclass(frozen=True)
class Job:
    """A selection from files.

    Attributes:
        shards: the files; blocks: their rows in blocks.
        work: the folder for arrays between stages; every worker must see it under the same name.
        options: how to filter and select.
        classes: the label of each output column, or of each class index; None where labels are indices.
        widths: how many numbers a row has of each kind of output.
    """

    shards: Shards
    blocks: tuple[Block, ...]
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
    def num_parts(self) -> int:
        return 1 if self.splits is None else self.splits.num_leaves

    @property
    def parts(self) -> range:
        return range(self.first_part, self.first_part + self.num_parts)

    @property
    def name(self) -> str:
        return f"classes/{self.label:06d}"


def block_name(number: int) -> str:
    return f"blocks/{number:06d}"


def sample_name(number: int) -> str:
    return f"sample/{number:06d}"


def part_name(number: int) -> str:
    return f"parts/{number:06d}"
