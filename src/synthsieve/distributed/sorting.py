"""Sorting blocks into parts: a sample tells how each large class is divided, then every row goes to its part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.distributed.job import Job, block_name
from synthsieve.distributed.partition import Splits, drawn, split
from synthsieve.entropy import Reason

# Of each large class a sample of this many rows decides the splits and each part's share of the picks, and of this many
# for each part where there are many parts.
_SAMPLE = 20_000
_SAMPLE_OF_A_PART = 1_000


@dataclass(frozen=True)
class ClassPlan:
    """How one class is chosen from.

    Attributes:
        label: the class index; place: its place among the classes that survived.
        size: how many rows survived.
        count: picks at most; bound: picks until L is at most this, 0 for none.
        splits: its boxes; None for a class that fits one part.
        first_part: the number of its first part among the parts of all classes.
        shares: of the picks, for each part, as seen among the picks of a sample; picks_in_sample: how many those were.
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


def wanted_parts(job: Job, size: int) -> int:
    return -(-size // job.sieving.part_rows)


def sample(job: Job, classes: tuple[ClassPlan, ...], number: int) -> dict[str, Any]:
    """Leave the points of a block that are in the sample of a large class."""
    label, rows = _kept(job, number)
    first_row = job.blocks[number].first_row
    mine = np.zeros(len(rows), dtype=bool)
    for plan in classes:
        parts = wanted_parts(job, plan.size)
        if parts > 1:
            rate = max(_SAMPLE, min(_SAMPLE_OF_A_PART * parts, job.sieving.part_rows)) / plan.size
            of_class = label == plan.label
            mine[of_class] = drawn(first_row, rows[of_class], rate, job.sieving.seed)
    points = job.points(number, rows[mine], label[mine])
    job.work.save(f"sample/{number:06d}", points=points, label=label[mine])
    return {}


def divide(job: Job, classes: tuple[ClassPlan, ...], number: int) -> dict[str, Any]:
    """Splits of one class, and how the picks of its sample are spread over the parts."""
    from synthsieve.distributed.rounds import stream
    from synthsieve.selection.budget import Budget
    from synthsieve.selection.coreset import coreset
    from synthsieve.selection.methods import Method

    plan = classes[number]
    parts = wanted_parts(job, plan.size)
    if parts == 1:
        return {"splits": None}
    found = []
    for block in range(len(job.blocks)):
        name = f"sample/{block:06d}"
        found.append(job.work.load(name, "points")[job.work.load(name, "label") == plan.label])
    points = np.concatenate(found)
    splits = split(points, parts)
    leaf = splits.leaf_of(points)
    if job.sieving.method is Method.RANDOM:
        chosen = leaf
    else:
        count = max(1, min(len(points), round(len(points) * plan.count / plan.size)))
        picks = coreset(
            points,
            np.zeros(len(points), dtype=np.int32),
            Budget(count=count),
            generator=stream(job.sieving.seed, plan.place),
            n_jobs=1,
        )
        chosen = leaf[picks.indices]
    shares = np.bincount(chosen, minlength=splits.num_leaves) / len(chosen)
    return {"splits": splits.as_dict(), "shares": shares.tolist(), "picks": len(chosen)}


def sort(job: Job, classes: tuple[ClassPlan, ...], number: int) -> dict[str, Any]:
    """Leave the points of a block in the order of their parts; return how many each part gets.

    Equal points of a large class become one with a count: however often a point occurs, it takes room once a block.
    Left on disk, m points: points (m, d), row int64 (m,), count float64 (m,), offsets int64 (parts + 1,), and for
    every row of the block which of the m it is, -1 if it was rejected.
    """
    from synthsieve.selection.duplicates import distinct_rows

    label, rows = _kept(job, number)
    points = job.points(number, rows, label)
    part, which = np.empty(len(rows), dtype=np.int64), np.arange(len(rows))
    for plan in classes:
        mine = np.flatnonzero(label == plan.label)
        part[mine] = plan.first_part
        if plan.splits is not None and len(mine):
            part[mine] += plan.splits.leaf_of(points[mine])
            alike = distinct_rows(points, mine.astype(np.int32))
            which[mine] = alike.rows[alike.which]
    first = np.flatnonzero(which == np.arange(len(rows)))
    order = first[np.argsort(part[first], kind="stable")]
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.arange(len(order))
    num_parts = sum(plan.num_parts for plan in classes)
    sizes = np.bincount(part[order], minlength=num_parts)
    told = np.full(job.blocks[number].num_rows, -1, dtype=np.int64)
    told[rows] = place[which]
    job.work.save(
        block_name(number),
        points=points[order],
        row=rows[order] + job.blocks[number].first_row,
        count=np.bincount(place[which], minlength=len(order)).astype(np.float64),
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        which=told,
    )
    return {"sizes": [[part, size] for part, size in enumerate(sizes.tolist()) if size]}


def _kept(job: Job, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes and places of the rows of a block that survived."""
    rows = np.flatnonzero(job.work.load(block_name(number), "reason") == Reason.KEPT)
    return np.array(job.work.load(block_name(number), "label"))[rows], rows
