"""Embeddings: coverage without labels, per class with labels, and the matrix products behind it."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression

from synthsieve import CoresetSelector, select, select_file
from synthsieve.errors import SelectionError
from synthsieve.io.progress import NullProgress
from synthsieve.selection.budget import Target
from synthsieve.selection.kernels import dense
from synthsieve.selection.kernels.dense import DenseLocation, DensePoints
from synthsieve.selection.kernels.workers import Workers
from tests.errors import raises


def clustered(n, d, seed=0, spread=0.5):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(2, n // 50), d))
    points = centres[rng.integers(0, len(centres), n)] + spread * rng.normal(size=(n, d))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


def greedy_on_all_pairs(points, count, weight):
    """Picks and L of the plain algorithm."""
    distances = cdist(points.astype(np.float64), points.astype(np.float64))
    reach, picks = np.full(len(points), 2 * distances.max()), []
    for _ in range(count):
        gains = weight @ np.maximum(reach[:, None] - distances, 0.0)
        gains[picks] = -1.0
        picks.append(int(np.argmax(gains)))
        reach = np.minimum(reach, distances[picks[-1]])
    return picks, float(weight @ reach)


@pytest.mark.parametrize("pairs", [dense.MAX_PAIRS, 30_000])
@pytest.mark.parametrize("spread", [0.01, 0.5, 10.0])
@pytest.mark.parametrize("threads", [1, 2])
def test_picks_are_those_of_the_plain_algorithm(monkeypatch, pairs, spread, threads):
    monkeypatch.setattr(dense, "MAX_PAIRS", pairs)
    points = clustered(700, 60, spread=spread)
    weight = np.random.default_rng(1).integers(1, 4, 700).astype(np.float64)
    with Workers(threads) as workers:
        location = DenseLocation(DensePoints(points, np.arange(700, dtype=np.int32), weight), workers)
        location.greedy(Target(70), NullProgress())
    picks, bound = greedy_on_all_pairs(points, 70, weight)
    assert location.picks == picks
    assert location.upper_bound == pytest.approx(bound, rel=1e-9)
    assert location.taken_off[1:].sum() == pytest.approx(greedy_on_all_pairs(points, 1, weight)[1] - bound, rel=1e-9)


@pytest.mark.parametrize("shortlists", [(100, 20), (2, 1)])
@pytest.mark.parametrize("with_factor", [False, True])
def test_right_and_wrong_guesses_give_the_same_picks(monkeypatch, shortlists, with_factor):
    points, rng = clustered(700, 60), np.random.default_rng(1)
    weight, factor = rng.integers(1, 4, 700).astype(np.float64), rng.uniform(0.2, 2.0, 700) if with_factor else None

    def greedy():
        with Workers(2) as workers:
            location = DenseLocation(DensePoints(points, np.arange(700, dtype=np.int32), weight, factor), workers)
            location.greedy(Target(70), NullProgress())
        return location.picks, location.upper_bound

    monkeypatch.setattr(dense, "MAX_PAIRS", 40_000)
    expected = greedy()
    passes, all_gains = [], DenseLocation._all_gains
    monkeypatch.setattr(DenseLocation, "_all_gains", lambda *given: passes.append(given[1]) or all_gains(*given))
    monkeypatch.setattr(dense, "GUESSED", (0, 10**9))
    monkeypatch.setattr(dense, "_SAMPLED", 300)
    monkeypatch.setattr(dense, "_SHORTLISTS", shortlists)
    picks, bound = greedy()
    assert picks == expected[0]
    assert bound == pytest.approx(expected[1])
    assert max(len(reaches) for reaches in passes) > 2  # several picks are verified in one pass


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_both_ways_agree_far_from_the_origin_and_at_any_scale(scale, monkeypatch):
    points = (clustered(400, 50).astype(np.float64) + 100.0) * scale
    by_products = select(embeddings=points, budget=40)
    monkeypatch.setattr("synthsieve.selection.coreset.MIN_DIMS", 1_000)
    by_tiles = select(embeddings=points, budget=40)
    assert by_products.indices.tolist() == by_tiles.indices.tolist()
    assert by_products.gradient_bound == pytest.approx(by_tiles.gradient_bound, rel=1e-12)
    assert np.array_equal(by_products.assignment, by_tiles.assignment)


def test_without_labels_all_rows_are_one_class():
    points = clustered(300, 64)
    chosen = select(embeddings=points)
    assert len(chosen) == 30
    assert chosen.weights.sum() == 300
    assert [str(name) for name in chosen.classes] == ["all rows"]
    assert chosen.entropy is None
    assert chosen.gradient_bound < chosen.random_bound
    nearest = cdist(points, points[chosen.indices]).min(axis=1).sum()
    assert chosen.gradient_bound == pytest.approx(nearest, rel=1e-5)


def test_cosine_ignores_lengths():
    points = clustered(300, 64)
    stretched = points * np.random.default_rng(0).uniform(0.1, 10.0, size=(300, 1)).astype(np.float32)
    assert set(select(embeddings=stretched, metric="cosine").indices) == set(select(embeddings=points).indices)


def test_with_labels_each_class_is_covered_and_a_classifier_gives_entropies():
    labels = np.repeat(["ham", "spam"], 150)
    points = clustered(300, 64)
    points[:150, 0] += 1.0
    chosen = select(embeddings=points, labels=labels, keep_fraction=0.8, require_label=False)
    assert chosen.num_rejected == 60
    assert np.isfinite(chosen.entropy).all()
    assert any("cross-validated" in note for note in chosen.notes)
    for figures in chosen.figures:
        name = chosen.classes[figures.label]
        survivors = np.flatnonzero((labels == name) & (chosen.reason == 0))
        alone = select(embeddings=points[survivors], budget=figures.selected)
        assert set(survivors[alone.indices]) == set(chosen.indices[labels[chosen.indices] == name])


def test_rows_whose_label_the_classifier_contradicts_are_rejected():
    rng = np.random.default_rng(0)
    points, labels = clustered(300, 64), np.repeat(["ham", "spam"], 150)
    points[:150, 0] += 2.0
    wrong = rng.choice(300, 30, replace=False)
    given = labels.copy()
    given[wrong] = np.where(labels[wrong] == "ham", "spam", "ham")
    chosen = select(embeddings=points, labels=given)
    assert set(wrong) <= set(chosen.rejected)
    assert chosen.rejected_counts == {"the classifier gives another label": chosen.num_rejected}
    assert (given[chosen.indices] == labels[chosen.indices]).all()
    assert select(embeddings=points, labels=given, require_label=False).num_rejected == 0
    assert select(embeddings=points, labels=labels).num_rejected == 0


def test_a_class_most_of_whose_rows_would_be_rejected_keeps_them_all():
    points = np.random.default_rng(0).normal(size=(300, 10))
    points[:145, 0] += 8.0
    labels = np.repeat(["a", "b", "rare"], [145, 145, 10])
    chosen = select(embeddings=points, labels=labels)
    assert not np.isin(np.flatnonzero(labels == "rare"), chosen.rejected).any()
    assert any("most rows of rare" in note for note in chosen.notes)


def test_a_classifier_without_skill_rejects_no_label():
    points = np.random.default_rng(0).normal(size=(300, 10))
    chosen = select(embeddings=points, labels=np.arange(300) % 2)
    assert chosen.num_rejected == 0
    assert any("hardly better" in note for note in chosen.notes)
    assert chosen.contradicted.survivors > 100


def test_classes_too_small_for_a_classifier_are_covered_all_the_same():
    chosen = select(embeddings=clustered(100, 8), labels=np.arange(100) == 0)
    assert any("too few rows" in note for note in chosen.notes)
    assert {figures.selected for figures in chosen.figures} == {1, 10}


@pytest.mark.parametrize("count", [300, pytest.param(65_000, marks=pytest.mark.slow)])
def test_many_classes_are_covered_without_a_classifier(count):
    points = clustered(2 * count, 8)
    chosen = select(embeddings=points, labels=np.arange(2 * count) % count)
    assert len(chosen) == len(chosen.figures) == count
    assert chosen.weights.tolist() == [2.0] * count
    assert any("more than 200 classes" in note for note in chosen.notes)
    with raises(SelectionError, "no-output"):
        select(embeddings=points, labels=np.arange(2 * count) % count, require_label=True)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, "bfloat16"])
def test_number_types(kind):
    torch = pytest.importorskip("torch")
    points = clustered(200, 64)
    given = torch.tensor(points).bfloat16() if kind == "bfloat16" else points.astype(kind)
    assert len(select(embeddings=given)) == 20


BAD = {
    "zero length": ({"embeddings": [[1.0, 2.0], [0.0, 0.0]], "metric": "cosine"}, "zero-length"),
    "not a number": ({"embeddings": [[1.0, np.nan]]}, "not-finite"),
    "no rows": ({"embeddings": np.empty((0, 3))}, "no-rows"),
    "several lengths": ({"embeddings": [[1.0], [1.0, 2.0]]}, "ragged"),
    "gradients too": ({"embeddings": np.eye(3), "gradients": np.eye(3)}, "both-points"),
    "features too": ({"embeddings": np.eye(3), "features": np.eye(3)}, "both-points"),
    "a metric without embeddings": ({"gradients": np.eye(3), "labels": [0, 0, 0], "metric": "cosine"}, "metric"),
    "an unknown metric": ({"embeddings": np.eye(3), "metric": "manhattan"}, "metric"),
    "a filter without labels": ({"embeddings": np.eye(3), "keep_fraction": 0.5}, "no-output"),
    "labels of another length": ({"embeddings": np.eye(3), "labels": [0, 1]}, "length"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    given, code = BAD[name]
    with raises(SelectionError, code):
        select(**given)


def test_few_equal_and_constant_rows():
    assert select(embeddings=np.ones((1, 64))).indices.tolist() == [0]
    constant = select(embeddings=np.ones((50, 64)), budget=10)
    assert constant.indices.tolist() == [0]
    assert constant.weights.tolist() == [50.0]
    assert constant.gradient_bound == 0.0
    twice = np.repeat(clustered(30, 64), 2, axis=0)
    everything = select(embeddings=twice, budget=500)
    assert len(everything) == 30
    assert everything.gradient_bound == 0.0
    near = select(embeddings=twice + np.tile([[0.0], [1e-6]], (30, 1)).astype(np.float32), budget=30)
    assert len(set(near.indices // 2)) == 30


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.parametrize("form", ["npy", "npz", "parquet", "jsonl with a file", "csv with a file"])
def test_every_file_gives_the_same_selection(tmp_path, form):
    points = clustered(200, 60)
    expected = select(embeddings=points, metric="cosine", budget=20)
    np.save(tmp_path / "e.npy", points)
    column: str | None = "vectors"
    if form == "npy":
        source, column = tmp_path / "e.npy", None
    elif form == "npz":
        source = tmp_path / "e.npz"
        np.savez(source, vectors=points, text=np.array([f"row {row}" for row in range(200)]))
    elif form == "parquet":
        source = tmp_path / "e.parquet"
        pq.write_table(pa.table({"text": [f"row {row}" for row in range(200)], "vectors": list(points)}), source)
    else:
        source, column = tmp_path / f"e.{form.split()[0]}", str(tmp_path / "e.npy")
        if form.startswith("jsonl"):
            write_jsonl(source, [{"text": f"row {row}"} for row in range(200)])
        else:
            source.write_text("text\n" + "".join(f"row {row}\n" for row in range(200)), encoding="utf-8")
    chosen = select_file(source, tmp_path / "out", embeddings=column, metric="cosine", budget=20)
    assert chosen.indices.tolist() == expected.indices.tolist()
    if form == "npy":
        assert np.array_equal(np.load(tmp_path / "out/selected.npz")["embeddings"], points[np.sort(expected.indices)])
    elif form != "npz":
        kept = pq.read_table(tmp_path / "out/selected.parquet")
        assert kept["text"].to_pylist() == [f"row {row}" for row in np.sort(expected.indices)]
        assert sum(kept["weight"].to_pylist()) == 200


def test_bad_embedding_files_write_nothing(tmp_path):
    np.save(tmp_path / "short.npy", np.eye(3))
    np.save(tmp_path / "flat.npy", np.arange(3.0))
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "short.npy").read_bytes()[:-5])
    write_jsonl(tmp_path / "rows.jsonl", [{"text": "a"}] * 5)
    for name, code in (("short", "length"), ("flat", "shape"), ("objects", "damaged-file"), ("cut", "damaged-file")):
        with raises(SelectionError, code):
            select_file(tmp_path / "rows.jsonl", tmp_path / "out", embeddings=str(tmp_path / f"{name}.npy"))
    with raises(SelectionError, "no-input"):
        select_file(tmp_path / "rows.jsonl", tmp_path / "out", embeddings="vectors")
    assert not (tmp_path / "out" / "summary.json").exists()


def test_selector_covers_embeddings_with_and_without_labels():
    points, labels = clustered(200, 60), np.arange(200) % 2
    selector = CoresetSelector(embeddings=True, metric="cosine").fit(points)
    assert selector.indices_.tolist() == select(embeddings=points, metric="cosine").indices.tolist()
    with_labels = CoresetSelector(embeddings=True, classifier=LogisticRegression()).fit(points, labels)
    assert with_labels.indices_.tolist() == select(embeddings=points, labels=labels).indices.tolist()
    with raises(SelectionError, "no-labels"):
        CoresetSelector().fit(points)


def test_fast_works_in_cells_and_comes_close_to_exact(monkeypatch):
    for module in ("coreset", "kernels.cells"):
        monkeypatch.setattr(f"synthsieve.selection.{module}.CELL", 250)
    points = clustered(1_000, 60)
    exact, fast = (select(embeddings=points, method=method) for method in ("exact", "fast"))
    assert len(fast) == len(set(fast.indices.tolist())) == 100
    assert fast.weights.sum() == 1_000
    assert np.array_equal(fast.assignment[fast.indices], fast.indices)
    assert fast.gradient_bound < 1.02 * exact.gradient_bound < fast.random_bound
    again = select(embeddings=points, method="fast", n_jobs=1)
    assert again.indices.tolist() == fast.indices.tolist()


def test_products_of_torch_give_the_same_picks():
    points, picks = clustered(700, 60).astype(np.float32), {}
    for device in (None, torch.device("cpu")):
        given = DensePoints(points, np.arange(700, dtype=np.int32), np.ones(700), device=device)
        assert isinstance(given.take(np.arange(2)), np.ndarray if device is None else torch.Tensor)
        with Workers(2) as workers:
            location = DenseLocation(given, workers)
            location.start_from(np.array([3, 500]))
            location.greedy(Target(70), NullProgress())
        picks[device] = location.picks
    assert picks[None] == picks[torch.device("cpu")]


def test_a_device_with_inexact_products_is_not_used(monkeypatch):
    exact = torch.Tensor.__matmul__
    monkeypatch.setattr(torch.Tensor, "__matmul__", lambda a, b: exact(a.bfloat16().float(), b))
    given = DensePoints(clustered(100, 60), np.arange(100, dtype=np.int32), np.ones(100), device=torch.device("cpu"))
    assert isinstance(given.take(np.arange(2)), np.ndarray)
