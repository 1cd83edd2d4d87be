"""Blocks: the rows that one task reads at a time. They depend on the files alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from synthsieve.io.parquet import arrow_source
from synthsieve.selection.tables import Shards, readable_parquet

# A block's numbers, as float64, and its rows.
_MAX_BYTES = 64_000_000
_MAX_ROWS = 250_000


@dataclass(frozen=True)
class Block:
    """Rows `start` to `stop` of one file; `first_row` numbers the first of them among the rows of all files."""

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


def cut(shards: Shards, rows: int) -> tuple[Block, ...]:
    """All rows in blocks of one file each, of about `rows` rows: whole row groups, unless one alone is twice as large.

    A row group is decoded from its start, so pieces of one cost more than a group of their size.
    """
    found, first_row = [], 0
    for file in shards.files:
        start = 0
        for stop in _stops(_group_ends(file), rows):
            found.append(Block(file, start, stop, first_row))
            first_row += stop - start
            start = stop
    return tuple(found)


def _group_ends(file: Path) -> list[int]:
    import pyarrow.parquet as pq

    with readable_parquet(file), pq.ParquetFile(arrow_source(file)) as parquet:
        groups = range(parquet.metadata.num_row_groups)
        return list(accumulate(parquet.metadata.row_group(group).num_rows for group in groups))


def _stops(ends: list[int], rows: int) -> list[int]:
    """Where blocks end, for row groups that end at `ends`."""
    stops: list[int] = []
    start = before = 0
    for end in ends:
        if before > start and end - start > rows:
            stops.append(before)
            start = before
        pieces = -(-(end - start) // (2 * rows))
        if pieces > 1:
            size = end - start
            stops += [start + size * piece // pieces for piece in range(1, pieces + 1)]
            start = end
        before = end
    if before > start:
        stops.append(before)
    return stops
