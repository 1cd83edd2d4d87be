"""scikit-learn baselines: no validation or test row, and no hidden label, is used for fitting."""

import importlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.splits import make_split
from synthsieve.errors import CheckpointError
from synthsieve.experiments.baselines import features
from synthsieve.experiments.baselines.features import Views
from synthsieve.experiments.baselines.search import BaselineResult, GridMethod, GridPoint, fit_baseline
from synthsieve.experiments.baselines.sklearn_models import CLASSICAL, MAJORITY, MAX_UNLABELED, WIDE

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
WORDS = ("good fine lovely", "bad poor awful")


@pytest.fixture
def rivals(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("rivals")


def examples(kind, count, rng):
    """x and y of two separable classes, as sources of that kind store them."""
    y = np.arange(count) % 2
    if kind is Kind.TEXT:
        texts = [" ".join(rng.choice([*WORDS[label].split(), "film", "story", "the"], 6)) for label in y]
        return np.array([text.encode() for text in texts]), y
    noise = rng.normal(size=(count, 6)) + 2 * y[:, None]
    if kind is Kind.TABLE:
        codes = (noise[:, :2] > 1).astype(float)
        table = np.concatenate([noise[:, 2:], codes], axis=1)
        table[rng.random(table.shape) < 0.05] = np.nan
        return table, y
    if kind is Kind.VECTOR:
        return noise.astype(np.float32), y
    x = noise.reshape(count, 1, 2, 3)
    return (np.clip(40 * x + 100, 0, 255).astype(np.uint8) if kind is Kind.IMAGE else x.astype(np.float32)), y


def made_up(kind):
    x, y = examples(kind, 120, np.random.default_rng(0))
    types = ("number",) * 4 + ("category", "boolean")
    columns = [SimpleNamespace(type=given, categories=("a", "b")) for given in types]
    schema = SimpleNamespace(columns=columns) if kind is Kind.TABLE else None
    return Dataset("made-up", kind, ("a", "b"), Examples(x, y.astype(np.int64)), metadata=schema)


def poisoned(dataset, rows, *, labels_only=False):
    """The same with other labels in these rows, and other x."""
    x, y = dataset.train.x.copy(), dataset.train.y.copy()
    y[rows] = 1 - y[rows]
    if not labels_only:
        x[rows] = x[rows][::-1] if dataset.kind == Kind.TEXT else 99
    return replace(dataset, train=Examples(x, y))


def views(dataset, split, seed=0, limit=MAX_UNLABELED):
    return Views(dataset, split, seed, limit)


def answers(methods, dataset, split, *, grid):
    return {one.name: fit_baseline(_first(one, grid), views(dataset, split)) for one in methods}


def _first(method, count):
    return replace(method, grid=lambda dataset: method.grid(dataset)[:count])


@pytest.fixture(autouse=True)
def few_components(monkeypatch):
    monkeypatch.setattr(features, "TEXT_COMPONENTS", 5)


@pytest.mark.parametrize("kind", Kind)
def test_test_rows_and_hidden_labels_are_not_used(kind):
    dataset = made_up(kind)
    split = make_split(dataset, labels=20, seed=0)
    other = poisoned(poisoned(dataset, split.test), split.unlabeled, labels_only=True)
    before, after = answers(CLASSICAL, dataset, split, grid=2), answers(CLASSICAL, other, split, grid=2)
    assert len(before) == 6
    for name in before:
        assert before[name].metadata["failed"] is None
        assert name == MAJORITY or before[name].right("test").mean() > 0.6
        np.testing.assert_array_equal(before[name].right("validation"), after[name].right("validation"))
        assert before[name].metadata["grid"] == after[name].metadata["grid"]


@pytest.mark.parametrize("kind", Kind)
def test_validation_rows_only_choose_the_candidate(kind):
    dataset = made_up(kind)
    split = make_split(dataset, labels=20, seed=0)
    other = poisoned(dataset, split.validation)
    before, after = answers(CLASSICAL, dataset, split, grid=1), answers(CLASSICAL, other, split, grid=1)
    for name in before:
        np.testing.assert_array_equal(before[name].right("test"), after[name].right("test"))


def test_best_on_validation_is_chosen_and_stored(rivals, tmp_path):
    dataset = made_up(Kind.VECTOR)
    split = make_split(dataset, labels=20, seed=0)
    rival, reported = rivals.RIVALS[0], []
    found = fit_baseline(rival, rivals.views_of(dataset, split, 0), report=reported.append)
    assert reported == [1, 2, 3, 4, 5]
    assert found.metadata["grid"][found.metadata["chosen"]] == max(found.metadata["grid"].values())
    found.write(tmp_path / "answer.npz")
    assert rivals.is_answered(rival, tmp_path / "answer.npz", dataset, split)
    assert not rivals.is_answered(_first(rival, 1), tmp_path / "answer.npz", dataset, split)
    assert not rivals.is_answered(rival, tmp_path / "answer.npz", dataset, make_split(dataset, labels=20, seed=1))
    np.testing.assert_array_equal(BaselineResult.read(tmp_path / "answer.npz").right("test"), found.right("test"))
    for damage in (b"", b"not a zip", (tmp_path / "answer.npz").read_bytes()[:200]):
        (tmp_path / "damaged.npz").write_bytes(damage)
        with pytest.raises(CheckpointError):
            BaselineResult.read(tmp_path / "damaged.npz")


def test_first_candidate_is_used_without_validation_rows():
    dataset = made_up(Kind.VECTOR)
    split = make_split(dataset, labels=20, validation_fraction=0, seed=0)
    for method in CLASSICAL:
        found = fit_baseline(method, views(dataset, split))
        first = method.grid(dataset)[0].name
        assert found.metadata["chosen"] == first == next(iter(found.metadata["grid"]))
        assert set(found.metadata["grid"].values()) == {None}
        assert len(found.right("validation")) == 0
        assert len(found.right("test")) == len(split.test)


def test_many_unlabelled_rows_are_subsampled_by_seed():
    dataset = made_up(Kind.VECTOR)
    split = make_split(dataset, labels=20, seed=0)
    rows = [views(dataset, split, seed, limit=10).unlabeled_rows() for seed in (0, 0, 1)]
    assert len(np.intersect1d(rows[0], split.unlabeled)) == 10
    np.testing.assert_array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[0], rows[2])


