"""The class logits and what follows from them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from synthsieve.model.energy import Energy
from synthsieve.networks.mlp import MLP
from synthsieve.randomness import torch_stream


def test_free_energy_and_probabilities_follow_from_the_logits() -> None:
    generator = torch_stream(0, "energy")
    energy = Energy.mlp(5, 3, hidden=(8,), generator=generator).double()
    z = torch.randn(20, 5, generator=generator, dtype=torch.float64)
    logits = energy.class_logits(z)
    assert logits.shape == (20, 3)
    assert torch.allclose(energy.negative_free_energy(z), logits.exp().sum(dim=1).log())
    assert torch.allclose(energy.class_probabilities(z).sum(dim=1), torch.ones(20, dtype=torch.float64))
    assert torch.allclose(
        energy.class_probabilities(z).log(), logits - energy.negative_free_energy(z)[:, None], atol=1e-12
    )
    assert torch.equal(energy(z), logits)


def test_the_default_is_three_layers_of_width_200() -> None:
    energy = Energy.mlp(100, 10, generator=torch_stream(0, "energy"))
    assert isinstance(energy.network, MLP)
    assert energy.network.sizes == (100, 200, 200, 10)


def test_a_network_of_another_shape_is_refused() -> None:
    network = MLP((4, 2), generator=torch_stream(0, "energy"))
    with pytest.raises(ValueError, match=r"4 latents to num_classes=3"):
        Energy(network, latent_dim=4, num_classes=3)


def test_any_module_can_be_the_network() -> None:
    energy = Energy(nn.Flatten(), latent_dim=3, num_classes=3)
    assert torch.equal(energy.class_logits(torch.eye(3)), torch.eye(3))
