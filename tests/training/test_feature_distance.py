"""Reconstructions compared in the latents that classify: the formula, what it moves, for every kind of data."""

import pytest
import torch

from synthsieve.training import objectives
from synthsieve.training import step as steps
from tests.training.test_latent_smoothness import ready  # noqa: F401, a fixture

WEIGHTED = ("training.feature_weight=3", "training.latent_smoothness_weight=0")


def test_it_is_half_the_squared_distance_and_reaches_the_reconstruction_alone():
    x, reconstruction = torch.tensor([[1.0, 2.0]], requires_grad=True), torch.tensor([[0.0, 4.0]], requires_grad=True)
    distance = objectives.feature_distance(lambda x: 2 * x, x, reconstruction)
    assert distance.item() == pytest.approx(0.5 * 4 * (1 + 4))
    distance.backward()
    assert x.grad is None
    torch.testing.assert_close(reconstruction.grad, torch.tensor([[-4.0, 8.0]]))


def test_it_changes_the_generator_and_never_the_label_tower(ready):  # noqa: F811
    def updated(*more):
        train_state, batch = ready(*more)
        x = batch.unlabeled_x
        q, z = steps.sample_posterior(train_state, x)
        before = {name: value.clone() for name, value in train_state.model.state_dict().items()}
        steps.learn_inference_and_generator(train_state, x, q, z)
        after = train_state.model.state_dict()
        return train_state.metrics, {name for name in before if not torch.equal(before[name], after[name])}, after

    metrics, changed, after = updated(*WEIGHTED)
    assert metrics["feature_distance"] > 0
    assert not any(name.startswith(("encoder.label_tower", "energy")) for name in changed)
    assert any(name.startswith("generator") for name in changed)
    plain_metrics, _, plain = updated("training.latent_smoothness_weight=0")
    assert "feature_distance" not in plain_metrics
    assert any(not torch.equal(after[name], plain[name]) for name in after if name.startswith("generator"))


def test_an_update_by_it_alone_brings_reconstructions_nearer(ready):  # noqa: F811
    train_state, batch = ready(*WEIGHTED)
    x = batch.unlabeled_x
    z = train_state.model.posterior(x).mean.detach()
    optimizer = torch.optim.Adam(train_state.model.generator.parameters(), lr=1e-3)
    first = None
    for _ in range(30):
        distance = steps._feature_distance(train_state, x, z)
        first = first if first is not None else distance.item()
        optimizer.zero_grad()
        distance.backward()
        optimizer.step()
    assert distance.item() < first
