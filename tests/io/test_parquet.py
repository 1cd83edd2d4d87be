"""How much a Parquet file would take, by its metadata; damaged files raise errors and do not end the process."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synthsieve.errors import SelectionError
from synthsieve.io.parquet import claimed_bytes, text_bytes
from synthsieve.selection.tables import batches, open_shards


@pytest.fixture
def path(tmp_path):
    lists = np.random.default_rng(0).normal(size=(12, 2)).tolist()
    table = pa.table({"y": list("ab") * 6, "gradients": lists, "flag": [True, False, None] * 4})
    pq.write_table(table, tmp_path / "a.parquet", store_schema=False, row_group_size=5)
    return tmp_path / "a.parquet"


def test_every_cell_counts_eight_bytes(path):
    assert claimed_bytes(path, pq.read_metadata(path)) == 8 * (12 + 2 * 12 + 12)
    assert text_bytes(path) == 0  # it cannot be much


def test_any_byte_of_the_footer_may_be_wrong(tmp_path):
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
def test_cut_file(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises((pa.ArrowException, OSError)):
        text_bytes(path)
