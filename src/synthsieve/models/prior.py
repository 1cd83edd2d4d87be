"""The tilted prior: a standard normal reference, reweighted by the energy's class logits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from synthsieve.io.random_streams import randn
from synthsieve.models.energy import Energy
from synthsieve.models.networks.mlp import MLP, InputGradient
from synthsieve.sampling.log_density import Ascent, AutogradLogDensity, ascent_of

# Rows per block of an ascent: their activations stay in a core's cache. See decision 0301.
CHUNK_ROWS = 1000


def reference_log_prob(z: Tensor) -> Tensor:
    """The reference's log-density, normalized. log p0(z) = log N(z; 0, I). (n, latent_dim) -> (n,)."""
    return -0.5 * (z.square().sum(dim=1) + z.shape[1] * math.log(2 * math.pi))


@dataclass(frozen=True)
class TiltedPrior:
    """p(z) and p(z given y), each known up to a constant."""

    energy: Energy

    def log_density(self, z: Tensor) -> Tensor:
        """log p(z), up to a constant. f(z) + log p0(z). (n, latent_dim) -> (n,)."""
        return self.energy.negative_free_energy(z) + reference_log_prob(z)

    def conditional_log_density(self, z: Tensor, y: Tensor) -> Tensor:
        """log p(z given y), up to a constant of each y. F(z)[y] + log p0(z). (n, latent_dim), (n,) -> (n,)."""
        logits = self.energy.class_logits(z)
        return logits.gather(1, y[:, None]).squeeze(1) + reference_log_prob(z)

    def reference_sample(self, n: int, *, rng: torch.Generator) -> Tensor:
        """Samples of p0 = N(0, I), on the device of the energy's weights. Returns (n, latent_dim).

        They are drawn on the device of `rng` and then moved, so a CPU generator gives the same z on every device.
        """
        weight = next(self.energy.parameters(), torch.empty(0))
        return randn((n, self.energy.latent_dim), rng=rng, dtype=weight.dtype).to(weight.device)

    def unconditional(self) -> TiltedDensity:
        """p(z) as a log-density for the sampler."""
        return TiltedDensity(self)

    def conditional(self, y: Tensor) -> TiltedDensity:
        """p(z given y) as a log-density for the sampler. Chain i targets class y[i]: int64 (n,)."""
        if y.ndim != 1 or y.dtype != torch.int64:
            raise ValueError(f"y must be int64 of shape (n,), one class per chain; got {y.dtype} {tuple(y.shape)}")
        if len(y) and not (int(y.min()) >= 0 and int(y.max()) < self.energy.num_classes):
            raise ValueError(f"y must be in 0 to {self.energy.num_classes - 1}; got {int(y.min())} to {int(y.max())}")
        return TiltedDensity(self, y)


@dataclass(frozen=True)
class TiltedDensity:
    """A prior's log-density for the sampler: p(z), or p(z given y) if there is a y.

    With an MLP energy the gradient is computed by `InputGradient`; with any other network by autograd.
    """

    prior: TiltedPrior
    y: Tensor | None = None

    def value(self, z: Tensor) -> Tensor:
        """The log-density, differentiable. (n, latent_dim) -> (n,)."""
        self._check(z)
        if self.y is None:
            return self.prior.log_density(z)
        return self.prior.conditional_log_density(z, self.y)

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The log-density and its gradient in z, without a graph. (n, latent_dim) -> (n,), (n, latent_dim)."""
        if self._mlp() is None:
            return AutogradLogDensity(self.value).value_and_gradient(z)
        with torch.no_grad():
            moved = z.detach().clone()
            self.ascent(moved)(1.0)
            return self.value(z), moved.sub_(z)

    def ascent(self, z: Tensor) -> Ascent:
        """A function that, called with a step_size, updates this z in place: z <- z + step_size grad log p(z).

        grad log p(z) = sum_y p(y given z) grad F(z)[y] - z; grad log p(z given y) = grad F(z)[y] - z.
        z: (n, latent_dim), contiguous.
        """
        self._check(z)
        network = self._mlp()
        if network is None:
            return ascent_of(AutogradLogDensity(self.value), z)
        chunks = z.split(CHUNK_ROWS)
        labels = [None] * len(chunks) if self.y is None else self.y.split(CHUNK_ROWS)
        buffers = {rows: InputGradient(network, rows, z) for rows in {len(chunk) for chunk in chunks}}
        ascents = [_chunk_ascent(buffers[len(chunk)], chunk, y) for chunk, y in zip(chunks, labels, strict=True)]

        def ascend(step_size: float) -> None:
            for ascend_chunk in ascents:
                ascend_chunk(step_size)

        return ascend

    def _check(self, z: Tensor) -> None:
        if z.ndim != 2 or z.shape[1] != self.prior.energy.latent_dim:
            raise ValueError(f"z must be (n, {self.prior.energy.latent_dim}), one latent per row; got {tuple(z.shape)}")
        if self.y is not None and len(self.y) != len(z):
            raise ValueError(f"each chain needs one class; got {len(self.y)} classes for {len(z)} chains")

    def _mlp(self) -> MLP | None:
        # The exact class: a subclass may have another forward than the one that InputGradient implements.
        network = self.prior.energy.network
        return network if type(network) is MLP else None


def _chunk_ascent(network: InputGradient, z: Tensor, y: Tensor | None) -> Callable[[float], None]:
    """The ascent of a few rows. The gradient of log p0 is -z, so each step keeps 1 - step_size of z."""
    if y is None:
        probabilities = z.new_empty(len(z), len(network.weights[-1]))  # (n, num_classes)

        def ascend_free_energy(step_size: float) -> None:
            torch.softmax(network.outputs(z), dim=1, out=probabilities)
            network.add_gradient_(probabilities, z, keep=1 - step_size, scale=step_size)

        return ascend_free_energy

    if len(network.weights) == 1:
        one_hot = nn.functional.one_hot(y, len(network.weights[0])).to(z.dtype)
        return lambda step_size: network.add_gradient_(one_hot, z, keep=1 - step_size, scale=step_size)

    # F(z)[y] needs no product with the last layer: its gradient there is row y of the weights.
    rows = network.weights[-1][y]  # (n, width)

    def ascend_class(step_size: float) -> None:
        network.last_hidden(z)
        network.add_gradient_of_hidden_(rows, z, keep=1 - step_size, scale=step_size)

    return ascend_class
