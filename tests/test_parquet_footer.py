"""The footer of a Parquet file, as pyarrow reads it where it is whole; where it is not, a sentence."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synthsieve.errors import SelectionError
from synthsieve.parquet_footer import Chunk, chunks
from synthsieve.shards import batches, open_shards


@pytest.fixture
def path(tmp_path):
    generator = np.random.default_rng(0)
    table = pa.table(
        {
            "y": list("ab") * 6,
            "gradients": generator.normal(size=(12, 2)).tolist(),
            "flag": [True, False, None] * 4,
            "inner": [{"a": 1, "b": [1, 2, 3]}] * 12,
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=5)
    return tmp_path / "a.parquet"


def test_it_says_what_pyarrow_says(path):
    footer = pq.read_metadata(path)
    told = [footer.row_group(g).column(c) for g in range(footer.num_row_groups) for c in range(footer.num_columns)]
    assert chunks(path) == [Chunk(one.path_in_schema, one.num_values, one.total_uncompressed_size) for one in told]
    assert len(chunks(path)) == 3 * 5


def test_any_byte_may_be_wrong(tmp_path):
    path, refused = tmp_path / "a.parquet", 0
    lists = np.random.default_rng(0).normal(size=(12, 2)).tolist()
    pq.write_table(pa.table({"y": list("ab") * 6, "gradients": lists}), path, store_schema=False)
    whole = path.read_bytes()
    (length,) = np.frombuffer(whole[-8:-4], "<u4")
    for at in range(len(whole) - 8 - int(length), len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
        try:
            open_shards(path)
            list(batches(path))
        except SelectionError:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize("keep", [0, 7, 100, -1])
def test_what_is_cut_has_no_footer(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match="footer"):
        chunks(path)
