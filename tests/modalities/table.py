"""A small table of mixed columns, of two kinds of rows that can be separated."""

import datetime

import numpy as np
import pyarrow as pa

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.modalities.table.rows import read_rows


def arrow_table(n=120, seed=0):
    """Weights and prices, a gain that is mostly 0, a colour, whether paid, a day, an id; some cells missing."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    gain = np.where(rng.random(n) < 0.6, 0, rng.integers(1, 500, n) * (1 + 4 * y))
    colour = np.where(rng.random(n) < 0.85, np.array(["red", "blue"])[y], "green").astype(object)
    colour[rng.random(n) < 0.1] = None
    price = np.round(rng.normal(10 + 5 * y, 1.5), 2)
    price[rng.random(n) < 0.1] = np.nan
    first = datetime.date(2020, 1, 1)
    table = pa.table(
        {
            "id": np.arange(n),
            "weight": rng.normal(4 * y, 1),
            "price": pa.array(price, from_pandas=True),
            "gain": gain,
            "colour": pa.array(colour, pa.string()),
            "paid": rng.random(n) < 0.2 + 0.6 * y,
            "day": [first + datetime.timedelta(int(days)) for days in rng.integers(0, 100, n) + 300 * y],
        }
    )
    return table, y.astype(np.int64)


def dataset(n=120, seed=0):
    """The same as a dataset."""
    table, y = arrow_table(n, seed)
    rows = read_rows(table)
    names = rows.schema.names
    return Dataset("shop", Kind.TABLE, ("old", "new"), Examples(rows.x, y), feature_names=names, metadata=rows.schema)
