"""Smoothness along the generator: for every kind of data, what it leaves alone, and what it moves."""

import pytest
import torch

from synthsieve.data.origin import Origin
from synthsieve.settings import load_settings
from synthsieve.training import objectives
from synthsieve.training import step as steps
from synthsieve.training.batches import BatchSource
from synthsieve.training.defaults import default_preset
from synthsieve.training.run_dir import RunDirectory
from tests.modalities import image, sound, table, text, vector

KINDS = {"image": image, "vector": vector, "table": table, "sound": sound, "text": text}
SMALL = [
    "data.labels=20",
    "data.validation_fraction=0",
    "model.latent_dim=8",
    "model.label_latent_dim=3",
    "model.dropout=0",
    "model.word_dropout=0.5",
    "training.batch_labeled=6",
    "training.batch_unlabeled=8",
    "training.mutual_information_weight=0",
    "training.graph_weight=0",
    "training.smoothness_weight=0",
    "training.latent_smoothness_weight=1",
    "training.latent_smoothness_ramp=1",
    "augmentation.steps=0",
]


@pytest.fixture(params=KINDS)
def ready(request, tmp_path):
    def make(*more):
        dataset = KINDS[request.param].dataset()
        preset = default_preset("", dataset) or "vector-minutes"
        folder = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        run = RunDirectory.create(folder, Origin("x"), load_settings(preset, [*SMALL, *more]), dataset)
        train_state = run.new_train_state()
        train_state.model.train()
        train_state.step = 1
        return train_state, next(BatchSource(run.data(dataset), run.settings))

    return make


def loss_of(train_state, batch):
    metrics = {}
    q = train_state.model.posterior(batch.unlabeled_x, steps.LABELS_ONLY)
    return steps._unlabeled_loss(train_state, batch, q, metrics), metrics["latent_roughness"]


def test_only_label_tower_and_energy_get_a_gradient(ready):
    train_state, batch = ready("training.latent_smoothness_radius=2")
    loss, rough = loss_of(train_state, batch)
    assert rough.item() > 0
    assert loss.item() == pytest.approx(rough.item())
    loss.backward()
    moved = {
        name.split(".")[0] if name.startswith("energy") else ".".join(name.split(".")[:2])
        for name, weight in train_state.model.named_parameters()
        if weight.grad is not None and weight.grad.abs().sum() > 0
    }
    assert moved == {"energy", "encoder.label_tower"}


def test_radius_zero_leaves_nothing_to_learn(ready):
    train_state, batch = ready("training.latent_smoothness_radius=0")
    _, rough = loss_of(train_state, batch)
    assert rough.item() == pytest.approx(0.0, abs=1e-6)


def test_targets_of_the_averaged_weights(ready):
    train_state, batch = ready("training.latent_smoothness_radius=0", "training.average_targets=true")
    _, rough = loss_of(train_state, batch)
    assert rough.item() == pytest.approx(0.0, abs=1e-6)  # both weights are still the same
    with torch.no_grad():
        for weight in train_state.averaged.energy.parameters():
            weight.mul_(2)
        log_p, log_q = (
            model.energy.class_logits(model.posterior(batch.unlabeled_x).mean).log_softmax(1)
            for model in (train_state.averaged, train_state.model)
        )
    loss, rough = loss_of(train_state, batch)
    assert rough.item() == pytest.approx(objectives.divergence(log_p, log_q).item(), rel=1e-3)
    assert rough.item() > 1e-4
    loss.backward()
    assert all(weight.grad is None for weight in train_state.averaged.parameters())


@pytest.mark.parametrize("latents", ["style", "all"])
def test_x_stays_where_z_does_and_moves_where_z_moves(ready, latents):
    train_state, batch = ready(f"training.latent_smoothness_latents={latents}")
    x = batch.unlabeled_x
    embedded = train_state.model.encoder.embed(x)
    z = train_state.model.posterior(x).mean.detach()
    move = steps._along_generator(train_state, x, z)
    count = {"style": 5, "all": 8}[latents]
    assert torch.allclose(move(torch.zeros(len(x), count)), embedded, atol=1e-5)
    moved = move(torch.ones(len(x), count))
    assert moved.shape == embedded.shape
    assert not torch.allclose(moved, embedded, atol=1e-3)
    assert train_state.model.generator.training


def test_padding_is_never_moved(tmp_path):
    dataset = text.dataset()
    run = RunDirectory.create(tmp_path / "run", Origin("x"), load_settings("text-minutes", SMALL), dataset)
    train_state, x = run.new_train_state(), next(BatchSource(run.data(dataset), run.settings)).unlabeled_x
    train_state.model.train()
    z = train_state.model.posterior(x).mean.detach()
    moved = steps._along_generator(train_state, x, z)(3 * torch.ones(len(x), 5))
    embedded = train_state.model.encoder.embed(x)
    assert torch.equal(moved[x == 0], embedded[x == 0])
    assert torch.allclose(moved[:, :, -1], embedded[:, :, -1], atol=1e-5)  # which places hold words
