"""A small run on the real digits, quick enough to be repeated."""

import pytest

from synthsieve.defaults import settings_for
from synthsieve.learning.run_folder import Origin, RunFolder

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
    "learning.steps=12",
    "learning.batch_labeled=20",
    "learning.batch_unlabeled=20",
    "learning.evaluate_every=5",
    "learning.checkpoint_every=4",
    "learning.smoothness_weight=0.5",
    "learning.mutual_information_weight=0.1",
    "learning.label_kl_weight=0.01",
    "learning.logit_penalty=0.001",
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
        return RunFolder.create(tmp_path / name, Origin("digits"), settings, digits)

    return make
