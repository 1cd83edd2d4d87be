"""How much memory the cells of a Parquet file would take, by its metadata, before any is allocated.

Parquet stores a repeated value in a few bytes: a file of 1 kB can hold gigabytes of lists or text.
"""

from __future__ import annotations

from collections.abc import Collection
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.io.npz import MAX_EXPANSION

MAX_DECODED_BYTES = 1 << 30  # any table may take this much, however small its file
_LARGE = 1 << 25  # bytes of a file that may expand to more than machines have: its text is not measured
_CELL = 8  # bytes


def max_bytes(path: Path) -> int:
    """How much a file of this size may take."""
    return max(MAX_DECODED_BYTES, MAX_EXPANSION * path.stat().st_size)


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
    """What the cells take according to the file, eight bytes each; a list has as many as it holds."""
    values = sum(max(0, chunk.num_values) for chunk in _column_chunks(path))
    return _CELL * max(values, footer.num_rows * max(1, footer.num_columns))


def text_bytes(path: Path, wanted: Collection[str] | None = None) -> int:
    """What the text in the `wanted` columns takes; 0 where that cannot be more than `max_bytes`, or the file is large.

    Each distinct text is read once, however often it occurs. Text within lists and structures is not counted.
    """
    import pyarrow.parquet as pq

    if path.stat().st_size >= _LARGE:
        return 0
    footer = pq.read_metadata(arrow_source(path))
    columns = [footer.schema.column(index) for index in range(footer.num_columns)]
    flat = {one.path for one in columns if one.physical_type == "BYTE_ARRAY" and one.path == one.name}
    flat = flat if wanted is None else flat & set(wanted)
    texts = [chunk for chunk in _column_chunks(path) if chunk.path_in_schema in flat]
    # An upper bound: every cell as long as all that its column stores.
    if sum(chunk.num_values * chunk.total_uncompressed_size for chunk in texts) <= max_bytes(path):
        return 0
    names, total = sorted({chunk.path_in_schema for chunk in texts}), 0
    with pq.ParquetFile(arrow_source(path), read_dictionary=names) as parquet:
        for batch in parquet.iter_batches(columns=names):
            for column in batch.columns:
                buffers = [value.as_buffer() for value in column.dictionary]
                lengths = np.array([*(0 if one is None else one.size for one in buffers), 0], dtype=np.int64)
                total += int(lengths[column.indices.fill_null(len(lengths) - 1).to_numpy()].sum())
    return total


def _column_chunks(path: Path) -> list[Any]:
    """pyarrow's metadata of every column in every row group."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(arrow_source(path), pre_buffer=False, buffer_size=1 << 20) as parquet:
        # Reading a row raises an error where the metadata of columns is damaged; asking for it would end the process.
        next(parquet.iter_batches(batch_size=1), None)
        footer = parquet.metadata
        groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
        return [group.column(index) for group in groups for index in range(group.num_columns)]