def test_features_do_not_depend_on_block_size(monkeypatch):
    for kind in Kind:
        dataset = made_up(kind)
        split = make_split(dataset, labels=20, seed=0)
        view = "codes" if kind is Kind.TABLE else "reduced"
        whole = views(dataset, split)(view, "unlabeled")
        monkeypatch.setattr(features, "BLOCK", 7)
        np.testing.assert_allclose(views(dataset, split)(view, "unlabeled"), whole, atol=1e-5)
        monkeypatch.undo()


def test_wide_data_use_principal_components():
    x = np.random.default_rng(0).normal(size=(60, WIDE + 1)).astype(np.float32)
    dataset = Dataset("wide", Kind.VECTOR, ("a", "b"), Examples(x, np.arange(60) % 2))
    split = make_split(dataset, labels=20, seed=0)
    for method in CLASSICAL:
        assert {candidate.view for candidate in method.grid(dataset)} == {"reduced"}
    assert views(dataset, split)("reduced", "labeled").shape == (20, len(split.labeled) + len(split.unlabeled))


def test_column_of_many_categories():
    rng = np.random.default_rng(0)
    x = np.stack([rng.permutation(400) % 390, rng.normal(size=400) + 2 * (np.arange(400) % 2)], axis=1)
    words = tuple(map(str, range(390)))
    columns = [SimpleNamespace(type="category", categories=words), SimpleNamespace(type="number", categories=())]
    metadata = SimpleNamespace(columns=columns)
    dataset = Dataset("names", Kind.TABLE, ("a", "b"), Examples(x, np.arange(400) % 2), metadata=metadata)
    for method in CLASSICAL:
        found = fit_baseline(method, views(dataset, make_split(dataset, labels=40, seed=0)))
        assert found.metadata["failed"] is None
        assert method.name == MAJORITY or found.right("test").mean() > 0.6


def test_registered_kind_uses_its_encoding(monkeypatch):
    encoding = SimpleNamespace(encode=lambda x: np.log1p(x).reshape(len(x), 2, 2))
    monkeypatch.setattr(features, "fit_encoding", lambda dataset, rows: encoding)
    y = np.arange(200) % 2
    x = np.random.default_rng(0).poisson(4, size=(200, 4)) + 4 * y[:, None]
    dataset = Dataset("counts", "counts", ("a", "b"), Examples(x, y))
    split = make_split(dataset, labels=20, seed=0)
    seen = views(dataset, split)
    assert seen("plain", "labeled").shape == (20, 4)
    for method in CLASSICAL:
        assert method.name == MAJORITY or fit_baseline(method, seen).right("test").mean() > 0.7


def test_candidate_that_cannot_be_fitted_is_skipped():
    class Refuses:
        def fit(self, x, y):
            raise ValueError("not these\n  numbers")

    dataset = made_up(Kind.VECTOR)
    split = make_split(dataset, labels=20, seed=0)
    bad = GridPoint("bad", "plain", lambda seed: Refuses())
    good = CLASSICAL[0].grid(dataset)[0]
    found = fit_baseline(GridMethod("some", lambda dataset: [bad, good], False, ""), views(dataset, split))
    assert (found.metadata["chosen"], found.metadata["failed"]) == (good.name, "bad: not these numbers")
    found = fit_baseline(GridMethod("none", lambda dataset: [bad], False, ""), views(dataset, split))
    assert (found.answers, found.metadata["chosen"], found.metadata["grid"]) == ({}, None, {"bad": None})
