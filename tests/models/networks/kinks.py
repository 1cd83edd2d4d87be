"""Points at which the gradient of a piecewise linear network does not depend on rounding."""

from __future__ import annotations

import torch
from torch import Tensor

from synthsieve.models.networks.mlp import MLP, activate

MARGIN = 1e-4  # far above the float32 rounding error of a sum of some hundred numbers near 1


def away_from_kinks(network: MLP, x: Tensor, rows: int) -> Tensor:
    """The first `rows` rows of x, (n, sizes[0]), at which no hidden unit is within MARGIN of 0."""
    hidden, away = x.double(), torch.ones(len(x), dtype=torch.bool)
    for layer in network.linears()[:-1]:
        before = hidden @ layer.weight.detach().double().T + layer.bias.detach().double()
        away &= (before.abs() > MARGIN).all(dim=1)
        hidden = activate(network.activation, before)
    assert int(away.sum()) >= rows, "too few points are away from kinks"
    return x[away][:rows].clone()
