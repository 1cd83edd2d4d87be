"""Tables: the types that are guessed, the user's word on them, new rows for an old schema, and the way back."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.data.modalities.registry import fit_encoding
from synthsieve.data.modalities.table.rows import (
    arrow_from_rows,
    read_rows,
    read_rows_like,
    rows_from_arrow,
    rows_from_frame,
    rows_like,
)
from synthsieve.data.modalities.table.schema import ColumnType, TableSchema
from synthsieve.data.registry import load
from synthsieve.errors import DataError
from tests.data import made_up
from tests.errors import raises
from tests.hub import datasets

N = 40
DAY = datetime.date(2024, 2, 28)
COLUMNS: dict[str, tuple[Any, ColumnType]] = {
    "age": (np.arange(N) % 7 + 20, ColumnType.NUMBER),
    "share": (np.linspace(0, 1, N), ColumnType.NUMBER),
    "single": (np.linspace(0, 1, N).astype(np.float32), ColumnType.NUMBER),
    "price": ([Decimal(i) / 4 for i in range(N)], ColumnType.NUMBER),
    "colour": ((["red", "blue", None, "red"] * N)[:N], ColumnType.CATEGORY),
    "grade": (pa.array((["b", "a"] * N)[:N]).dictionary_encode(), ColumnType.CATEGORY),
    "paid": ([i % 3 == 0 for i in range(N - 1)] + [None], ColumnType.BOOLEAN),
    "day": ([DAY + datetime.timedelta(i) for i in range(N)], ColumnType.DATE),
    "time": (pa.array([1_700_000_000_123_456 + i for i in range(N)], pa.timestamp("us", "UTC")), ColumnType.DATE),
    "nano": (pa.array([1_700_000_000_123_456_000 + i * 1000 for i in range(N)], pa.timestamp("ns")), ColumnType.DATE),
    "hour": ([datetime.time(i % 24) for i in range(N)], ColumnType.DATE),
    "customer_id": (np.arange(N)[::-1] * 3, ColumnType.ID),
    "row": (np.arange(5, N + 5), ColumnType.ID),
    "name": ([f"n{i}" for i in range(N)], ColumnType.ID),
    "empty": (pa.nulls(N, pa.string()), ColumnType.MISSING),
    "nans": (np.full(N, np.nan), ColumnType.MISSING),
    "always": (["x"] * N, ColumnType.CATEGORY),
}


def table() -> Any:
    return pa.table({name: values for name, (values, _) in COLUMNS.items()})


def test_types_are_guessed() -> None:
    schema = read_rows(table()).schema
    assert {column.name: column.type for column in schema.columns} == {
        name: kind for name, (_, kind) in COLUMNS.items()
    }
    of = {column.name: column for column in schema.columns}
    assert (of["age"].decimals, of["age"].low, of["age"].high) == (0, 20, 26)
    assert (of["price"].decimals, of["share"].decimals) == (2, None)
    assert of["colour"].categories == ("blue", "red")


def test_rows_come_back_as_they_were() -> None:
    given = table()
    rows = read_rows(given)
    back = arrow_from_rows(rows.x, TableSchema.from_json(rows.schema.to_json()))
    assert rows.x.dtype == np.float64
    unused = "'customer_id' (id), 'row' (id), 'name' (id), 'empty' (missing), 'nans' (missing)"
    assert rows.notes == (f"columns not used for training: {unused}",)
    for name in given.column_names:
        before, after = given.column(name), back.column(name)
        if name == "grade":  # the indices of a dictionary may be of another width
            before, after = before.cast(pa.string()), after.cast(pa.string())
        assert after.type == before.type, name
        if COLUMNS[name][1] not in (ColumnType.ID, ColumnType.MISSING):
            assert after.to_pylist() == before.to_pylist(), name
    assert back.column_names == given.column_names


def test_ids_count_on_or_are_null() -> None:
    rows = read_rows(table())
    back = arrow_from_rows(rows.x[:3], rows.schema)
    assert back.column("row").to_pylist() == [45, 46, 47]
    assert back.column("customer_id").to_pylist() == [118, 119, 120]
    assert back.column("name").to_pylist() == [None] * 3
    assert back.column("empty").to_pylist() == [None] * 3


def test_nested_columns_can_be_ignored_or_empty() -> None:
    given = pa.table({"a": [1, 2], "b": [[1], [2]], "c": pa.nulls(2, pa.list_(pa.int8())), "d": ["x", "y"]})
    given = given.set_column(3, "d", given.column("d").cast(pa.string_view()))
    x, schema = rows_from_arrow(given, {"b": "ignore"})
    back = arrow_from_rows(x, schema)
    assert back.to_pydict() == {"a": [1, 2], "c": [None, None], "d": ["x", "y"]}


def test_short_tables_have_no_ids() -> None:
    schema = read_rows(pa.table({"n": np.arange(10), "t": list("abcdefghij")})).schema
    assert [column.type for column in schema.columns] == [ColumnType.NUMBER, ColumnType.CATEGORY]


def test_ten_thousand_categories_stay_categories() -> None:
    rows = read_rows(pa.table({"zip": [f"z{i % 10000}" for i in range(20000)]}))
    assert len(rows.schema.columns[0].categories) == 10000
    assert arrow_from_rows(rows.x, rows.schema).column("zip").to_pylist()[:2] == ["z0", "z1"]


def test_new_rows_by_an_old_schema() -> None:
    x, schema = rows_from_arrow(table())
    turned = table().select(table().column_names[::-1]).append_column("more", [range(N)])
    more = read_rows_like(turned.drop_columns(["name", "empty"]), schema)
    np.testing.assert_array_equal(more.x, x)
    assert more.notes == ("columns unknown from training are ignored (1): 'more'",)
    strange = table().set_column(4, "colour", [["mauve"] * N])
    again = read_rows_like(strange, schema)
    assert np.isnan(again.x[:, 4]).all()
    assert again.notes == (f"{N} cells of 'colour' have an unknown category: taken as missing",)
    np.testing.assert_array_equal(rows_like(strange, schema), again.x)
    np.testing.assert_array_equal(rows_from_arrow(strange, schema)[0], again.x)


def test_new_rows_that_cannot_be_read() -> None:
    _, schema = rows_from_arrow(table())
    with raises(DataError, "missing-column"):
        rows_like(table().drop_columns(["age", "paid"]), schema)
    with raises(DataError, "unreadable-column"):
        rows_like(table().set_column(0, "age", [["old"] * N]), schema)
    with raises(DataError, "unreadable-column"):
        rows_like(table().set_column(7, "day", [["soon"] * N]), schema)
    with raises(DataError, "unreadable-column"):
        rows_like(table().set_column(7, "day", [pa.array(range(N), pa.duration("s"))]), schema)
    with raises(DataError, "not-boolean"):
        rows_like(table().set_column(6, "paid", [["perhaps"] * N]), schema)


def test_the_type_of_new_cells_may_be_nearly_the_same() -> None:
    _, schema = rows_from_arrow(table())
    equal_rows = table().set_column(0, "age", [[str(20 + i % 7) for i in range(N)]])
    equal_rows = equal_rows.set_column(7, "day", [[str(DAY + datetime.timedelta(i)) for i in range(N)]])
    np.testing.assert_array_equal(rows_like(equal_rows, schema), read_rows(table()).x)


def test_frames() -> None:
    frame = pd.DataFrame(
        {"a": [1, 2, None], "b": ["x", None, "y"], "c": pd.Categorical(["u", "v", "u"])}, index=[7, 8, 9]
    )
    x, schema = rows_from_frame(frame)
    assert schema.names == ("a", "b", "c")
    np.testing.assert_array_equal(x, [[1, 0, 0], [2, np.nan, 1], [np.nan, 1, 0]])
    np.testing.assert_array_equal(rows_from_frame(frame[["c", "b", "a"]][:1], schema)[0], x[:1])
    x, schema = rows_from_frame(frame, {"a": "category", "b": "ignore"})
    assert schema.columns[0].categories == ("1", "2")
    assert schema.names == ("a", "c")
    with raises(DataError, "unreadable-column"):
        rows_from_frame(pd.DataFrame({"a": [1, "x", {}]}))


@pytest.mark.parametrize(
    ("values", "word", "stored"),
    [
        ([1, 0, 1], "boolean", [1, 0, 1]),
        (["yes", "no", None], "boolean", [1, 0, np.nan]),
        (["2024-01-02", "1970-01-03", None], "date", [19724, 2, np.nan]),
        (["1970-01-01 00:00:01", "1970-01-02", None], "date", [1e6, 86400e6, np.nan]),
        (["3", "4.5", None], "number", [3, 4.5, np.nan]),
        ([30, 9, None], "category", [0, 1, np.nan]),
    ],
)
def test_the_user_s_word_wins(values: list[Any], word: str, stored: list[float]) -> None:
    given = pa.table({"a": values})
    x, schema = rows_from_arrow(given, {"a": word})
    np.testing.assert_array_equal(x[:, 0], stored)
    assert schema.columns[0].type == word
    np.testing.assert_array_equal(rows_from_arrow(arrow_from_rows(x, schema), schema)[0], x)
    if word in ("boolean", "category"):
        assert arrow_from_rows(x, schema).column("a").to_pylist() == values


WRONG = {
    "boolean of three": ([1, 2, 0], "boolean", "not-boolean"),
    "no dates": (["soon", "later", "x"], "date", "unreadable-column"),
    "no numbers": (["one", "2", "3"], "number", "unreadable-column"),
    "lists": ([[1], [2], [3]], None, "column-type"),
    "no such type": ([1, 2, 3], "numbr", "column-type"),
    "infinite": ([1.0, np.inf, 2.0], None, "infinite-cell"),
    "nothing left": ([1, 2, 3], "ignore", "no-columns"),
}


@pytest.mark.parametrize(("values", "word", "code"), WRONG.values(), ids=list(WRONG))
def test_column_types_that_do_not_fit(values: list[Any], word: str | None, code: str) -> None:
    with raises(DataError, code) as error:
        rows_from_arrow(pa.table({"a": values}), {"a": word} if word else None)
    assert "\n" not in str(error.value)


CSV = "age,job,sum,y\n 30, clerk ,1.5,yes\n?,?,NA,no\n41,nan,,NA\n,null,2.5,\n"


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_cells_that_are_missing_in_a_csv(suffix: str, tmp_path: Path) -> None:
    text = CSV if suffix == "csv" else CSV.replace(",", "\t")
    dataset = load(str(made_up.write_csv(tmp_path / f"a.{suffix}", text)), label="y")
    assert dataset.kind is Kind.TABLE
    assert dataset.classes == ("NA", "no", "yes")
    np.testing.assert_array_equal(
        dataset.train.x, [[30, 0, 1.5], [np.nan, np.nan, np.nan], [41, np.nan, np.nan], [np.nan, np.nan, 2.5]]
    )
    assert dataset.train.y.tolist() == [2, 1, 0, -1]


def test_a_schema_file(tmp_path: Path) -> None:
    path = made_up.write_csv(tmp_path / "a.csv", "zip,age,y\n10115,3,a\n80331,4,b\n10115,5,a\n")
    schema = tmp_path / "types.toml"
    schema.write_text('[columns]\nzip = "category"\n', encoding="utf-8")
    dataset = load(str(path), label="y", schema=schema)
    assert dataset.metadata.columns[0].categories == ("10115", "80331")
    for text, match in (
        ('[columns]\nzpi = "category"\n', "'zip'"),
        ('[columns]\nzip = "categori"\n', "'category'"),
        ('[columns]\ny = "category"\n', "'y'"),
        ('[colums]\nzip = "category"\n', "columns"),
        ("[columns", "schema"),
    ):
        schema.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=match):
            load(str(path), label="y", schema=schema)
    with raises(DataError, "schema-file"):
        load(str(path), label="y", schema=tmp_path / "none.toml")


def test_a_category_by_schema_is_kept_as_written(tmp_path: Path) -> None:
    path = made_up.write_csv(tmp_path / "a.csv", "zip,age,y\n01067,3,a\n80331,4,b\nNA,5,a\n")
    schema = tmp_path / "types.toml"
    schema.write_text('[columns]\nzip = "category"\n', encoding="utf-8")
    dataset = load(str(path), label="y", schema=schema)
    back = arrow_from_rows(dataset.train.x, dataset.metadata)
    assert back.column("zip").to_pylist() == ["01067", "80331", None]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"a;b;y\n1;2;p\n3;4;q\n", "separator"),
        ("a,b,y\n1,café,p\n2,thé,q\n".encode("latin1"), "encoding"),
        ("a,b,y\n1,x,é\n2,y,q\n".encode("latin1"), "damaged-file"),
        (b"a,y\n1,p\n2," + b"x" * 5000 + b"\n", "long-label"),
    ],
    ids=["semicolons", "encoding", "encoding of labels", "long labels"],
)
def test_bad_csv(content: bytes, code: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with raises(DataError, code):
        load(str(path), label="y")


WRITTEN = {
    "thousands": (["1,234,567", "12", "-1,000.5"], [1234567, 12, -1000.5], "number", "read as numbers"),
    "money": (["$1.20", "$1,300", "-$2"], [1.2, 1300, -2], "number", "read as numbers"),
    "euros": (["1.5 €", "2 €", "3€"], [1.5, 2, 3], "number", "read as numbers"),
    "percent": (["12%", "7.5 %", "100%"], [12, 7.5, 100], "number", "in percent"),
    "gaps": (["1,000", "?", "2,000"], [1000, None, 2000], "number", "read as numbers"),
    "month first": (["1/31/2024", "2/1/2024", ""], [19753, 19754, None], "date", "month/day/year"),
    "day first": (["31/1/2024", "1/2/2024", "2/2/2024"], [19753, 19754, 19755], "date", "day/month/year"),
    "dots": (["1.2.2024", "2.2.2024", "3.2.2024"], [19754, 19755, 19756], "date", "day.month.year"),
    "year first": (["2024/2/1", "2024/02/02", "2024/2/3"], [19754, 19755, 19756], "date", "year/month/day"),
    "either": (["1/2/2024", "2/1/2024", "3/3/2024"], [0, 1, 2], "category", "ambiguous"),
    "percent beside numbers": (["12%", "7", "9"], [0, 1, 2], "category", ""),
    "words": (["1,000", "many", "few"], [0, 2, 1], "category", ""),
    "no such day": (["1/32/2024", "2/1/2024", "3/1/2024"], [0, 1, 2], "category", ""),
    "groups of two": (["1,23", "4,56", "7,89"], [0, 1, 2], "category", ""),
}


@pytest.mark.parametrize(("cells", "stored", "kind", "output"), WRITTEN.values(), ids=list(WRITTEN))
def test_numbers_and_dates_as_people_write_them(
    cells: list[str], stored: list[float | None], kind: str, output: str, tmp_path: Path
) -> None:
    rows = "".join(f'"{cell}",{i % 2},{"pq"[i % 2]}\n' for i, cell in enumerate(cells))
    dataset = load(str(made_up.write_csv(tmp_path / "a.csv", f"a,b,y\n{rows}")), label="y")
    assert dataset.metadata.columns[0].type == kind
    np.testing.assert_allclose(dataset.train.x[:, 0], np.array(stored, dtype=float))
    assert any(output in note and "'a'" in note for note in dataset.notes) == bool(output)


def test_names_of_columns_are_trimmed(tmp_path: Path) -> None:
    path = made_up.write_csv(tmp_path / "a.csv", 'a , b," label"\n1,x,01\n2,y,02\n')
    dataset = load(str(path), label="label")
    assert (dataset.feature_names, dataset.classes) == (("a", "b"), ("01", "02"))  # labels stay as they are written
    with raises(DataError, "repeated-column"):
        load(str(made_up.write_csv(tmp_path / "b.csv", "a,a ,y\n1,2,p\n3,4,q\n")), label="y")


def test_long_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a,b,y\n" + "x" * (2 << 20) + ",1,p\nz,2,q\n"
    path = made_up.write_csv(tmp_path / "a.csv", text)
    assert len(load(str(path), label="y").train) == 2
    monkeypatch.setattr("synthsieve.data.formats.table.MAX_ROW_LENGTH", 1 << 18)
    with raises(DataError, "long-row"):
        load(str(path), label="y")


def test_too_many_columns_are_refused_before_they_are_read(tmp_path: Path) -> None:
    names = ",".join(f"c{i}" for i in range(100_000))
    path = made_up.write_csv(tmp_path / "a.csv", f"{names},y\n")
    with raises(DataError, "too-many-columns"):
        load(str(path), label="y")


def test_denormal_numbers_are_zero(tmp_path: Path) -> None:
    path = made_up.write_csv(tmp_path / "a.csv", "a,b,y\n5e-324,1,p\n1e-323,2,q\n1.5,3,p\n")
    dataset = load(str(path), label="y")
    assert dataset.train.x[:, 0].tolist() == [0, 0, 1.5]
    assert np.isfinite(fit_encoding(dataset, np.arange(3)).encode(dataset.train.x)).all()


def label_column(values: list[Any], tmp_path: Path) -> Dataset:
    rows = "".join(f"{i % 7},{i % 5},{value}\n" for i, value in enumerate(values))
    return load(str(made_up.write_csv(tmp_path / "a.csv", f"a,b,target\n{rows}")), label="target")


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (list(range(80_000)), "'target' .* 80,000 .* identifier"),
        ([f"user-{i}" for i in range(20)], "identifier"),
        ([i // 2 * 100 + i % 2 for i in range(90)] + [5] * 20, "identifier or a measured"),
        ([f"{i / 7:.3f}" for i in range(40)], "measured"),
        ([f"{i / 7:.3f}" for i in range(40)] + [""] * 400, "measured"),
    ],
    ids=["numbers", "names", "many", "measured", "measured, few labels"],
)
def test_label_column_without_classes(values: list[Any], match: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=match):
        label_column(values, tmp_path)


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([*range(20), *[""] * 40], "check that it is not an identifier"),
        ([i % 12 + 0.5 for i in range(60)], "it may be a measured number"),
        ([*range(10), *[""] * 40], ""),
        ([i % 3 + 0.5 for i in range(60)], ""),
        ([i % 40 for i in range(400)], ""),
    ],
    ids=["one label a class", "twelve numbers", "very few labels", "three numbers", "forty classes"],
)
def test_a_label_column_that_may_hold_classes(values: list[Any], note: str, tmp_path: Path) -> None:
    assert [note in given for given in label_column(values, tmp_path).notes] == [True] * bool(note)


def test_parquet_keeps_types_and_words(tmp_path: Path) -> None:
    given = table().append_column("y", [["a", "b"] * (N // 2)])
    parquet.write_table(given, tmp_path / "a.parquet")
    dataset = load(str(tmp_path / "a.parquet"), label="y")
    back = arrow_from_rows(dataset.train.x, dataset.metadata)
    assert back.column("time").to_pylist() == given.column("time").to_pylist()
    assert dataset.feature_names == tuple(COLUMNS)


def test_a_hugging_face_data_set_saved_as_parquet(tmp_path: Path) -> None:
    """The way to `run` that docs/how-to/libraries.md describes; None is an unlabelled row."""
    features = datasets.Features({"size": datasets.Value("float32"), "y": datasets.ClassLabel(names=["cat", "dog"])})
    rows = {"size": [float(row) for row in range(40)], "y": [0, 1, None, 1] * 10}
    datasets.Dataset.from_dict(rows, features=features).to_parquet(str(tmp_path / "a.parquet"))
    dataset = load(str(tmp_path / "a.parquet"), label="y")
    assert dataset.feature_names == ("size",)
    assert np.bincount(dataset.train.y + 1).tolist() == [10, 10, 20]


def test_small_parquet_of_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"a": np.zeros(2_000_000, np.int64), "y": np.zeros(2_000_000, np.int8)}), path)
    monkeypatch.setattr("synthsieve.io.parquet.MAX_DECODED_BYTES", 1 << 20)
    with raises(DataError, "too-large"):
        load(str(path), label="y")


def test_a_damaged_schema_is_no_schema() -> None:
    good = read_rows(table()).schema.to_json()
    for value in ([{**good[0], "type": "smell"}], [{"name": "a"}], [{**good[0], "more": 1}]):
        with pytest.raises((KeyError, ValueError, TypeError)):
            TableSchema.from_json(value)
