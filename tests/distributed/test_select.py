"""The sieve over files: what fits one part comes out as in memory; what does not keeps the certificate."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synthsieve.distributed import blocks, writing
from synthsieve.errors import SelectionError
from synthsieve.sieve import select
from tests.distributed.made_up import contents, fates_in, rows, sieved, write_shards


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "_ROWS", 1_000)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("rows") / "in", *rows())


ASKED = {
    "plain": {},
    "fraction": {"keep_fraction": 0.3},
    "fraction of each class": {"keep_fraction": 0.3, "keep_per_class": True, "require_label": True},
    "ceiling": {"entropy_ceiling": 0.5, "require_label": True},
    "a count, stochastic": {"budget": 100, "method": "stochastic"},
    "random": {"method": "random", "seed": 3},
    "epsilon": {"epsilon": 50.0},
    "refined": {"budget": 60, "refine": True},
    "lean": {"memory_limit": 25_000_000},
}


@pytest.mark.parametrize("name", ASKED)
def test_a_class_in_one_part_is_chosen_from_as_in_memory(tmp_path, source, name):
    labels, logits = rows()
    told = sieved(source, tmp_path, **ASKED[name])
    alone = select(labels=labels, logits=logits, n_jobs=1, **ASKED[name])
    expected, found = alone.rows(), fates_in(tmp_path)
    for column, values in found.items():
        assert np.array_equal(values, expected[column]), column
    ours, theirs = told.as_dict(), alone.as_dict()
    for figure in theirs.keys() - {"random_bound"}:
        assert figure.endswith("seconds") or ours[figure] == theirs[figure], figure
    chosen = pq.read_table(tmp_path / "selected").to_pydict()
    picked = np.flatnonzero(expected["selected"])
    assert chosen["note"] == [f"row {row}" for row in picked]
    assert chosen["weight"] == expected["weight"][picked].tolist()
    assert json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))["selected"] == len(alone)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["selected", "selection", "summary.json"]


@pytest.mark.parametrize(
    "asked", [{}, {"budget": 30}, {"budget": 90, "refine": True}, {"method": "random"}, {"budget": 1.0}]
)
def test_parts_keep_the_budget_the_weights_and_the_certificate(tmp_path, source, asked):
    labels, logits = rows()
    told = sieved(source, tmp_path, part_rows=1_000, **asked)
    alone = select(labels=labels, logits=logits, n_jobs=1, **asked)
    found = fates_in(tmp_path)
    assert told.num_selected == len(alone)
    assert [figures.distinct for figures in told.figures] == [figures.distinct for figures in alone.figures]
    assert np.array_equal(np.bincount(labels, found["weight"]), np.bincount(labels))
    assert told.gradient_error <= told.gradient_bound * (1 + 1e-12)
    assert told.gradient_bound <= 1.03 * alone.gradient_bound
    assert "in two rounds" in told.notes[0]
    _check_certificate(told, found, labels, logits)


def _check_certificate(told, found, labels, logits):
    """L, the error and the weights, from the assignment alone."""
    p = np.exp(logits.astype(np.float64))
    gradients = p / p.sum(axis=1, keepdims=True) - np.eye(3)[labels]
    picked = np.flatnonzero(found["selected"])
    assert np.isin(found["assignment"], picked).all()
    assert np.array_equal(found["assignment"][picked], picked)
    assert np.array_equal(labels[found["assignment"]], labels)
    assert np.array_equal(np.bincount(found["assignment"], minlength=len(labels)), found["weight"])
    apart = gradients - gradients[found["assignment"]]
    assert told.gradient_bound == pytest.approx(np.linalg.norm(apart, axis=1).sum(), rel=1e-9, abs=1e-9)
    assert told.gradient_error == pytest.approx(np.linalg.norm(apart.sum(axis=0)), rel=1e-6, abs=1e-9)
    for label in range(3):
        mine = picked[labels[picked] == label]
        assert sorted(found["rank"][mine]) == list(range(len(mine)))


def test_epsilon_holds_over_parts(tmp_path, source):
    told = sieved(source, tmp_path, part_rows=1_000, epsilon=50.0)
    assert told.gradient_bound <= 50.0


def test_the_same_bytes_again_and_over_an_earlier_result(tmp_path, source):
    sieved(source, tmp_path / "one", part_rows=1_000)
    sieved(source, tmp_path / "two", budget=0.2)
    sieved(source, tmp_path / "two", part_rows=1_000)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_one_point_many_times_takes_one_pick(tmp_path):
    labels, logits = np.zeros(5_000, dtype=int), np.zeros((5_000, 2))
    logits[::10, 0] = np.arange(500) / 500
    told = sieved(write_shards(tmp_path / "in", labels, logits), tmp_path / "out", part_rows=1_000, budget=0.9)
    assert told.figures[0].distinct == 500
    assert told.num_selected == 500
    assert told.gradient_bound == 0
    assert "stands for 90% of the class" in told.notes[-1]


def test_gradients_alone_and_labels_of_text(tmp_path):
    labels, points = rows()
    names = np.array(["cat", "dog", "eel"])[labels]
    (tmp_path / "in").mkdir()
    table = {"label": names, **{f"grad_{k}": points[:, k] for k in range(3)}}
    pq.write_table(pa.table(table), tmp_path / "in" / "a.parquet")
    told = sieved(tmp_path / "in", tmp_path / "out")
    alone = select(labels=names, gradients=points, n_jobs=1)
    assert told.classes == alone.classes == ("cat", "dog", "eel")
    assert told.gradient_bound == alone.gradient_bound
    assert np.array_equal(fates_in(tmp_path / "out")["assignment"], alone.assignment)
    with pytest.raises(SelectionError, match="gradients only"):
        sieved(tmp_path / "in", tmp_path / "none", keep_fraction=0.5)


def test_text_labels_meet_a_list_of_logits(tmp_path):
    labels, logits = rows(600)
    names = np.array(["cat", "dog", "eel"])[labels]
    source = write_shards(tmp_path / "in", names, logits)
    told = sieved(source, tmp_path / "out", keep_fraction=0.5)
    alone = select(labels=names, logits=logits, keep_fraction=0.5, n_jobs=1)
    assert told.classes == alone.classes
    assert np.array_equal(fates_in(tmp_path / "out")["assignment"], alone.assignment)


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
    "damaged": (damaged, {}, r"1\.parquet"),
    "cut off": (cut_off, {}, r"2\.parquet"),
    "other columns": (other_columns, {}, r"1\.parquet .* got another logits"),
    "nan": (not_a_number, {}, "got nan in row 2077"),
    "features": (features_only, {}, "features only"),
    "empty": (empty, {}, "at least one row"),
    "two filters": (None, {"entropy_ceiling": 1.0, "keep_fraction": 0.5}, "got both"),
    "per class alone": (None, {"keep_per_class": True}, "beside keep_per_class"),
    "tiny parts": (None, {"part_rows": 10}, "at least 1,000 rows"),
    "nobody": (None, {"entropy_ceiling": 1e-40}, "lowest was"),
    "too small a budget": (None, {"budget": 2}, "each of 3 classes"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told_and_nothing_is_left(tmp_path, name):
    spoil, asked, said = BAD[name]
    folder = write_shards(tmp_path / "in", *rows())
    if spoil:
        spoil(folder)
    with pytest.raises(SelectionError, match=said):
        sieved(folder, tmp_path / "out", **asked)
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_told_and_the_earlier_result_stays(tmp_path, source, monkeypatch):
    sieved(source, tmp_path / "out")
    before = contents(tmp_path / "out")
    monkeypatch.setattr(writing, "fates", lambda rows: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(SelectionError, match="got No space left on device"):
        sieved(source, tmp_path / "out", budget=0.2)
    assert contents(tmp_path / "out") == before


@pytest.mark.slow
@pytest.mark.parametrize("classes", [1, 10])
def test_four_parts_a_class_stay_within_three_percent_of_one_machine(tmp_path, classes):
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(60_000, 10)) * 1.5 + np.linspace(-0.5, 0.5, 10)
    labels = generator.integers(0, classes, len(logits))
    logits[np.arange(len(logits)), labels] += 2.0
    source = write_shards(tmp_path / "in", labels, logits)
    told = sieved(source, tmp_path / "out", part_rows=15_000 // classes)
    assert all("in 4 parts" in note or "in 5 parts" in note for note in told.notes)
    alone = select(labels=labels, logits=logits, n_jobs=1)
    assert told.num_selected == len(alone)
    assert told.gradient_bound <= 1.03 * alone.gradient_bound
