"""How good a pool is: all figures of a fair pool, and a reason for each that too few rows cannot give."""

import json

import numpy as np
import pytest

from synthsieve.data.origin import Origin
from synthsieve.evaluation import quality
from synthsieve.evaluation.predict import latents
from synthsieve.evaluation.quality import pool_quality
from synthsieve.training.defaults import settings_for
from synthsieve.training.run_dir import RunDirectory
from tests.training.conftest import QUICK

FIGURES = {"manifold", "frechet_distance", "two_sample", "train_on_synthetic", "memorisation"}


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """The digits, their split, and an encoder that nobody trained: a feature space as good as any."""
    digits = Origin("digits").load()
    settings = settings_for("digits", overrides=QUICK)
    run = RunDirectory.create(tmp_path_factory.mktemp("quality") / "run", Origin("digits"), settings, digits)
    return run.new_train_state().averaged, run.encoding, digits, run.split


def measured(case, rows, seed=0):
    """The figures of real examples that pass for synthetic ones."""
    model, encoding, digits, split = case
    return pool_quality(model, encoding, digits, split, x=digits.train.x[rows], y=digits.train.y[rows], seed=seed)


def test_held_out_examples_look_real_and_training_examples_like_copies(case):
    *_, split = case
    fresh = measured(case, split.validation)
    assert fresh["notes"] == []
    assert fresh["synthetic"] == len(split.validation)
    assert fresh["memorisation"]["verdict"] == "no sign of copies"
    assert fresh["two_sample"]["low"] <= 0.5
    assert fresh["manifold"]["precision"] > 0.7
    assert fresh["frechet_distance"] < 0.2 * np.square(latents(*case[:2], case[2].train.x)).sum(axis=1).mean()
    assert fresh["train_on_synthetic"]["count"] == len(split.test)
    assert measured(case, split.unlabeled[:200])["memorisation"]["verdict"] == "copies suspected"
    json.dumps(fresh, allow_nan=False)


def test_figures_of_held_out_examples_are_reported(case):
    *_, split = case
    same = measured(case, split.test)
    assert same["same_law"]["manifold"] == same["manifold"]
    assert same["same_law"]["frechet_distance"] == same["frechet_distance"]


def test_the_same_seed_gives_the_same_figures(case, monkeypatch):
    *_, split = case
    monkeypatch.setattr(quality, "MAX_ROWS", 100)
    one, again, other = (measured(case, split.unlabeled[:300], seed) for seed in (0, 0, 1))
    assert one["synthetic"] == 100
    assert one["manifold"]["num_real"] == 100
    assert one == again != other


@pytest.mark.parametrize("count", [1, 3, 7])
def test_figures_of_too_few_samples_are_none(case, count):
    *_, split = case
    figures = measured(case, split.test[:count])
    absent = {name for name in FIGURES if figures[name] is None}
    expected = {1: FIGURES - {"memorisation"}, 3: {"manifold", "two_sample"}, 7: {"two_sample"}}
    assert absent == expected[count]
    assert [note.partition(":")[0] for note in figures["notes"]] == [name for name in figures if name in absent]
    assert figures["same_law"]["manifold"] is not None
