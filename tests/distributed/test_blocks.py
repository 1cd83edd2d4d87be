"""Blocks hold every row once, in order, whatever the row groups are."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synthsieve.distributed.selection.job import cut, rows_in_a_block
from synthsieve.selection.tables import batches, open_shards


@pytest.mark.parametrize("groups", [[5], [1, 1, 1], [100], [3, 100, 4], [10, 10, 10], [1] * 30, [25, 1], []])
def test_every_row_is_in_one_block(tmp_path, groups):
    schema = pa.schema([("y", pa.int64()), ("logits", pa.list_(pa.float64()))])
    row = 0
    for name in ("a", "b"):
        with pq.ParquetWriter(tmp_path / f"{name}.parquet", schema) as writer:
            for size in groups:
                numbers = np.arange(row, row + size)
                writer.write_table(pa.table({"y": numbers, "logits": [[0.0, 1.0]] * size}, schema=schema))
                row += size
    shards = open_shards(tmp_path)
    blocks = cut(shards, 10)
    found = []
    for block in blocks:
        assert 0 < block.num_rows <= 20
        assert block.first_row == len(found)
        for batch in batches(block.file, ["y"], block.start, block.stop):
            found += batch.column("y").to_pylist()
    assert found == list(range(row))
    assert shards.num_rows == row


def test_wide_rows_come_in_smaller_blocks():
    assert rows_in_a_block(10) == 250_000
    assert rows_in_a_block(1_000) * 1_000 * 8 <= 64_000_000
