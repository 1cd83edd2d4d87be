"""What every piece of a selection must know, and the few reads that several stages share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from synthsieve.distributed.blocks import Block
from synthsieve.distributed.work_folder import WorkFolder
from synthsieve.errors import SelectionError
from synthsieve.selection import door
from synthsieve.selection.gradients import residuals_of_logits, residuals_of_probabilities
from synthsieve.selection.methods import Method
from synthsieve.shards import Shards, batches, read_labels, read_matrix


@dataclass(frozen=True)
class Sieving:
    """How rows are filtered and picks are chosen: as in `sieve.select`.

    Attributes:
        part_rows: a class of more rows is chosen from in parts of about this many.
        memory_limit: bytes that choosing in one part may use beyond its points.
    """

    entropy_ceiling: float | None = None
    keep_fraction: float | None = None
    keep_per_class: bool = False
    require_label: bool = False
    method: Method = Method.AUTO
    refine: bool = False
    memory_limit: int | None = None
    part_rows: int = 100_000
    seed: int = 0


@dataclass(frozen=True)
class Job:
    """A selection from files, as every worker sees it.

    Attributes:
        shards: the files; blocks: their rows in blocks.
        work: where arrays lie between stages; every worker must see it under the same name.
        sieving: what was asked.
        classes: the label of each column of the answers, or of each class index; None where labels are indices.
        widths: how many numbers a row has of each kind of answers, where that is known.
    """

    shards: Shards
    blocks: tuple[Block, ...]
    work: WorkFolder
    sieving: Sieving
    classes: tuple[Any, ...] | None = field(default=None)
    widths: dict[str, int] = field(default_factory=dict)

    @property
    def judged_by(self) -> str | None:
        """What entropies come from: logits before probabilities; None with gradients alone."""
        return next((kind for kind in ("logits", "probabilities") if kind in self.shards.answers), None)

    def named_labels(self, number: int) -> np.ndarray:
        """The labels of a block as the file has them."""
        block = self.blocks[number]
        return read_labels(batches(block.file, [self.shards.label], block.start, block.stop), self.shards.label)

    def answers(self, number: int, kind: str) -> np.ndarray:
        """Logits, probabilities or gradients of a block, checked: (n, d)."""
        block, columns = self.blocks[number], self.shards.answers[kind]
        read = read_matrix(batches(block.file, columns, block.start, block.stop), columns, block.num_rows)
        if read.shape[1] != self.widths.get(kind, read.shape[1]):
            raise SelectionError(
                f"expected lists of {self.widths[kind]} numbers in {columns[0]} as in the first row, "
                f"got {read.shape[1]} in row {block.first_row}: repair the odd rows"
            )
        if kind == "probabilities":
            return door.probabilities(read, first_row=block.first_row)
        return door.matrix(read, kind, first_row=block.first_row)

    def points(self, number: int, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """What distances are measured between, of some rows of a block and their classes: (len(rows), d)."""
        if "gradients" in self.shards.answers:
            return self.answers(number, "gradients")[rows]
        assert self.judged_by is not None
        residuals = residuals_of_logits if self.judged_by == "logits" else residuals_of_probabilities
        return residuals(self.answers(number, self.judged_by)[rows], labels)


def block_name(number: int) -> str:
    return f"blocks/{number:06d}"


def part_name(number: int) -> str:
    return f"parts/{number:06d}"
