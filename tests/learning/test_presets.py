"""Every preset builds its networks and takes a step on data of its own shape."""

import math

import numpy as np
import pytest

from synthsieve.config import load_settings, preset_names
from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.learning.loop import BatchSource
from synthsieve.learning.run_folder import Origin, RunFolder
from synthsieve.learning.step import take_step
from tests.modalities import sound, table, text, vector


def noise(*shape):
    generator = np.random.default_rng(0)
    y = np.arange(60) % 10
    train = Examples(generator.integers(0, 256, (60, *shape), dtype=np.uint8), y)
    return Dataset("noise", Kind.IMAGE, tuple(map(str, range(10))), train, train)


DATA = {
    "digits-minutes": lambda: noise(1, 8, 8),
    "image-minutes": lambda: noise(3, 32, 32),
    "mnist-minutes": lambda: noise(1, 28, 28),
    "svhn-cpu": lambda: noise(3, 32, 32),
    "svhn-table": lambda: noise(3, 32, 32),
    "svhn-paper": lambda: noise(3, 32, 32),
    "table-minutes": table.dataset,
    "sound-minutes": sound.dataset,
    "text-minutes": text.dataset,
    "vector-minutes": vector.dataset,
}


def one_step(preset, folder, overrides):
    dataset = DATA[preset]()
    settings = load_settings(preset, ["data.labels=20", "data.validation=extra", *overrides])
    run = RunFolder.create(folder, Origin("noise"), settings, dataset)
    learner = run.new_learner()
    before = {name: value.clone() for name, value in learner.model.named_parameters()}
    take_step(learner, next(BatchSource(run, dataset)))
    assert learner.step == 1
    assert all(value.isfinite().all() for value in learner.model.parameters())
    moved = [name for name, value in learner.model.named_parameters() if not value.equal(before[name])]
    assert {name.partition(".")[0] for name in moved} == {name.partition(".")[0] for name in before}
    assert all(math.isfinite(value) for value in learner.terms.values())
    assert {"contrast", "elbo", "cross_entropy"} <= set(learner.terms)


def test_there_are_data_for_every_preset():
    assert set(DATA) == set(preset_names())


@pytest.mark.parametrize("preset", DATA)
def test_a_small_batch_moves_every_network(preset, tmp_path):
    small = ["learning.batch_labeled=4", "learning.batch_unlabeled=4", "sampling.training_steps=2"]
    one_step(preset, tmp_path / "run", small)


@pytest.mark.slow
def test_a_step_of_the_paper_s_own_setting_moves_every_network(tmp_path):
    one_step("svhn-paper", tmp_path / "run", [])
