"""Smoothness along the generator: for every kind of data, what it leaves alone, and what it moves."""

import pytest
import torch

from synthsieve.config import load_settings
from synthsieve.defaults import default_preset
from synthsieve.learning import step as steps
from synthsieve.learning.batch_source import BatchSource
from synthsieve.learning.run_folder import Origin, RunFolder
from tests.modalities import image, sound, table, text, vector

KINDS = {"image": image, "vector": vector, "table": table, "sound": sound, "text": text}
ALONE = [
    "data.labels=20",
    "data.validation_fraction=0",
    "model.latent_dim=8",
    "model.label_latent_dim=3",
    "model.dropout=0",
    "model.word_dropout=0.5",
    "learning.batch_labeled=6",
    "learning.batch_unlabeled=8",
    "learning.mutual_information_weight=0",
    "learning.smoothness_weight=0",
    "learning.latent_smoothness_weight=1",
    "learning.latent_smoothness_ramp=1",
    "augmentation.steps=0",
]


@pytest.fixture(params=KINDS)
def ready(request, tmp_path):
    def make(*more):
        dataset = KINDS[request.param].dataset()
        preset = default_preset("", dataset) or "vector-minutes"
        run = RunFolder.create(tmp_path / "run", Origin("x"), load_settings(preset, [*ALONE, *more]), dataset)
        learner = run.new_learner()
        learner.model.train()
        learner.step = 1
        return learner, next(BatchSource(run, dataset)).unlabeled_x

    return make


def loss_of(learner, x):
    terms = {}
    q = learner.model.posterior(x, steps.LABELS_ONLY)
    return steps._unlabeled_terms(learner, x, q, terms), terms["latent_roughness"]


def test_the_label_tower_and_the_energy_alone_feel_it(ready):
    learner, x = ready("learning.latent_smoothness_radius=2")
    loss, rough = loss_of(learner, x)
    assert rough.item() > 0
    assert loss.item() == pytest.approx(rough.item())
    loss.backward()
    felt = {
        name.split(".")[0] if name.startswith("energy") else ".".join(name.split(".")[:2])
        for name, weight in learner.model.named_parameters()
        if weight.grad is not None and weight.grad.abs().sum() > 0
    }
    assert felt == {"energy", "encoder.label_tower"}


def test_radius_zero_leaves_nothing_to_learn(ready):
    learner, x = ready("learning.latent_smoothness_radius=0")
    _, rough = loss_of(learner, x)
    assert rough.item() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("latents", ["style", "all"])
def test_x_stays_where_z_does_and_moves_where_z_moves(ready, latents):
    learner, x = ready(f"learning.latent_smoothness_latents={latents}")
    embedded = learner.model.encoder.embed(x)
    z = learner.model.posterior(x).mean.detach()
    move = steps._along_generator(learner, x, z)
    count = {"style": 5, "all": 8}[latents]
    assert torch.allclose(move(torch.zeros(len(x), count)), embedded, atol=1e-5)
    moved = move(torch.ones(len(x), count))
    assert moved.shape == embedded.shape
    assert not torch.allclose(moved, embedded, atol=1e-3)
    assert learner.model.generator.training


def test_padding_is_never_moved(tmp_path):
    dataset = text.dataset()
    run = RunFolder.create(tmp_path / "run", Origin("x"), load_settings("text-minutes", ALONE), dataset)
    learner, x = run.new_learner(), next(BatchSource(run, dataset)).unlabeled_x
    learner.model.train()
    z = learner.model.posterior(x).mean.detach()
    moved = steps._along_generator(learner, x, z)(3 * torch.ones(len(x), 5))
    embedded = learner.model.encoder.embed(x)
    assert torch.equal(moved[x == 0], embedded[x == 0])
    assert torch.allclose(moved[:, :, -1], embedded[:, :, -1], atol=1e-5)  # which places hold words
