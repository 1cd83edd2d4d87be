"""The stages that process blocks of rows: scan labels, score, sample, sort into parts, write."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from synthsieve.distributed.selection.job import ClassPlan, SelectionJob
from synthsieve.distributed.selection.partition import is_sampled
from synthsieve.io.files import atomic_write
from synthsieve.io.parquet import arrow_source
from synthsieve.selection import validation
from synthsieve.selection.entropy import PrecisionWarning, Reason, entropy_of
from synthsieve.selection.files import write_selected
from synthsieve.selection.result import outcome_table, row_columns
from synthsieve.selection.tables import batches

OUTCOMES, SELECTED = "selection", "selected"
# A sample of this many rows of each large class decides the splits and each part's share of the picks; with many parts,
# this many for each.
_SAMPLE = 20_000
_SAMPLE_OF_A_PART = 1_000


def scan_labels(job: SelectionJob, number: int) -> dict[str, Any]:
    """The labels that occur in a block."""
    return {"labels": np.unique(validation.label_array(job.read_labels(number))).tolist()}


def score(job: SelectionJob, number: int) -> dict[str, Any]:
    """Save class, entropy and contradiction of every row of a block."""
    labels, kind = job.read_labels(number), job.output
    if kind is None:
        assert job.classes is not None
        label = validation.index_among(np.asarray(job.classes), validation.label_array(labels))
        nothing = {"entropy": np.full(len(label), np.nan), "contradicted": np.zeros(len(label), dtype=bool)}
        job.work.save("blocks", number, label=label, **nothing)
        return {"columns": 0, "warnings": []}
    output = job.read_output(number, kind)
    first_row, ceiling = job.blocks[number].first_row, job.options.entropy_ceiling
    label = validation.column_labels(labels, output.shape[1], job.classes, first_row=first_row).indices
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrecisionWarning)
        entropy = entropy_of(output, kind, entropy_ceiling=ceiling)  # type: ignore[arg-type]
    contradicted = output.argmax(axis=1) != label
    job.work.save("blocks", number, label=label, entropy=entropy, contradicted=contradicted)
    return {"columns": output.shape[1], "warnings": [str(warning.message) for warning in caught]}


def sample(job: SelectionJob, classes: tuple[ClassPlan, ...], number: int) -> dict[str, Any]:
    """Save the points of a block that are in the sample of a large class."""
    label, rows = _kept(job, number)
    first_row = job.blocks[number].first_row
    sampled = np.zeros(len(rows), dtype=bool)
    for plan in classes:
        parts = job.wanted_parts(plan.size)
        if parts > 1:
            rate = max(_SAMPLE, min(_SAMPLE_OF_A_PART * parts, job.options.part_rows)) / plan.size
            of_class = label == plan.label
            sampled[of_class] = is_sampled(first_row, rows[of_class], rate, job.options.seed)
    points = job.points(number, rows[sampled], label[sampled])
    job.work.save("sample", number, points=points, label=label[sampled])
    return {}


def sort(job: SelectionJob, classes: tuple[ClassPlan, ...], number: int) -> dict[str, Any]:
    """Save the points of a block in the order of their parts; return how many each part gets.

    Equal points of a large class are merged into one. Saved for m points: points (m, d), row int64 (m,),
    multiplicity float64 (m,), offsets int64 (parts + 1,), and for every row of the block which of the m it is, or -1.
    """
    from synthsieve.selection.duplicates import distinct_rows

    label, rows = _kept(job, number)
    points = job.points(number, rows, label)
    part, which = np.empty(len(rows), dtype=np.int64), np.arange(len(rows))
    for plan in classes:
        of_class = np.flatnonzero(label == plan.label)
        part[of_class] = plan.first_part
        if plan.splits is not None and len(of_class):
            part[of_class] += plan.splits.leaf_of(points[of_class])
            distinct = distinct_rows(points, of_class.astype(np.int32))
            which[of_class] = distinct.rows[distinct.which]
    first = np.flatnonzero(which == np.arange(len(rows)))
    order = first[np.argsort(part[first], kind="stable")]
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.arange(len(order))
    sizes = np.bincount(part[order], minlength=sum(len(plan.parts) for plan in classes))
    which_point = np.full(job.blocks[number].num_rows, -1, dtype=np.int64)
    which_point[rows] = place[which]
    job.work.save(
        "blocks",
        number,
        points=points[order],
        row=rows[order] + job.blocks[number].first_row,
        multiplicity=np.bincount(place[which], minlength=len(order)).astype(np.float64),
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        which=which_point,
    )
    return {"sizes": [[part, size] for part, size in enumerate(sizes.tolist()) if size]}


def _kept(job: SelectionJob, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes and places of the rows of a block that survived."""
    rows = np.flatnonzero(job.work.load("blocks", number, "reason") == Reason.KEPT)
    return np.array(job.work.load("blocks", number, "label"))[rows], rows


def write(job: SelectionJob, number: int) -> dict[str, Any]:
    """Write the outcome of every row of a block and its selected rows, a Parquet file each."""
    import pyarrow.parquet as pq

    block, outcome = job.blocks[number], outcome_table(_row_columns(job, number))
    name = f"part-{number:05d}.parquet"
    with atomic_write(job.work.path / OUTCOMES / name) as partial, partial.open("wb") as file:
        pq.write_table(outcome, file)
    schema = pq.read_schema(arrow_source(block.file))
    with atomic_write(job.work.path / SELECTED / name) as partial:
        write_selected(partial, schema, batches(block.file, None, block.start, block.stop), outcome)
    return {}


def _row_columns(job: SelectionJob, number: int) -> dict[str, np.ndarray]:
    """The columns of `Selection.rows` for one block."""
    block = job.blocks[number]
    which = job.work.load("blocks", number, "which")
    assignment = np.full(block.num_rows, -1, dtype=np.int64)
    assignment[which >= 0] = _assignment(job, number)[which[which >= 0]]
    picked = job.work.load("picks", 0, "row")
    span = slice(*np.searchsorted(picked, [block.first_row, block.first_row + block.num_rows]).tolist())
    picks = {key: np.array(job.work.load("picks", 0, key)[span]) for key in ("row", "rank", "weight")}
    entropy, reason = (np.array(job.work.load("blocks", number, key)) for key in ("entropy", "reason"))
    mean_weight = float(np.mean(job.work.load("picks", 0, "weight")))
    return row_columns(block.first_row, picks, mean_weight, entropy, assignment, reason)


def _assignment(job: SelectionJob, number: int) -> np.ndarray:
    """The row that represents each of a block's points, in the order of `sort`."""
    offsets = job.work.load("blocks", number, "offsets")
    found = np.empty(int(offsets[-1]), dtype=np.int64)
    for part in np.flatnonzero(np.diff(offsets)).tolist():
        begin = int(job.work.load("parts", part, "starts")[number])
        size = int(offsets[part + 1] - offsets[part])
        found[offsets[part] : offsets[part + 1]] = job.work.load("parts", part, "assignment")[begin : begin + size]
    return found
