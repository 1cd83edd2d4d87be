"""Unusual columns in Parquet: the same result, or the same error, in memory and on a cluster."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synthsieve import select
from synthsieve.errors import SelectionError
from synthsieve.io.parquet import text_bytes
from synthsieve.selection.files import read_table, write_selection
from tests.distributed.example_rows import select_folder
from tests.errors import raises

COUNT = 60
LABELS = np.random.default_rng(0).integers(0, 3, COUNT)
LOGITS = np.random.default_rng(1).normal(size=(COUNT, 3)).astype(np.float32)
LISTS = pa.FixedSizeListArray.from_arrays(pa.array(LOGITS.ravel()), 3)
NAMES = np.array(["a", "b", "c"])[LABELS]
COLUMNS = {f"logit_{name}": LOGITS[:, column] for column, name in enumerate("abc")}


def in_memory(path, out):
    table = read_table(path)
    selection = select(labels=table.labels, classes=table.classes, **table.outputs, n_jobs=1)
    write_selection(out, table, selection)
    return selection


def each(values):
    """One of three values for each row, by its label."""
    return [values[label] for label in LABELS.tolist()]


def not_text():
    """A column of text whose bytes are none."""
    offsets = np.arange(COUNT + 1, dtype=np.int32).tobytes()
    return pa.StringArray.from_buffers(COUNT, pa.py_buffer(offsets), pa.py_buffer(b"\xff" * COUNT))


TAKEN = {
    "dates": {"y": each([datetime.date(2020, 1, day) for day in (1, 2, 3)]), "gradients": LISTS},
    "times": {"y": each([datetime.datetime(2020, 1, day) for day in (1, 2, 3)]), "gradients": LISTS},
    "spans of time": {"y": each([datetime.timedelta(day) for day in (1, 2, 3)]), "gradients": LISTS},
    "decimals": {"y": each([decimal.Decimal(day) for day in (1, 2, 3)]), "gradients": LISTS},
    "bytes": {"y": each(["ä".encode(), b"b", b"c"]), "gradients": LISTS},
    "text views": {"y": pa.array(NAMES.tolist(), pa.string_view()), **COLUMNS},
    "text views within lists": {"y": NAMES, **COLUMNS, "l": pa.array([["a"]] * COUNT, pa.list_(pa.string_view()))},
    "dictionaries": {"y": pa.array(NAMES).dictionary_encode(), **COLUMNS},
    "weights already": {"y": NAMES, **COLUMNS, "weight": LABELS, "coreset_weight": LABELS},
}
REFUSED = {
    "bytes that are no text": ({"y": [b"\xff"] * COUNT, "gradients": LISTS}, "label-type"),
    "text that is none": ({"y": not_text(), "gradients": LISTS}, "label-type"),
    "labels beyond 64 bits": ({"y": each([0.0, 1e300, 2e300]), "gradients": LISTS}, "label-type"),
    "dates as logits": ({"y": NAMES, **COLUMNS, "logit_a": [datetime.date(2020, 1, 1)] * COUNT}, "dtype"),
    "a struct that says list": ({"y": LABELS, "logits": [{"list": 1.0}] * COUNT}, "dtype"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_unusual_labels_and_columns(tmp_path, name):
    given = pa.table(TAKEN[name])
    pq.write_table(given, tmp_path / "a.parquet")
    alone, spread = (
        in_memory(tmp_path / "a.parquet", tmp_path / "alone"),
        select_folder(tmp_path / "a.parquet", tmp_path / "s"),
    )
    assert [str(label) for label in alone.classes] == [str(label) for label in spread.classes]
    assert len(alone.classes) == 3
    written = pq.read_table(tmp_path / "alone" / "selected.parquet")
    assert written.equals(pq.read_table(tmp_path / "s" / "selected"))
    assert written.schema.names[: len(given.schema)] == given.schema.names
    assert len(set(written.schema.names)) == len(written.schema.names)
    weight, loss_weight = (written.column(len(given.schema) + place).to_numpy() for place in (0, 1))
    assert weight.sum() == pytest.approx(COUNT)
    assert loss_weight == pytest.approx(weight / weight.mean())


@pytest.mark.parametrize("way", [in_memory, select_folder])
@pytest.mark.parametrize("name", REFUSED)
def test_unusable_columns(tmp_path, name, way):
    columns, code = REFUSED[name]
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with raises(SelectionError, code) as error:
        way(tmp_path / "a.parquet", tmp_path / "out")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("way", [in_memory, select_folder])
@pytest.mark.parametrize("twice", ["logit_b", "y", "logits"])
def test_duplicate_column(tmp_path, way, twice):
    columns = {"y": LABELS, "logits": LISTS} if twice == "logits" else {"y": NAMES, **COLUMNS}
    table = pa.table(columns)
    pq.write_table(table.append_column(twice, table[twice]), tmp_path / "a.parquet")
    with raises(SelectionError, "duplicate-column"):
        way(tmp_path / "a.parquet", tmp_path / "out")


@pytest.mark.parametrize("way", [in_memory, select_folder])
@pytest.mark.parametrize("kind", ["logits", "gradients"])
def test_files_with_lists_of_other_lengths(tmp_path, way, kind):
    for name, width in (("a", 3), ("b", 4)):
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(
            pa.table({"y": LABELS, kind: [[float(k) for k in range(width)]] * COUNT}),
            tmp_path / "in" / f"{name}.parquet",
        )
    with raises(SelectionError, "ragged"):
        way(tmp_path / "in", tmp_path / "out")


@pytest.mark.parametrize("way", [in_memory, select_folder])
@pytest.mark.parametrize("column", ["y", "note", "logits"])
def test_value_repeated_many_times_is_not_decoded(tmp_path, way, column, monkeypatch):
    monkeypatch.setattr("synthsieve.io.parquet.MAX_DECODED_BYTES", 1 << 20)
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(COUNT, np.int32)), pa.array(["a" * 1_000_000]))
    columns = {"y": LABELS, "logits": LISTS, column: texts}
    if column == "logits":
        columns["logits"] = pa.array([[0.0] * 50_000] * COUNT)
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", store_schema=False, compression="zstd")
    assert (tmp_path / "a.parquet").stat().st_size < 20_000
    with raises(SelectionError, "too-large"):
        way(tmp_path / "a.parquet", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("way", [in_memory, select_folder])
def test_long_label(tmp_path, way):
    pq.write_table(pa.table({"y": ["a" * 201, *NAMES[1:].tolist()], "gradients": LISTS}), tmp_path / "a.parquet")
    with raises(SelectionError, "label-length"):
        way(tmp_path / "a.parquet", tmp_path / "out")


def test_text_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("synthsieve.io.parquet.max_bytes", lambda path: 0)
    words = ["ä", None, "", "bcd", "ä"]
    columns = {"t": words, "b": [b"12", None, b"", b"3", b"4"], "l": [words] * 5, "s": [{"t": "a"}] * 5, "n": [1] * 5}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert text_bytes(tmp_path / "a.parquet") == 7 + 4
    assert text_bytes(tmp_path / "a.parquet", ["t", "n"]) == 7
    assert text_bytes(tmp_path / "a.parquet", ["n"]) == 0


def test_files_with_another_column_order(tmp_path):
    table = pa.table({"y": NAMES, **COLUMNS})
    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(table.select(table.schema.names[::-1]), tmp_path / "b.parquet")
    with raises(SelectionError, "other-columns"):
        read_table(tmp_path)
