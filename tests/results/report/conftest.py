"""A run whose every name is hostile."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.modalities.table.rows import read_rows
from tests import finished
from tests.finished import finished_run

EVIL = "<script>alert('x')</script>\"&amp;"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A run of a table whose classes, columns and cells are HTML."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(finished.KINDS, "hostile", SimpleNamespace(dataset=_hostile))
        yield finished_run("hostile", tmp_path_factory.mktemp("finished"))


def _hostile(n=120):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    cells = np.array([EVIL, "</table><img src=x onerror=alert(1)>\x1b[2J"])[y]
    rows = read_rows(pa.table({f"{EVIL} column\x9b31m": cells, "weight": rng.normal(4 * y, 1)}))
    classes = (EVIL, "</title><b>bold</b>\x1b]0;owned\x07")
    return Dataset(EVIL, Kind.TABLE, classes, Examples(rows.x, y.astype(np.int64)), metadata=rows.schema)
