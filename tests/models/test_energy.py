"""The class logits and what follows from them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from synthsieve.io.random_streams import torch_stream
from synthsieve.models.energy import Energy
from synthsieve.models.networks.mlp import MLP


def test_free_energy_and_probabilities() -> None:
    rng = torch_stream(0, "energy")
    energy = Energy.mlp(5, 3, hidden=(8,), rng=rng).double()
    z = torch.randn(20, 5, generator=rng, dtype=torch.float64)
    logits = energy.class_logits(z)
    assert logits.shape == (20, 3)
    assert torch.allclose(energy.negative_free_energy(z), logits.exp().sum(dim=1).log())
    assert torch.allclose(energy.class_probabilities(z).sum(dim=1), torch.ones(20, dtype=torch.float64))
    assert torch.allclose(
        energy.class_probabilities(z).log(), logits - energy.negative_free_energy(z)[:, None], atol=1e-12
    )
    assert torch.equal(energy(z), logits)


def test_default_sizes() -> None:
    energy = Energy.mlp(100, 10, rng=torch_stream(0, "energy"))
    assert isinstance(energy.network, MLP)
    assert energy.network.sizes == (100, 200, 200, 10)


def test_invalid_network_shape() -> None:
    network = MLP((4, 2), rng=torch_stream(0, "energy"))
    with pytest.raises(ValueError, match="num_classes=3"):
        Energy(network, latent_dim=4, num_classes=3)


def test_any_module_as_network() -> None:
    energy = Energy(nn.Flatten(), latent_dim=3, num_classes=3)
    assert torch.equal(energy.class_logits(torch.eye(3)), torch.eye(3))
