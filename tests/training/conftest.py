"""A small run on the real digits, quick enough to be repeated."""

import pytest

from synthsieve.data.origin import Origin
from synthsieve.training.defaults import settings_for
from synthsieve.training.run_dir import RunDirectory

QUICK = [
    "model.encoder=mlp",
    "model.encoder_depth=1",
    "model.encoder_width=32",
    "model.generator=mlp",
    "model.generator_width=32",
    "model.latent_dim=8",
    "model.label_latent_dim=3",
    "model.energy_width=16",
    "model.dropout=0.1",
    "sampling.training_steps=3",
    "training.steps=12",
    "training.generator_ratio=0",
    "training.batch_labeled=20",
    "training.batch_unlabeled=20",
    "training.evaluate_every=5",
    "training.checkpoint_every=4",
    "training.smoothness_weight=0.5",
    "training.mutual_information_weight=0.1",
    "training.label_kl_weight=0.01",
    "training.logit_penalty=0.001",
    "augmentation.steps=0",
    "sampling.num_steps=3",
]


@pytest.fixture(scope="session")
def digits():
    return Origin("digits").load()


@pytest.fixture
def quick_run(tmp_path, digits):
    def make(name="run", *more):
        settings = settings_for("digits", overrides=[*QUICK, *more])
        return RunDirectory.create(tmp_path / name, Origin("digits"), settings, digits)

    return make
