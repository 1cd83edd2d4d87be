"""What holds for rows of every form: the same selection, and the selected rows in the same form."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synthsieve import select, select_file
from synthsieve.errors import SelectionError
from tests.errors import raises
from tests.selection.test_embeddings import clustered

COUNT = 120
POINTS = clustered(COUNT, 8)
LABELS = np.array(["ham", "spam"])[np.arange(COUNT) % 2]
SCORES = np.random.default_rng(0).uniform(1.0, 5.0, COUNT)
TEXTS = [f"row {row} says {word} {word}" for row, word in enumerate(np.random.default_rng(0).permutation(COUNT) % 7)]
COLUMNS = {"vector": list(POINTS), "kind": LABELS.tolist(), "score": SCORES.tolist(), "text": TEXTS}
ROWS = [dict(zip(COLUMNS, cells, strict=True)) for cells in zip(*COLUMNS.values(), strict=True)]
ADDED = {"weight", "loss_weight", "rank", "entropy", "assignment", "reason"}


def polars():
    library = pytest.importorskip("polars")
    return library.DataFrame({**COLUMNS, "vector": POINTS.tolist()})


def dataset():
    library = pytest.importorskip("datasets")
    everything = library.Dataset.from_list([{**row, "vector": row["vector"].tolist()} for row in ROWS[:5] + ROWS])
    return everything.select(range(5, COUNT + 5))  # rows by way of a mapping of indices


def stream():
    library = pytest.importorskip("datasets")
    return library.IterableDataset.from_generator(lambda: iter(ROWS))


def torch_columns():
    torch = pytest.importorskip("torch")
    return {**COLUMNS, "vector": torch.tensor(POINTS), "score": torch.tensor(SCORES)}


FORMS = {
    "pandas": lambda: pd.DataFrame(COLUMNS).set_index(np.arange(COUNT)[::-1]),
    "polars": polars,
    "arrow": lambda: pa.table({**COLUMNS, "vector": POINTS.tolist()}),
    "record batch": lambda: pa.RecordBatch.from_pydict({**COLUMNS, "vector": POINTS.tolist()}),
    "dataset": dataset,
    "stream": stream,
    "dict": lambda: {**COLUMNS, "vector": POINTS},
    "tensors": torch_columns,
    "dicts": lambda: ROWS,
}


def as_dicts(rows):
    """Selected rows of any form as a list of dicts."""
    if hasattr(rows, "to_dicts"):
        return rows.to_dicts()
    if hasattr(rows, "to_pylist"):
        return rows.to_pylist()
    if isinstance(rows, pd.DataFrame):
        return rows.to_dict("records")
    if isinstance(rows, dict):
        return [dict(zip(rows, cells, strict=True)) for cells in zip(*rows.values(), strict=True)]
    return list(rows)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows_with_the_outcome(form):
    rows = FORMS[form]()
    given = {"embeddings": "vector", "labels": "kind", "quality": "score", "quality_floor": 2.0, "budget": 20}
    chosen = select(rows, **given)
    expected = select(embeddings=POINTS, labels=LABELS, quality=SCORES, quality_floor=2.0, budget=20)
    assert chosen.indices.tolist() == expected.indices.tolist()
    taken = chosen.take(rows)
    if form != "stream":
        assert type(taken) is type(rows)
    found = as_dicts(taken)
    order = np.sort(chosen.indices) if form == "stream" else chosen.indices
    assert [row["text"] for row in found] == [TEXTS[row] for row in order]
    assert set(found[0]) == {*COLUMNS, *ADDED}
    weight = dict(zip(chosen.indices, chosen.weights, strict=True))
    assert [row["weight"] for row in found] == [weight[row] for row in order]
    assert all(str(row["reason"]) == "selected" for row in found)
    assert [int(row["assignment"]) for row in found] == order.tolist()


@pytest.mark.parametrize("form", FORMS)
def test_unknown_column(form):
    rows = FORMS[form]()
    with raises(SelectionError, "unknown-column"):
        select(rows, embeddings="vectors")
    with raises(SelectionError, "unknown-column"):
        select(rows, embeddings="vector", labels="sort")


@pytest.mark.parametrize("form", [form for form in FORMS if form != "stream"])
def test_other_rows_than_those_given(form):
    rows = FORMS[form]()
    chosen = select(embeddings=POINTS[:-1])
    with raises(SelectionError, "length"):
        chosen.take(rows)


def test_arrays_are_taken_in_the_order_of_the_weights():
    torch = pytest.importorskip("torch")
    chosen = select(embeddings=torch.tensor(POINTS), budget=10)
    assert np.array_equal(chosen.take(POINTS), POINTS[chosen.indices])
    assert torch.equal(chosen.take(torch.tensor(POINTS)), torch.tensor(POINTS[chosen.indices]))
    assert chosen.take(TEXTS) == [TEXTS[row] for row in chosen.indices]


def test_names_that_are_taken():
    frame = pd.DataFrame({"vector": list(POINTS), "weight": SCORES})
    taken = select(frame, embeddings="vector", budget=10).take(frame)
    assert taken["weight"].tolist() == SCORES[taken.index].tolist()
    assert taken["coreset_weight"].sum() == COUNT


def test_a_table_as_reference():
    frame = pd.DataFrame(COLUMNS)
    chosen = select(frame, embeddings="vector", labels="kind", reference=frame[:7], require_label=False)
    assert chosen.rejected.tolist() == list(range(7))
    assert chosen.reference.row[:7].tolist() == list(range(7))
    assert not any("no labels" in note for note in chosen.notes)


class Encoder:
    """Encodes a text as numbers made of its letters."""

    def __init__(self, extra=0):
        self.extra = extra

    def encode(self, texts):
        assert isinstance(texts, list)
        assert isinstance(texts[0], str)
        codes = [[text.count(letter) for letter in "0123456789"] + [len(text)] for text in texts]
        return np.array(codes + codes[: self.extra], dtype=np.float32)


@pytest.mark.parametrize("way", ["column", "list", "argument"])
def test_texts_are_encoded(way):
    rows = {"column": pd.DataFrame(COLUMNS), "list": TEXTS, "argument": None}[way]
    text = {"column": "text", "list": None, "argument": TEXTS}[way]
    chosen = select(rows, text=text, encoder=Encoder(), budget=12, reference=TEXTS[:3])
    expected = select(embeddings=Encoder().encode(TEXTS), budget=12, reference=Encoder().encode(TEXTS[:3]))
    assert chosen.indices.tolist() == expected.indices.tolist()
    assert {0, 1, 2} <= set(chosen.rejected.tolist())


def test_texts_without_an_encoder_are_compared_by_words():
    chosen = select(TEXTS, budget=7)
    assert len({TEXTS[row].split()[-1] for row in chosen.indices}) == 7
    assert any("TF-IDF" in note for note in chosen.notes)
    assert select(TEXTS, budget=7).indices.tolist() == chosen.indices.tolist()
    mixed = select(["", "a", "one two three " * 2_000, "éß", *TEXTS], budget=9)
    assert len(mixed) == 9
    assert select(["word"]).indices.tolist() == [0]


BAD_TEXTS = {
    "an encoder with too many rows": ({"text": TEXTS, "encoder": Encoder(1)}, "encoder-count"),
    "an encoder without encode": ({"text": TEXTS, "encoder": "minilm"}, "encoder"),
    "an encoder without text": ({"embeddings": POINTS, "encoder": Encoder()}, "encoder"),
    "a missing text": ({"text": ["a", None]}, "text"),
    "an empty cell": (
        {"features": pd.DataFrame({"text": ["a", np.nan]}), "text": "text"},
        "text",
    ),
    "numbers": ({"text": [1, 2]}, "text"),
    "no text": ({"text": []}, "no-rows"),
    "no words": ({"text": ["...", "!"]}, "text"),
    "a name without rows": ({"text": "completion"}, "no-columns"),
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_bad_texts(name):
    given, code = BAD_TEXTS[name]
    with raises(SelectionError, code):
        select(**given)


def test_a_matrix_has_no_columns():
    with raises(SelectionError, "no-columns"):
        select(POINTS, embeddings="vector")


def test_cells_of_several_lengths():
    with raises(SelectionError, "ragged") as caught:
        select([{"vector": [1.0, 2.0]}, {"vector": [1.0]}], embeddings="vector")
    assert "row 1" in str(caught.value)
    with raises(SelectionError, "missing") as caught:
        select([{"vector": [1.0, 2.0]}, {"vector": None}], embeddings="vector")
    assert "row 1" in str(caught.value)


def test_a_column_of_vectors_alone():
    chosen = select(embeddings=pd.DataFrame(COLUMNS)["vector"], budget=10)
    assert chosen.indices.tolist() == select(embeddings=POINTS, budget=10).indices.tolist()


def test_a_lazy_frame():
    library = pytest.importorskip("polars")
    with raises(SelectionError, "lazy-frame") as caught:
        select(library.LazyFrame({"vector": POINTS.tolist()}), embeddings="vector")
    assert "collect" in str(caught.value)


def write(folder, suffix):
    """The rows as a file of this type, and the name of its embeddings."""
    np.save(folder / "e.npy", POINTS)
    others = pa.table({name: column for name, column in COLUMNS.items() if name != "vector"})
    path = folder / f"rows{suffix}"
    if suffix == ".parquet":
        pq.write_table(others.append_column("vector", pa.array(POINTS.tolist())), path)
        return path, "vector"
    if suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in others.to_pylist()), encoding="utf-8")
    else:
        others.to_pandas().to_csv(path, index=False)
    return path, str(folder / "e.npy")


@pytest.mark.parametrize("target", [".jsonl", ".parquet", ".csv"])
@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".csv"])
def test_files_of_rows(tmp_path, suffix, target):
    path, embeddings = write(tmp_path, suffix)
    out = tmp_path / f"chosen{target}"
    given = {"embeddings": embeddings, "text": "text", "quality": "score", "quality_factor": True, "budget": 15}
    expected = select(embeddings=POINTS, labels=LABELS, quality=SCORES, quality_factor=True, budget=15)
    if target == ".csv" and suffix == ".parquet":
        with raises(SelectionError, "csv-lists") as caught:
            select_file(path, out, label="kind", **given)
        assert "vector" in str(caught.value)
        assert not out.exists()
        return
    chosen = select_file(path, out, label="kind", **given)
    if target == ".csv":
        rows = pd.read_csv(out).to_dict("records")
    elif target == ".jsonl":
        rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    else:
        rows = pq.read_table(out).to_pylist()
    assert chosen.indices.tolist() == expected.indices.tolist()
    assert [row["text"] for row in rows] == [TEXTS[row] for row in np.sort(chosen.indices)]
    assert set(rows[0]) >= ADDED
    assert sum(row["weight"] for row in rows) == COUNT - chosen.num_rejected
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")) == sorted(
        {"e.npy", path.name, out.name}
    )
    with raises(SelectionError, "out-exists"):
        select_file(path, out, **given)
    again = select_file(path, out, label="kind", force=True, **given)
    assert again.indices.tolist() == chosen.indices.tolist()


def test_texts_and_a_reference_from_files(tmp_path):
    path, _ = write(tmp_path, ".jsonl")
    (tmp_path / "real.csv").write_text("text,kind\n" + f"{TEXTS[4]},ham\n", encoding="utf-8")
    chosen = select_file(path, tmp_path / "out", text="text", label="kind", reference=tmp_path / "real.csv", budget=9)
    assert 4 in chosen.rejected
    assert pq.read_table(tmp_path / "out/selection.parquet")["reference_row"].to_pylist()[4] == 0


def test_a_missing_text_in_a_file(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"text": "a"}\n{"text": null}\n', encoding="utf-8")
    with raises(SelectionError, "text") as caught:
        select_file(tmp_path / "rows.jsonl", tmp_path / "out", text="text")
    assert "row 1" in str(caught.value)


BAD_FILES = {
    "a reference of another form": ({"reference": "rows.jsonl"}, "reference"),
    "a missing reference": ({"reference": "absent.npy"}, "missing-file"),
    "an unknown quality": ({"quality": "sore", "quality_floor": 1.0}, "no-input"),
    "text as quality": ({"quality": "kind", "quality_floor": 1.0}, "dtype"),
    "quality from a matrix": ({"quality": "e.npy", "quality_floor": 1.0}, "shape"),
    "an unknown text": ({"text": "completion"}, "no-input"),
    "numbers as text": ({"text": "score", "embeddings": None}, "text"),
    "a type of file that is not written": ({"out": "chosen.tsv"}, "out"),
    "out is the input": ({"out": "rows.jsonl"}, "out-is-input"),
    "a cluster": ({"cluster": "local"}, "cluster-options"),
    "a floor on a cluster": (
        {"cluster": "local", "out": "chosen", "embeddings": None, "quality_floor": 1.0}, "cluster-options"),
    "outliers on a cluster": (
        {"cluster": "local", "out": "chosen", "embeddings": None, "outlier_fraction": 0.1}, "cluster-options"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_write_nothing(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, ".jsonl")
    before = sorted(tmp_path.iterdir())
    changes, code = BAD_FILES[name]
    given = {"out": "chosen.jsonl", "embeddings": "e.npy", **changes}
    with raises(SelectionError, code):
        select_file("rows.jsonl", **given)
    assert [path for path in sorted(tmp_path.iterdir()) if not path.name.endswith(".lock")] == before


def test_an_array_cannot_become_a_file_of_rows(tmp_path):
    write(tmp_path, ".jsonl")
    with raises(SelectionError, "out"):
        select_file(tmp_path / "e.npy", tmp_path / "chosen.jsonl")
