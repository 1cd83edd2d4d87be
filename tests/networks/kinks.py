"""Points at which a network with kinks has one gradient, however its sums are rounded."""

from __future__ import annotations

import torch
from torch import Tensor

from synthsieve.networks.activation import activate
from synthsieve.networks.mlp import MLP

MARGIN = 1e-4  # far beyond what float32 rounds in sums of some hundred numbers near 1


def away_from_kinks(network: MLP, x: Tensor, rows: int) -> Tensor:
    """The first `rows` rows of x, (n, sizes[0]), at which no hidden unit is within MARGIN of 0."""
    hidden, away = x.double(), torch.ones(len(x), dtype=torch.bool)
    for layer in network.linears()[:-1]:
        before = hidden @ layer.weight.detach().double().T + layer.bias.detach().double()
        away &= (before.abs() > MARGIN).all(dim=1)
        hidden = activate(network.activation, before)
    assert int(away.sum()) >= rows, "too few points are away from kinks"
    return x[away][:rows].clone()
