"""The rivals' protocol: no validation or test row, and no hidden label, is ever learned from."""

import importlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.splits import make_split

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
WORDS = ("good fine lovely", "bad poor awful")


@pytest.fixture
def rivals(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("rivals")


def examples(kind, count, generator):
    """x and y of two classes that can be told apart, as sources of that kind store them."""
    y = np.arange(count) % 2
    if kind is Kind.TEXT:
        texts = [" ".join(generator.choice([*WORDS[label].split(), "film", "story", "the"], 6)) for label in y]
        return np.array([text.encode() for text in texts]), y
    noise = generator.normal(size=(count, 6)) + 2 * y[:, None]
    if kind is Kind.TABLE:
        codes = (noise[:, :2] > 1).astype(float)
        table = np.concatenate([noise[:, 2:], codes], axis=1)
        table[generator.random(table.shape) < 0.05] = np.nan
        return table, y
    if kind is Kind.VECTOR:
        return noise.astype(np.float32), y
    x = noise.reshape(count, 1, 2, 3)
    return (np.clip(40 * x + 100, 0, 255).astype(np.uint8) if kind is Kind.IMAGE else x.astype(np.float32)), y


def made_up(kind):
    x, y = examples(kind, 120, np.random.default_rng(0))
    types = ("number",) * 4 + ("category", "boolean")
    schema = SimpleNamespace(columns=[SimpleNamespace(type=given) for given in types]) if kind is Kind.TABLE else None
    return Dataset("made-up", kind, ("a", "b"), Examples(x, y.astype(np.int64)), about=schema)


def poisoned(dataset, rows, *, labels_only=False):
    """The same with other labels in these rows, and other x."""
    x, y = dataset.train.x.copy(), dataset.train.y.copy()
    y[rows] = 1 - y[rows]
    if not labels_only:
        x[rows] = x[rows][::-1] if dataset.kind == Kind.TEXT else 99
    return replace(dataset, train=Examples(x, y))


def answers(rivals, dataset, split, *, grid=None):
    rivals_here = rivals.RIVALS if grid is None else [_first(one, grid) for one in rivals.RIVALS]
    return {one.name: rivals.answer(one, rivals.Views(dataset, split, 0)) for one in rivals_here}


def _first(rival, count):
    return replace(rival, grid=lambda dataset: rival.grid(dataset)[:count])


@pytest.fixture(autouse=True)
def few_components(rivals, monkeypatch):
    monkeypatch.setattr(rivals, "TEXT_COMPONENTS", 5)


@pytest.mark.parametrize("kind", Kind)
def test_test_rows_and_hidden_labels_are_never_learned_from(rivals, kind):
    dataset = made_up(kind)
    split = make_split(dataset, labels=20, seed=0)
    other = poisoned(poisoned(dataset, split.test), split.unlabeled, labels_only=True)
    before, after = answers(rivals, dataset, split, grid=2), answers(rivals, other, split, grid=2)
    for name in before:
        assert before[name].right["test"].mean() > 0.6
        np.testing.assert_array_equal(before[name].right["validation"], after[name].right["validation"])
        assert before[name].about["grid"] == after[name].about["grid"]


@pytest.mark.parametrize("kind", Kind)
def test_validation_rows_only_decide_the_grid(rivals, kind):
    dataset = made_up(kind)
    split = make_split(dataset, labels=20, seed=0)
    other = poisoned(dataset, split.validation)
    before, after = answers(rivals, dataset, split, grid=1), answers(rivals, other, split, grid=1)
    for name in before:
        np.testing.assert_array_equal(before[name].right["test"], after[name].right["test"])


def test_the_best_on_validation_is_chosen_and_kept(rivals, tmp_path):
    dataset = made_up(Kind.VECTOR)
    split = make_split(dataset, labels=20, seed=0)
    rival = rivals.RIVALS[0]
    answer = rivals.answer(rival, rivals.Views(dataset, split, 0))
    assert answer.about["grid"][answer.about["chosen"]] == max(answer.about["grid"].values())
    answer.write(tmp_path / "answer.npz")
    assert rivals.is_answered(rival, tmp_path / "answer.npz", dataset, split)
    assert not rivals.is_answered(_first(rival, 1), tmp_path / "answer.npz", dataset, split)
    assert not rivals.is_answered(rival, tmp_path / "answer.npz", dataset, make_split(dataset, labels=20, seed=1))
    np.testing.assert_array_equal(rivals.Answer.read(tmp_path / "answer.npz").right["test"], answer.right["test"])


def test_many_unlabelled_rows_are_thinned_by_the_seed(rivals, monkeypatch):
    monkeypatch.setattr(rivals, "MOST_UNLABELED", 10)
    dataset = made_up(Kind.VECTOR)
    split = make_split(dataset, labels=20, seed=0)
    rows = [rivals.Views(dataset, split, seed).unlabeled_rows() for seed in (0, 0, 1)]
    assert len(np.intersect1d(rows[0], split.unlabeled)) == 10
    np.testing.assert_array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[0], rows[2])
