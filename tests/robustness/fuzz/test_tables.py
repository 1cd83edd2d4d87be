"""Tables of any Arrow type with values at the edges: read, or refused in a sentence; as Parquet and in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synthsieve.data.modalities.table.rows import arrow_from_rows, read_rows, read_rows_like
from synthsieve.data.registry import load
from synthsieve.errors import DataError
from tests.errors import raises
from tests.robustness.fuzz.guard import refused_or_read
from tests.scratch import new_folder

ROWS = 6
WHOLE = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "date32": 32, "timestamp[s]": 64, "timestamp[ns]": 64}
FLOATS = st.floats() | st.sampled_from([5e-324, 1.8e308, -0.0])
TEXTS = st.text(max_size=12) | st.sampled_from(["", "-1", "nan", "\0", "x" * 300, "=1+1", "<b>", "1.0", "²"])
EPSILON = float(np.finfo(np.float64).eps)
SCRATCH = new_folder()


@st.composite
def columns(draw: st.DrawFn) -> Any:
    """A column of ROWS cells, some null."""
    kind = draw(st.sampled_from([*WHOLE, "uint64", "float", "double", "string", "bool", "binary", "list", "dictionary",
                                 "decimal", "time64[us]", "duration[s]", "struct", "null", "date64"]))  # fmt: skip
    cells = draw(st.lists(st.none() | _cells(kind), min_size=ROWS, max_size=ROWS))
    if kind in WHOLE or kind in ("uint64", "time64[us]", "duration[s]", "date64"):
        wide = {"date32": pa.int32(), "uint64": pa.uint64()}.get(kind, pa.int64())
        plain = pa.array(cells, wide if kind not in ("int8", "int16", "int32") else pa.type_for_alias(kind))
        return plain.view(pa.type_for_alias(kind)) if plain.type != pa.type_for_alias(kind) else plain
    if kind == "dictionary":
        return pa.array(cells, pa.string()).dictionary_encode()
    types = {"list": pa.list_(pa.int8()), "struct": pa.struct([("a", pa.int8())]), "decimal": pa.decimal128(20, 3)}
    return pa.array(cells, types.get(kind) or pa.type_for_alias(kind))


def _cells(kind: str) -> st.SearchStrategy[Any]:
    if kind in WHOLE:
        return st.integers(-(2 ** (WHOLE[kind] - 1)), 2 ** (WHOLE[kind] - 1) - 1) | st.integers(0, 3)
    return {
        "uint64": st.integers(0, 2**64 - 1),
        "float": st.floats(width=32),
        "double": FLOATS,
        "string": TEXTS,
        "dictionary": TEXTS,
        "bool": st.booleans(),
        "binary": st.binary(max_size=5),
        "list": st.lists(st.integers(0, 3), max_size=2),
        "struct": st.just({"a": 1}),
        "decimal": st.decimals(-(10**15), 10**15, places=3, allow_nan=False),
        "null": st.none(),
    }.get(kind, st.integers(-(2**63), 2**63 - 1))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(columns(), min_size=1, max_size=3), columns())
def test_any_table_is_read_or_refused(cells: list[Any], label: Any) -> None:
    path = SCRATCH / "a.parquet"
    table = pa.table([*cells, label], names=[*(f"c{i}" for i in range(len(cells))), "label"])
    try:
        pq.write_table(table, path)
    except (pa.ArrowException, ValueError, OverflowError):  # not every table has a Parquet form
        return
    refused_or_read(lambda: load(str(path), label="label"))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(columns(), min_size=1, max_size=3))
def test_round_trip(cells: list[Any]) -> None:
    table = pa.table(cells, names=[f"c{i}" for i in range(len(cells))])

    def there_and_back() -> None:
        rows = read_rows(table)
        learned = [column.is_modelled for column in rows.schema.columns]
        x = rows.x[:, learned]
        assert np.array_equal(read_rows_like(table, rows.schema).x[:, learned], x, equal_nan=True)
        out = arrow_from_rows(rows.x, rows.schema)
        assert out.column_names == table.column_names
        again = read_rows_like(out, rows.schema).x[:, learned]  # but for the last bit, where a type ends before float64
        assert np.array_equal(np.isfinite(again), np.isfinite(x))
        assert np.allclose(again, x, rtol=2 * EPSILON, atol=0, equal_nan=True)

    refused_or_read(there_and_back)


def test_label_outside_the_calendar(tmp_path: Path) -> None:
    far = pa.array([2**31 - 1, 0], pa.int32()).view(pa.date32())
    pq.write_table(pa.table({"x": [1.0, 2.0], "label": far}), tmp_path / "a.parquet")
    with raises(DataError, "bad-cell"):
        load(str(tmp_path / "a.parquet"), label="label")
