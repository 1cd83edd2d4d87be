"""Rows for selections over files."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from synthsieve.distributed.engine import InProcess
from synthsieve.distributed.selection.select import select_shards
from synthsieve.selection.options import SelectionOptions
from synthsieve.selection.tables import open_shards


def rows(count=6_000, classes=3, seed=0, decimals=1):
    """Labels and logits; rounded, so that equal rows and equal entropies occur."""
    rng = np.random.default_rng(seed)
    logits = np.round(rng.normal(size=(count, classes)) * 3, decimals).astype(np.float32)
    return rng.integers(0, classes, count), logits


def write_shards(folder, labels, logits, *, files=3, group=700):
    folder.mkdir(parents=True)
    for number, part in enumerate(np.array_split(np.arange(len(labels)), files)):
        table = pa.table({"y": labels[part], "logits": list(logits[part]), "note": [f"row {row}" for row in part]})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=group)
    return folder


def select_folder(source, out, *, engine=None, **options):
    return select_shards(open_shards(source), out, SelectionOptions(**options), engine=engine or InProcess())


def outcomes_in(out):
    """The columns of OUT/selection, with -1 for null."""
    table = pq.read_table(out / "selection")
    columns = {name: table[name].to_numpy() for name in ("row", "selected", "weight", "entropy")}
    for name in ("rank", "assignment"):
        columns[name] = table[name].fill_null(-1).to_numpy()
    return columns


def contents(folder):
    """Every file's bytes, by its name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
