"""What is left in the end: every row's fate and the selected rows, a Parquet file of each for every block."""

from __future__ import annotations

from typing import Any

import numpy as np

from synthsieve.distributed.job import Job, block_name, part_name
from synthsieve.files import written_atomically
from synthsieve.parquet_claims import arrow_source
from synthsieve.shards import batches
from synthsieve.sieve_files import weighted, with_weights
from synthsieve.sieve_report import fates

FATES, SELECTED, PICKS = "selection", "selected", "picks"


def write(job: Job, number: int) -> dict[str, Any]:
    """Write a block's two files; return how many of its selected rows the classifier contradicts."""
    import pyarrow.parquet as pq

    block, rows = job.blocks[number], _fate_of_rows(job, number)
    name = f"part-{number:05d}.parquet"
    with written_atomically(job.work.path / FATES / name) as partial, partial.open("wb") as file:
        pq.write_table(fates(rows), file)
    schema, start = with_weights(pq.read_schema(arrow_source(block.file))), 0
    with (
        written_atomically(job.work.path / SELECTED / name) as partial,
        partial.open("wb") as file,
        pq.ParquetWriter(file, schema) as writer,
    ):
        for batch in batches(block.file, None, block.start, block.stop):
            part = slice(start, start + len(batch))
            if rows["selected"][part].any():
                writer.write_table(weighted(batch, {key: column[part] for key, column in rows.items()}, schema))
            start += len(batch)
    return {"contradicted": int((rows["selected"] & job.work.load(block_name(number), "other")).sum())}


def _fate_of_rows(job: Job, number: int) -> dict[str, np.ndarray]:
    """The columns of `Selection.rows` for one block."""
    block, name = job.blocks[number], block_name(number)
    row = np.arange(block.num_rows) + block.first_row
    which = job.work.load(name, "which")
    assignment = np.full(block.num_rows, -1, dtype=np.int64)
    assignment[which >= 0] = _assignment(job, number)[which[which >= 0]]
    picked = job.work.load(PICKS, "row")
    span = slice(*np.searchsorted(picked, [block.first_row, block.first_row + block.num_rows]).tolist())
    here = picked[span] - block.first_row
    rank, weight = np.full(block.num_rows, -1, dtype=np.int64), np.zeros(block.num_rows)
    rank[here], weight[here] = job.work.load(PICKS, "rank")[span], job.work.load(PICKS, "weight")[span]
    return {
        "row": row,
        "selected": rank >= 0,
        "weight": weight,
        "loss_weight": weight / np.mean(job.work.load(PICKS, "weight")),
        "entropy": np.array(job.work.load(name, "entropy")),
        "rank": rank,
        "assignment": assignment,
        "reason": np.array(job.work.load(name, "reason")),
    }


def _assignment(job: Job, number: int) -> np.ndarray:
    """The row that stands for each of a block's points, in the order `sorting.sort` left them in."""
    offsets = job.work.load(block_name(number), "offsets")
    found = np.empty(int(offsets[-1]), dtype=np.int64)
    for part in np.flatnonzero(np.diff(offsets)).tolist():
        begin = int(job.work.load(part_name(part), "starts")[number])
        size = int(offsets[part + 1] - offsets[part])
        found[offsets[part] : offsets[part + 1]] = job.work.load(part_name(part), "assignment")[begin : begin + size]
    return found
