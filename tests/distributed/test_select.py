"""Selection over files: classes in one part give the result of `select`; larger ones keep budget and bound."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synthsieve.distributed.selection import block_stages, job
from synthsieve.errors import SelectionError
from synthsieve.selection.gradients import residuals_of_logits
from synthsieve.selection.select import select
from tests.distributed.example_rows import contents, outcomes_in, rows, select_folder, write_shards
from tests.errors import raises


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(job, "_MAX_ROWS", 1_000)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("rows") / "in", *rows())


OPTIONS = {
    "plain": {},
    "fraction": {"keep_fraction": 0.3},
    "fraction of each class": {"keep_fraction": 0.3, "keep_per_class": True, "require_label": True},
    "ceiling": {"entropy_ceiling": 0.5, "require_label": True},
    "a count, stochastic": {"budget": 100, "method": "stochastic"},
    "random": {"method": "random", "seed": 3},
    "epsilon": {"epsilon": 50.0},
    "refined": {"budget": 60, "refine": True},
    "lean": {"memory_limit": 25_000_000},
    "capped": {"budget": 60, "max_weight": 1.5},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_class_in_one_part_equals_in_memory(tmp_path, source, name):
    labels, logits = rows()
    selection = select_folder(source, tmp_path, **OPTIONS[name])
    alone = select(labels=labels, logits=logits, n_jobs=1, **OPTIONS[name])
    expected, found = alone.rows(), outcomes_in(tmp_path)
    for column, values in found.items():
        assert np.array_equal(values, expected[column]), column
    on_cluster, in_memory = selection.as_dict(), alone.as_dict()
    for figure in in_memory.keys() - {"random_bound"}:
        assert figure.endswith("seconds") or on_cluster[figure] == in_memory[figure], figure
    assert np.array_equal(selection.indices, alone.indices)
    assert np.array_equal(selection.weights, alone.weights)
    chosen = pq.read_table(tmp_path / "selected").to_pydict()
    picked = np.flatnonzero(expected["selected"])
    assert chosen["note"] == [f"row {row}" for row in picked]
    assert chosen["weight"] == expected["weight"][picked].tolist()
    assert json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))["selected"] == len(alone)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["selected", "selection", "summary.json"]


@pytest.mark.parametrize(
    "options", [{}, {"budget": 30}, {"budget": 90, "refine": True}, {"method": "random"}, {"budget": 1.0}]
)
def test_parts_keep_budget_weights_and_bound(tmp_path, source, options):
    labels, logits = rows()
    selection = select_folder(source, tmp_path, part_rows=1_000, **options)
    alone = select(labels=labels, logits=logits, n_jobs=1, **options)
    found = outcomes_in(tmp_path)
    assert len(selection) == len(alone)
    assert [figures.distinct for figures in selection.figures] == [figures.distinct for figures in alone.figures]
    assert np.array_equal(np.bincount(labels, found["weight"]), np.bincount(labels))
    assert selection.gradient_error <= selection.gradient_bound * (1 + 1e-12)
    assert selection.gradient_bound <= 1.03 * alone.gradient_bound
    assert "in two rounds" in selection.notes[0]
    _check_bound(selection, found, labels, logits)


def test_parts_keep_the_cap(tmp_path, source):
    labels, logits = rows()
    selection = select_folder(source, tmp_path, part_rows=1_000, budget=60, max_weight=1.5)
    found = outcomes_in(tmp_path)
    assert selection.num_capped > 0
    assert np.bincount(labels, found["weight"]) == pytest.approx(np.bincount(labels))
    for label in np.unique(labels):
        weights = found["weight"][(labels == label) & found["selected"]]
        assert weights.max() <= 1.5 * weights.mean() * (1 + 1e-12)
    gradients = residuals_of_logits(logits, labels)
    error = np.linalg.norm(gradients.sum(axis=0) - found["weight"] @ gradients)
    assert selection.gradient_error == pytest.approx(error, rel=1e-6)
    assert error <= selection.gradient_bound


def _check_bound(selection, found, labels, logits):
    """L, the error and the weights, from the assignment alone."""
    p = np.exp(logits.astype(np.float64))
    gradients = p / p.sum(axis=1, keepdims=True) - np.eye(3)[labels]
    picked = np.flatnonzero(found["selected"])
    assert np.isin(found["assignment"], picked).all()
    assert np.array_equal(found["assignment"][picked], picked)
    assert np.array_equal(labels[found["assignment"]], labels)
    assert np.array_equal(np.bincount(found["assignment"], minlength=len(labels)), found["weight"])
    apart = gradients - gradients[found["assignment"]]
    assert selection.gradient_bound == pytest.approx(np.linalg.norm(apart, axis=1).sum(), rel=1e-9, abs=1e-9)
    assert selection.gradient_error == pytest.approx(np.linalg.norm(apart.sum(axis=0)), rel=1e-6, abs=1e-9)
    for label in range(3):
        of_class = picked[labels[picked] == label]
        assert sorted(found["rank"][of_class]) == list(range(len(of_class)))


def test_epsilon_holds_over_parts(tmp_path, source):
    selection = select_folder(source, tmp_path, part_rows=1_000, epsilon=50.0)
    assert selection.gradient_bound <= 50.0


def test_output_is_reproducible(tmp_path, source):
    select_folder(source, tmp_path / "one", part_rows=1_000)
    select_folder(source, tmp_path / "two", budget=0.2)
    select_folder(source, tmp_path / "two", part_rows=1_000)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_duplicates_take_one_pick(tmp_path):
    labels, logits = np.zeros(5_000, dtype=int), np.zeros((5_000, 2))
    logits[::10, 0] = np.arange(500) / 500
    selection = select_folder(
        write_shards(tmp_path / "in", labels, logits), tmp_path / "out", part_rows=1_000, budget=0.9
    )
    assert selection.figures[0].distinct == 500
    assert len(selection) == 500
    assert selection.gradient_bound == 0
    assert "stands for 90% of the class" in selection.notes[-1]


def test_gradients_alone_and_labels_of_text(tmp_path):
    labels, points = rows()
    names = np.array(["cat", "dog", "eel"])[labels]
    (tmp_path / "in").mkdir()
    table = {"label": names, **{f"grad_{k}": points[:, k] for k in range(3)}}
    pq.write_table(pa.table(table), tmp_path / "in" / "a.parquet")
    selection = select_folder(tmp_path / "in", tmp_path / "out")
    alone = select(labels=names, gradients=points, n_jobs=1)
    assert selection.classes == alone.classes == ("cat", "dog", "eel")
    assert selection.gradient_bound == alone.gradient_bound
    assert np.array_equal(outcomes_in(tmp_path / "out")["assignment"], alone.assignment)
    with raises(SelectionError, "no-output"):
        select_folder(tmp_path / "in", tmp_path / "none", keep_fraction=0.5)


def test_text_labels_with_a_list_of_logits(tmp_path):
    labels, logits = rows(600)
    names = np.array(["cat", "dog", "eel"])[labels]
    source = write_shards(tmp_path / "in", names, logits)
    selection = select_folder(source, tmp_path / "out", keep_fraction=0.5)
    alone = select(labels=names, logits=logits, keep_fraction=0.5, n_jobs=1)
    assert selection.classes == alone.classes
    assert np.array_equal(outcomes_in(tmp_path / "out")["assignment"], alone.assignment)


def damaged(folder):
    whole = (folder / "1.parquet").read_bytes()
    (folder / "1.parquet").write_bytes(whole[:200] + bytes(2_000) + whole[2_200:])


def cut_off(folder):
    (folder / "2.parquet").write_bytes((folder / "2.parquet").read_bytes()[:-50])


def other_columns(folder):
    pq.write_table(pa.table({"y": [1], "logits": [[1, 2, 3]], "note": ["a"]}), folder / "1.parquet")


def not_a_number(folder):
    table = pq.read_table(folder / "1.parquet").to_pydict()
    table["logits"][77][1] = np.nan
    schema = pq.read_schema(folder / "1.parquet")
    pq.write_table(pa.table(table, schema=schema), folder / "1.parquet")


def features_only(folder):
    for path in folder.iterdir():
        pq.write_table(pa.table({"y": [1], "f": [1.0]}), path)


def empty(folder):
    for path in folder.iterdir():
        pq.write_table(pq.read_table(path)[:0], path)


BAD = {
    "damaged": (damaged, {}, "damaged-file"),
    "cut off": (cut_off, {}, "damaged-file"),
    "other columns": (other_columns, {}, "other-columns"),
    "nan": (not_a_number, {}, "not-finite"),
    "features": (features_only, {}, "no-output"),
    "empty": (empty, {}, "no-rows"),
    "two filters": (None, {"entropy_ceiling": 1.0, "keep_fraction": 0.5}, "two-filters"),
    "per class alone": (None, {"keep_per_class": True}, "keep-fraction"),
    "tiny parts": (None, {"part_rows": 10}, "part-rows"),
    "no survivors": (None, {"entropy_ceiling": 1e-40}, "no-survivors"),
    "too small a budget": (None, {"budget": 2}, "budget"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_input_leaves_nothing(tmp_path, name):
    spoil, options, code = BAD[name]
    folder = write_shards(tmp_path / "in", *rows())
    if spoil:
        spoil(folder)
    with raises(SelectionError, code):
        select_folder(folder, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_full_disk_keeps_the_earlier_result(tmp_path, source, monkeypatch):
    select_folder(source, tmp_path / "out")
    before = contents(tmp_path / "out")
    monkeypatch.setattr(
        block_stages, "outcome_table", lambda rows: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with raises(SelectionError, "cannot-write"):
        select_folder(source, tmp_path / "out", budget=0.2)
    assert contents(tmp_path / "out") == before


@pytest.mark.slow
@pytest.mark.parametrize("classes", [1, 10])
def test_four_parts_stay_within_three_percent_of_in_memory(tmp_path, classes):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(60_000, 10)) * 1.5 + np.linspace(-0.5, 0.5, 10)
    labels = rng.integers(0, classes, len(logits))
    logits[np.arange(len(logits)), labels] += 2.0
    source = write_shards(tmp_path / "in", labels, logits)
    selection = select_folder(source, tmp_path / "out", part_rows=15_000 // classes)
    assert sum("in 4 parts" in note or "in 5 parts" in note for note in selection.notes) == classes
    alone = select(labels=labels, logits=logits, n_jobs=1)
    assert len(selection) == len(alone)
    assert selection.gradient_bound <= 1.03 * alone.gradient_bound
