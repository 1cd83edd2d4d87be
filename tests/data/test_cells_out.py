"""Cells at the edges of their Arrow types go out in those types: large numbers, full ids, dictionaries of anything."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from synthsieve.data.cells_out import whole_numbers
from synthsieve.data.column_codes import fit_code
from synthsieve.data.rows import arrow_from_rows, read_rows, rows_from_arrow
from synthsieve.data.schema import ColumnType, TableSchema

N = 40
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
def test_cells_come_back_exactly(name: str) -> None:
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
def test_what_float64_cannot_hold_is_near(cells: Any) -> None:
    back = arrow_from_rows(*rows_from_arrow(pa.table({"a": cells})))
    assert back.column("a").type == cells.type
    before, after = (
        [int(v) for v in column.cast(cells.type).view(_whole(cells.type))]
        for column in (cells, back.column("a").combine_chunks())
    )
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) <= 10**9


def _whole(kind: Any) -> Any:
    return kind if pa.types.is_integer(kind) else pa.int64()


def test_whole_numbers_stay_within_their_type() -> None:
    assert whole_numbers(np.array([2.0**63, -(2.0**63), 1.4]), np.int64).tolist() == [2**63 - 1024, -(2**63), 1]
    assert whole_numbers(np.array([300.0, -1.0]), np.uint8).tolist() == [255, 0]


def test_ids_end_where_their_type_ends() -> None:
    given = pa.table({"id": pa.array(range(80, 125), pa.int8()), "v": np.arange(45) % 7})
    rows = read_rows(given)
    assert rows.schema.columns[0].type is ColumnType.ID
    assert arrow_from_rows(rows.x[:5], rows.schema).column("id").to_pylist() == [125, 126, 127, None, None]


def test_large_ids_go_on_after_the_last_one() -> None:
    first = 2**60 + 1
    rows = read_rows(pa.table({"id": pa.array(range(first, first + N)), "v": np.arange(N) % 7}))
    schema = TableSchema.from_json(rows.schema.to_json())
    assert arrow_from_rows(rows.x[:2], schema).column("id").to_pylist() == [first + N, first + N + 1]


def test_categories_that_cannot_be_turned_back_go_out_as_text() -> None:
    given = pa.table({"a": pa.array([60, 120, None], pa.time32("s"))})
    back = arrow_from_rows(*rows_from_arrow(given, {"a": "category"}))
    assert back.column("a").to_pylist() == ["00:01:00", "00:02:00", None]


def test_one_word_of_a_boolean_brings_the_other() -> None:
    for values, other in (([1, 1, None], "0"), (["No", "No", None], "yes")):
        x, schema = rows_from_arrow(pa.table({"a": values}), {"a": "boolean"})
        assert other in schema.columns[0].categories
        assert arrow_from_rows(x, schema).column("a").to_pylist() == values


def test_a_dictionary_of_numbers_may_be_called_numbers() -> None:
    x, schema = rows_from_arrow(pa.table({"a": EXACT["dictionary of numbers"]}), {"a": "number"})
    assert arrow_from_rows(x, schema).column("a").type == pa.int64()


def test_a_training_value_decodes_to_its_last_digit() -> None:
    cells = np.random.default_rng(0).lognormal(20, 10, 200)
    code = fit_code(cells, is_category=False)
    assert np.array_equal(code.decode(code.encode(cells).astype(np.float32)), cells)
