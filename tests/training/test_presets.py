"""Every preset builds its networks and takes a step on data of its own shape."""

import math

import numpy as np
import pytest

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.origin import Origin
from synthsieve.settings import load_settings, preset_names
from synthsieve.training.batches import BatchSource
from synthsieve.training.run_dir import RunDirectory
from synthsieve.training.step import take_step
from tests.modalities import sound, table, text, vector


def noise(*shape):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 10
    train = Examples(rng.integers(0, 256, (60, *shape), dtype=np.uint8), y)
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
    run = RunDirectory.create(folder, Origin("noise"), settings, dataset)
    train_state = run.new_train_state()
    before = {name: value.clone() for name, value in train_state.model.named_parameters()}
    take_step(train_state, next(BatchSource(run.data(dataset), run.settings)))
    assert train_state.step == 1
    assert all(value.isfinite().all() for value in train_state.model.parameters())
    moved = [name for name, value in train_state.model.named_parameters() if not value.equal(before[name])]
    assert {name.partition(".")[0] for name in moved} == {name.partition(".")[0] for name in before}
    assert all(math.isfinite(value) for value in train_state.metrics.values())
    assert {"contrast", "elbo", "cross_entropy"} <= set(train_state.metrics)


def test_there_are_data_for_every_preset():
    assert set(DATA) == set(preset_names())


@pytest.mark.parametrize("preset", DATA)
def test_a_small_batch_moves_every_network(preset, tmp_path):
    small = ["training.batch_labeled=4", "training.batch_unlabeled=4", "sampling.training_steps=2"]
    one_step(preset, tmp_path / "run", small)


@pytest.mark.slow
def test_a_step_of_the_paper_s_own_setting_moves_every_network(tmp_path):
    one_step("svhn-paper", tmp_path / "run", [])
