"""What the cells of a Parquet file would take in memory, found without making room for them.

Parquet stores a value that is repeated without end in a few bytes: a file of 1 kB can hold gigabytes of lists or text.
"""

from __future__ import annotations

from collections.abc import Collection
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.archive import MOST_EXPANSION
from synthsieve.parquet_footer import chunks

ROOM = 1 << 30  # bytes that any table may take, however small its file
_LARGE = 1 << 25  # bytes of a file that may expand to more than machines have: its text is not looked through
_CELL = 8  # bytes


def most_bytes(path: Path) -> int:
    """How much a file of this size may take."""
    return max(ROOM, MOST_EXPANSION * path.stat().st_size)


def arrow_source(path: Path) -> Any:
    """What pyarrow can read a file from: its path, or its mapped content where the name is not UTF-8."""
    import pyarrow as pa

    try:
        str(path).encode()
    except UnicodeEncodeError:
        with path.open("rb") as file:
            return pa.BufferReader(pa.py_buffer(mmap(file.fileno(), 0, access=ACCESS_READ)))
    return path


def claimed_bytes(path: Path, footer: Any) -> int:
    """What the cells take by the file's own word, eight bytes each; a list has as many as it holds."""
    held = sum(chunk.num_values for chunk in chunks(path))
    return _CELL * max(held, footer.num_rows * max(1, footer.num_columns))


def text_bytes(path: Path, wanted: Collection[str] | None = None) -> int:
    """What the text in the `wanted` columns takes; 0 where that cannot be more than `most_bytes`, or the file is large.

    Each text is read once, however often it occurs. Text within lists and structures is not counted.
    """
    import pyarrow.parquet as pq

    if path.stat().st_size >= _LARGE:
        return 0
    with pq.ParquetFile(arrow_source(path)) as parquet:
        names = [name for name in _texts(parquet.metadata) if wanted is None or name in wanted]
        # if each cell were as long as all that its column stores
        if sum(one.num_values * one.uncompressed for one in chunks(path) if one.column in names) <= most_bytes(path):
            return 0
    total = 0
    with pq.ParquetFile(arrow_source(path), read_dictionary=names) as parquet:
        for batch in parquet.iter_batches(columns=names):
            for column in batch.columns:
                lengths = np.array([*map(_length, column.dictionary), 0], dtype=np.int64)
                total += int(lengths[column.indices.fill_null(len(lengths) - 1).to_numpy()].sum())
    return total


def _length(value: Any) -> int:
    return 0 if value.as_buffer() is None else value.as_buffer().size


def _texts(footer: Any) -> list[str]:
    """Columns of text or bytes, but for those within others."""
    columns = [footer.schema.column(column) for column in range(footer.num_columns)]
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY" and column.path == column.name]
