"""Drawn dates are told as finely as those of the training rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.date_steps import date_step
from synthsieve.data.encoding import fit_encoding, from_json
from synthsieve.data.rows import read_rows

DAY = 86_400


@pytest.mark.parametrize(
    ("seconds", "stored_as", "step"),
    [
        ([DAY, -3 * DAY], "timestamp[us]", DAY * 10**6),
        ([DAY, 3600], "timestamp[ns, tz=Europe/Berlin]", 3600 * 10**6),
        ([60, 0], "time32[s]", 60),
        ([61], "time64[ns]", 10**9),
        ([0.001, 2], "duration[ms]", 1),
        ([0.25], "timestamp[us]", 1000),
        ([1e-6], "timestamp[us]", 1),
        ([DAY], "date64[ms]", DAY * 1000),
        ([5], "date32[day]", 1),
        ([], "timestamp[us]", 1),
    ],
)
def test_the_longest_step_that_fits(seconds: list[float], stored_as: str, step: float) -> None:
    unit = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}.get(stored_as.split("[")[1].split("]")[0].split(",")[0], 1)
    unit = 1e6 if stored_as.startswith("timestamp[ns") else unit
    assert date_step(np.rint(np.array(seconds) * unit), stored_as) == step


def test_drawn_days_have_no_hours() -> None:
    days = np.random.default_rng(0).integers(-9000, 20000, 400)
    rows = read_rows(pa.table({"day": pa.array(days * DAY * 10**6, pa.timestamp("us"))}))
    dataset = Dataset("t", Kind.TABLE, ("p", "q"), Examples(rows.x, np.arange(400) % 2), about=rows.schema)
    encoding = from_json(fit_encoding(dataset, np.arange(400)).to_json())
    drawn = encoding.decode(np.linspace(-5, 5, 50, dtype=np.float32)[:, None])
    assert not (drawn % (DAY * 10**6)).any()
    assert (drawn.min(), drawn.max()) == (rows.x.min(), rows.x.max())
