"""The generator and its likelihood p(x given z): the interface, and the Gaussian generator."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from synthsieve.models.networks.convolutional import ImageGenerator
from synthsieve.models.networks.layers import in_float32


class Generator(nn.Module):
    """p(x given z). Subclass it to add a likelihood.

    Attributes:
        always_draws: samples are drawn from p(x given z) instead of taking its mean, whatever the settings: for
            categories, whose mean is not an example.
        differentiable: x has a gradient in z. The words of a sentence do not.
    """

    always_draws = False
    differentiable = True

    @abstractmethod
    def forward(self, z: Tensor) -> Tensor:
        """The mean of p(x given z), or its most probable x, as the encoder takes it. (n, latent_dim) -> (n, *shape)."""

    def mean_near(self, x: Tensor, z: Tensor, embed: Callable[[Tensor], Tensor]) -> Tensor:
        """The mean of p(x given z) after `embed`, differentiable in z.

        If x is generated sequentially, it is the mean of each part given the parts before it in x.
        (n, *shape), (n, latent_dim) -> the shape of embed(x).
        """
        return embed(self(z))

    def start_at(self, mean: Tensor) -> None:
        """Prepare untrained weights for data whose x have this mean of each channel, (channels,)."""
        return

    @abstractmethod
    def log_prob(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x given z), normalized, in nats. (n, *shape), (n, latent_dim) -> (n,)."""

    @abstractmethod
    def noise(self, *, rng: torch.Generator) -> Tensor:
        """All random numbers that one sample of x needs, for one example."""

    @abstractmethod
    def sample(self, z: Tensor, noise: Tensor) -> Tensor:
        """A sample of p(x given z), given stacked `noise`, one for each z. (n, latent_dim), (n, ...) -> (n, *shape)."""


class GaussianGenerator(Generator):
    """p(x given z) = N(g(z), sigma^2 I), g = `network`: (n, latent_dim) -> (n, *shape), sigma = `observation_noise`."""

    def __init__(self, network: nn.Module, *, shape: tuple[int, ...], observation_noise: float) -> None:
        super().__init__()
        self.network, self.shape, self.observation_noise = network, shape, observation_noise

    def forward(self, z: Tensor) -> Tensor:
        """The mean of p(x given z). x = g(z). (n, latent_dim) -> (n, *shape)."""
        return in_float32(self.network(z))

    def start_at(self, mean: Tensor) -> None:
        """As the network does, if it is one for images."""
        if isinstance(self.network, ImageGenerator):
            self.network.start_at(mean)

    def log_prob(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x given z), normalized, in nats: log N(x; g(z), sigma^2 I). Returns (n,)."""
        residual = (x - self(z)).flatten(1)
        constant = residual.shape[1] * math.log(self.observation_noise * math.sqrt(2 * math.pi))
        return -0.5 * residual.square().sum(dim=1) / self.observation_noise**2 - constant

    def noise(self, *, rng: torch.Generator) -> Tensor:
        """Standard normal numbers. (*shape)."""
        return torch.randn(self.shape, generator=rng)

    def sample(self, z: Tensor, noise: Tensor) -> Tensor:
        """x = g(z) + sigma noise. (n, latent_dim), (n, *shape) -> (n, *shape)."""
        return self(z) + self.observation_noise * noise
