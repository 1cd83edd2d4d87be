"""Embeddings that stand for the rows of a table: read with them, and what comes out named by the nearest of them."""

import json
import pickle

import numpy as np
import pyarrow.csv as arrow_csv
import pytest
from tests.modalities import text
from typer.testing import CliRunner

from synthsieve.cli.app import app
from synthsieve.data.dataset import Kind
from synthsieve.data.embeddings import read_embeddings
from synthsieve.data.sources import load
from synthsieve.errors import DataError
from synthsieve.learning.shown import nearest_items


def write(folder, n=60, features=None):
    """A CSV of opinions with their age, and a matrix in which the good and the bad lie apart."""
    texts, y = text.sentences(n)
    moods = ["" if row % 5 == 0 else ("bad", "good")[one] for row, one in enumerate(y)]
    lines = [
        f"{words.replace(',', ' ')},{mood},{row}" for row, (words, mood) in enumerate(zip(texts, moods, strict=True))
    ]
    (folder / "opinions.csv").write_text("\n".join(["said,mood,age", *lines]) + "\n", encoding="utf-8")
    generator = np.random.default_rng(0)
    x = generator.normal(size=(n, 6)) + 4.0 * y[:, None]
    np.save(folder / "vectors.npy", x if features is None else features)
    return str(folder / "opinions.csv"), folder / "vectors.npy", x


def test_vectors_are_learned_from_and_rows_kept(tmp_path):
    path, vectors, x = write(tmp_path)
    dataset = load(path, label="mood", features=vectors)
    assert dataset.kind is Kind.VECTOR
    assert dataset.classes == ("bad", "good")
    np.testing.assert_allclose(dataset.train.x, x, rtol=1e-6)
    assert (dataset.train.y[::5] == -1).all()
    assert dataset.about.column_names == ["said", "mood", "age"]
    only = load(path, label="mood", text="said", features=vectors)
    assert only.kind is Kind.VECTOR
    assert only.about.column_names == ["said"]


def test_an_npz_may_hold_them(tmp_path):
    path, _, x = write(tmp_path)
    np.savez(tmp_path / "vectors.npz", x=x)
    np.testing.assert_allclose(load(path, label="mood", features=tmp_path / "vectors.npz").train.x, x, rtol=1e-6)
    np.savez(tmp_path / "other.npz", vectors=x)
    with pytest.raises(DataError, match="an array 'x', but holds 'vectors'"):
        load(path, label="mood", features=tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("features", "complaint"),
    [
        (np.zeros((59, 6)), "59 came for the 60 rows"),
        (np.zeros(60), r"shape \(n, features\), but came with shape \(60,\)"),
        (np.full((60, 2), np.nan), "finite"),
        (np.array([["a"]] * 60), "must be numbers"),
        (np.array([[{}]] * 60, dtype=object), "pickled array, which is refused"),
    ],
)
def test_a_matrix_that_does_not_fit_is_refused(features, complaint, tmp_path):
    path, vectors, _ = write(tmp_path, features=features)
    with pytest.raises(DataError, match=complaint):
        load(path, label="mood", features=vectors)


def test_a_matrix_that_is_not_there_is_refused(tmp_path):
    path, _, _ = write(tmp_path)
    with pytest.raises(DataError, match="is not a file"):
        load(path, label="mood", features=tmp_path / "nowhere.npy")


def test_the_nearest_is_looked_for_among_the_given_rows():
    train = np.array([[0.0, 0], [1, 0], [5, 5], [1, 0]], dtype=np.float32)
    found = nearest_items(np.array([[0.9, 0], [5, 4]], dtype=np.float32), train, np.array([3, 1, 0]))
    assert found.indices.tolist() == [1, 1]  # row 2 was not given; of equals the lowest row
    np.testing.assert_allclose(found.distances, [0.1, np.hypot(4, 4)], rtol=1e-5)


def test_drawn_embeddings_are_named_by_their_nearest_rows(tmp_path):
    path, vectors, x = write(tmp_path, n=100)
    out, run = tmp_path / "out", CliRunner().invoke
    small = ["--set", "learning.steps=20", "--set", "data.labels=20", "--threads", "1", "--quiet"]
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
    with pytest.raises(DataError, match="pickled array, which is refused"):
        read_embeddings(path)
    for content in (pickle.dumps([1, 2]), b"", b"PK\x03\x04 an archive"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"is no \.npy array"):
            read_embeddings(path)
    np.save(path, np.ones((4, 2), dtype=np.float16))
    assert read_embeddings(path).dtype == np.float32
