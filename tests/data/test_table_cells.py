"""Cells keep their Arrow types: large numbers, ids, dictionaries, dates."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.modalities.registry import fit_encoding, from_json
from synthsieve.data.modalities.table.cells import round_to_integers
from synthsieve.data.modalities.table.encoding import date_step, fit_code
from synthsieve.data.modalities.table.rows import arrow_from_rows, read_rows, rows_from_arrow
from synthsieve.data.modalities.table.schema import ColumnType, TableSchema

N = 40
DAY = 86_400
DAYS = [datetime.date(1900 + i % 5, 1, 1) for i in range(N)]
LEVELS = pa.DictionaryArray.from_arrays(pa.array([2, 0, 1, 0] * 10, pa.int8()), ["low", "mid", "high"], ordered=True)

EXACT: dict[str, Any] = {
    "dictionary of numbers": pa.array([i % 3 for i in range(N)]).dictionary_encode(),
    "dictionary of floats": pa.array([i % 3 / 2 for i in range(N)]).dictionary_encode(),
    "dictionary of booleans": pa.array([i % 3 == 0 for i in range(N)]).dictionary_encode(),
    "dictionary of dates": pa.array(DAYS).dictionary_encode(),
    "ordered dictionary": LEVELS,
    "durations": pa.array([i * i for i in range(N)], pa.duration("s")),
    "old dates": pa.array(DAYS),
    "small decimals": pa.array([Decimal(i) / 8 for i in range(N)], pa.decimal128(6, 3)),
    "halves": pa.array(np.arange(N, dtype=np.float16) / 2),
    "huge floats": pa.array([(-1.0) ** i * 1.7e308 for i in range(N)]),
    "tiny floats": pa.array([1e-290 * i for i in range(N)]),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", EXACT)
def test_exact_round_trip(name: str) -> None:
    given = pa.table({"a": EXACT[name]})
    x, schema = rows_from_arrow(given)
    back = arrow_from_rows(x, TableSchema.from_json(schema.to_json()))
    assert back.column("a").type == given.column("a").type
    assert back.column("a").to_pylist() == given.column("a").to_pylist()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "cells",
    [
        pa.array([2**64 - 1 - i * i for i in range(N)], pa.uint64()),
        pa.array([2**63 - 1 - i * i for i in range(N)], pa.int64()),
        pa.array([-(2**63) + i * i for i in range(N)], pa.int64()),
        pa.array([-(2**63) + 1 + i * i * 10**9 for i in range(N)], pa.timestamp("ns")),
    ],
    ids=["uint64", "int64", "least", "nanoseconds"],
)
def test_numbers_beyond_float64_are_close(cells: Any) -> None:
    back = arrow_from_rows(*rows_from_arrow(pa.table({"a": cells})))
    assert back.column("a").type == cells.type
    before, after = (
        [int(v) for v in column.cast(cells.type).view(_integers(cells.type))]
        for column in (cells, back.column("a").combine_chunks())
    )
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) <= 10**9


def _integers(kind: Any) -> Any:
    return kind if pa.types.is_integer(kind) else pa.int64()


def test_round_to_integers_stays_within_the_type() -> None:
    assert round_to_integers(np.array([2.0**63, -(2.0**63), 1.4]), np.int64).tolist() == [2**63 - 1024, -(2**63), 1]
    assert round_to_integers(np.array([300.0, -1.0]), np.uint8).tolist() == [255, 0]


def test_ids_beyond_the_type_are_null() -> None:
    given = pa.table({"id": pa.array(range(80, 125), pa.int8()), "v": np.arange(45) % 7})
    rows = read_rows(given)
    assert rows.schema.columns[0].type is ColumnType.ID
    assert arrow_from_rows(rows.x[:5], rows.schema).column("id").to_pylist() == [125, 126, 127, None, None]


def test_large_ids_continue() -> None:
    first = 2**60 + 1
    rows = read_rows(pa.table({"id": pa.array(range(first, first + N)), "v": np.arange(N) % 7}))
    schema = TableSchema.from_json(rows.schema.to_json())
    assert arrow_from_rows(rows.x[:2], schema).column("id").to_pylist() == [first + N, first + N + 1]


def test_categories_that_cannot_be_cast_are_text() -> None:
    given = pa.table({"a": pa.array([60, 120, None], pa.time32("s"))})
    back = arrow_from_rows(*rows_from_arrow(given, {"a": "category"}))
    assert back.column("a").to_pylist() == ["00:01:00", "00:02:00", None]


def test_boolean_with_one_word() -> None:
    for values, other in (([1, 1, None], "0"), (["No", "No", None], "yes")):
        x, schema = rows_from_arrow(pa.table({"a": values}), {"a": "boolean"})
        assert other in schema.columns[0].categories
        assert arrow_from_rows(x, schema).column("a").to_pylist() == values


def test_dictionary_as_numbers() -> None:
    x, schema = rows_from_arrow(pa.table({"a": EXACT["dictionary of numbers"]}), {"a": "number"})
    assert arrow_from_rows(x, schema).column("a").type == pa.int64()


def test_training_values_decode_exactly() -> None:
    cells = np.random.default_rng(0).lognormal(20, 10, 200)
    code = fit_code(cells, is_category=False)
    assert np.array_equal(code.decode(code.encode(cells).astype(np.float32)), cells)


@pytest.mark.parametrize(
    ("seconds", "arrow", "step"),
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
def test_date_step(seconds: list[float], arrow: str, step: float) -> None:
    unit = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}.get(arrow.split("[")[1].split("]")[0].split(",")[0], 1)
    unit = 1e6 if arrow.startswith("timestamp[ns") else unit
    assert date_step(np.rint(np.array(seconds) * unit), arrow) == step


def test_decoded_days_have_no_hours() -> None:
    days = np.random.default_rng(0).integers(-9000, 20000, 400)
    rows = read_rows(pa.table({"day": pa.array(days * DAY * 10**6, pa.timestamp("us"))}))
    dataset = Dataset("t", Kind.TABLE, ("p", "q"), Examples(rows.x, np.arange(400) % 2), metadata=rows.schema)
    encoding = from_json(fit_encoding(dataset, np.arange(400)).to_json())
    drawn = encoding.decode(np.linspace(-5, 5, 50, dtype=np.float32)[:, None])
    assert not (drawn % (DAY * 10**6)).any()
    assert (drawn.min(), drawn.max()) == (rows.x.min(), rows.x.max())
