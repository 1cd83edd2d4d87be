"""The generator and its likelihood: p(x given z) = N(g(z), sigma^2 I)."""

from __future__ import annotations

import math

from torch import Tensor, nn


class Generator(nn.Module):
    """g(z), and how likely an x is around it.

    Args:
        network: z (n, latent_dim) -> g(z) (n, *shape).
        observation_noise: sigma.
    """

    def __init__(self, network: nn.Module, *, observation_noise: float) -> None:
        super().__init__()
        self.network = network
        self.observation_noise = observation_noise

    def forward(self, z: Tensor) -> Tensor:
        """The mean of p(x given z). x = g(z). (n, latent_dim) -> (n, *shape)."""
        mean: Tensor = self.network(z)
        return mean

    def log_prob(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x given z), normalised, in nats: log N(x; g(z), sigma^2 I). Returns (n,)."""
        residual = (x - self(z)).flatten(1)
        constant = residual.shape[1] * math.log(self.observation_noise * math.sqrt(2 * math.pi))
        return -0.5 * residual.square().sum(dim=1) / self.observation_noise**2 - constant
