"""Blocks: the rows that one piece of work reads at a time. They follow from the files alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from synthsieve.parquet_claims import arrow_source
from synthsieve.shards import Shards, whole_parquet

# A block's numbers, as float64, stay below this; and it has no more rows than that.
_BYTES = 64_000_000
_ROWS = 250_000


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
    return max(1_000, min(_ROWS, _BYTES // (8 * max(1, width))))


def cut(shards: Shards, rows: int) -> tuple[Block, ...]:
    """All rows in blocks of one file each, of about `rows` rows: whole row groups, unless one alone is twice as large.

    A row group is decoded from its beginning, so pieces of one cost more than a group of their size.
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

    with whole_parquet(file), pq.ParquetFile(arrow_source(file)) as parquet:
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
