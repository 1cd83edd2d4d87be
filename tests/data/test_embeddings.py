"""Embeddings that stand for the rows of a table: read with them, and what comes out named by the nearest of them."""

import json
import pickle

import numpy as np
import pyarrow.csv as arrow_csv
import pytest
from typer.testing import CliRunner

from synthsieve.cli.app import app
from synthsieve.data.dataset import Kind
from synthsieve.data.formats.npz import read_embeddings
from synthsieve.data.registry import load
from synthsieve.errors import DataError
from synthsieve.results.readable import nearest_items
from tests.errors import raises
from tests.modalities import text


def write(folder, n=60, features=None):
    """A CSV of opinions with their age, and a matrix in which the good and the bad lie apart."""
    texts, y = text.sentences(n)
    moods = ["" if row % 5 == 0 else ("bad", "good")[one] for row, one in enumerate(y)]
    lines = [
        f"{words.replace(',', ' ')},{mood},{row}" for row, (words, mood) in enumerate(zip(texts, moods, strict=True))
    ]
    (folder / "opinions.csv").write_text("\n".join(["said,mood,age", *lines]) + "\n", encoding="utf-8")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 6)) + 4.0 * y[:, None]
    np.save(folder / "vectors.npy", x if features is None else features)
    return str(folder / "opinions.csv"), folder / "vectors.npy", x


def test_rows_are_kept_as_metadata(tmp_path):
    path, vectors, x = write(tmp_path)
    dataset = load(path, label="mood", features=vectors)
    assert dataset.kind is Kind.VECTOR
    assert dataset.classes == ("bad", "good")
    np.testing.assert_allclose(dataset.train.x, x, rtol=1e-6)
    assert (dataset.train.y[::5] == -1).all()
    assert dataset.metadata.column_names == ["said", "mood", "age"]
    only = load(path, label="mood", text="said", features=vectors)
    assert only.kind is Kind.VECTOR
    assert only.metadata.column_names == ["said"]


def test_an_npz_may_hold_them(tmp_path):
    path, _, x = write(tmp_path)
    np.savez(tmp_path / "vectors.npz", x=x)
    np.testing.assert_allclose(load(path, label="mood", features=tmp_path / "vectors.npz").train.x, x, rtol=1e-6)
    np.savez(tmp_path / "other.npz", vectors=x)
    with raises(DataError, "missing-array"):
        load(path, label="mood", features=tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("features", "code"),
    [
        (np.zeros((59, 6)), "row-count"),
        (np.zeros(60), "example-type"),
        (np.full((60, 2), np.nan), "not-finite"),
        (np.array([["a"]] * 60), "example-type"),
        (np.array([[{}]] * 60, dtype=object), "pickled"),
    ],
)
def test_matrix_unlike_the_table(features, code, tmp_path):
    path, vectors, _ = write(tmp_path, features=features)
    with raises(DataError, code):
        load(path, label="mood", features=vectors)


def test_missing_matrix(tmp_path):
    path, _, _ = write(tmp_path)
    with raises(DataError, "missing-file"):
        load(path, label="mood", features=tmp_path / "nowhere.npy")


def test_the_nearest_is_looked_for_among_the_given_rows():
    train = np.array([[0.0, 0], [1, 0], [5, 5], [1, 0]], dtype=np.float32)
    found = nearest_items(np.array([[0.9, 0], [5, 4]], dtype=np.float32), train, np.array([3, 1, 0]))
    assert found.indices.tolist() == [1, 1]  # row 2 was not given; of equals the lowest row
    np.testing.assert_allclose(found.distances, [0.1, np.hypot(4, 4)], rtol=1e-5)


def test_drawn_embeddings_are_named_by_their_nearest_rows(tmp_path):
    path, vectors, x = write(tmp_path, n=100)
    out, run = tmp_path / "out", CliRunner().invoke
    small = ["--set", "training.steps=20", "--set", "data.labels=20", "--threads", "1", "--quiet"]
    done = run(app, ["fit", path, "-o", str(out), "--label", "mood", "--features", str(vectors), *small])
    assert done.exit_code == 0, done.output
    done = run(app, ["sample", str(out), "--per-class", "3", "--json", "--quiet", "--threads", "1"])
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["shown"]) == 2
    table = arrow_csv.read_csv(out / "samples.csv")
    assert table.column_names == ["nearest_row", "distance", "nearest_said", "nearest_mood", "nearest_age", "mood"]
    assert table.column("mood").to_pylist() == ["bad"] * 3 + ["good"] * 3
    rows = table.column("nearest_row").to_numpy()
    np.testing.assert_array_equal(table.column("nearest_age").to_numpy(), rows)
    with np.load(out / "samples.npz") as drawn:
        distances = np.linalg.norm(drawn["x"] - x[rows], axis=1)
    np.testing.assert_allclose(table.column("distance").to_numpy(), distances, rtol=1e-4)


def test_nothing_but_plain_arrays_is_read(tmp_path):
    path = tmp_path / "e.npy"
    np.save(path, np.array([{}] * 4, dtype=object), allow_pickle=True)
    with raises(DataError, "pickled"):
        read_embeddings(path)
    for content in (pickle.dumps([1, 2]), b"", b"PK\x03\x04 an archive"):
        path.write_bytes(content)
        with raises(DataError, "unknown-format"):
            read_embeddings(path)
    np.save(path, np.ones((4, 2), dtype=np.float16))
    assert read_embeddings(path).dtype == np.float32
