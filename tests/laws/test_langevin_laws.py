"""Laws of the chain: the distribution to which it converges is known in closed form.

Seeds are fixed. Tolerances are 4 standard errors of an estimate from independent chains: a correct sampler with other
seeds would fail a check about once in 16,000.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from synthsieve.io.random_streams import torch_stream
from synthsieve.models.energy import Energy
from synthsieve.models.prior import TiltedPrior, reference_log_prob
from synthsieve.sampling import langevin
from synthsieve.sampling.langevin import LangevinSettings
from tests.sampling.gaussian_mixture import GaussianMixture

CHAINS, DIMENSIONS = 4000, 10


def steps_to_forget(step_size: float) -> int:
    """Enough steps for (1 - s)^(2 steps) < 1e-6 on N(0, I)."""
    return 2 + math.ceil(math.log(1e-6) / (2 * math.log(max(abs(1 - step_size), 1e-3))))


def check_variance(z: Tensor, mean: Tensor | float, expected: float) -> None:
    standard_error = expected * math.sqrt(2 / z.numel())
    assert abs(float((z - mean).square().mean()) - expected) < 4 * standard_error
    assert float((z - mean).mean().abs()) < 4 * math.sqrt(expected / z.numel())


@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("step_size", [0.02, 0.08, 0.5, 1.0, 1.5])
def test_variance_on_a_standard_normal(step_size: float, temperature: float) -> None:
    """On N(0, I) the unadjusted chain converges to variance T / (1 - s/2)."""
    normal = GaussianMixture(torch.ones(1), torch.zeros(1, DIMENSIONS), torch.ones(1))
    settings = LangevinSettings(steps_to_forget(step_size), step_size, temperature)
    start = torch.zeros(CHAINS, DIMENSIONS)
    z = langevin.run(normal, start, settings=settings, rng=torch_stream(0, "variance")).z
    check_variance(z, 0.0, temperature / (1 - step_size / 2))


@pytest.mark.parametrize("conditional", [False, True])
def test_zero_energy_samples_the_reference(conditional: bool) -> None:
    """F = 0: p(z) = p(z given y) = p0 = N(0, I), with the chain's variance 1 / (1 - s/2)."""
    energy = Energy.mlp(DIMENSIONS, 3, hidden=(8, 8), rng=torch_stream(0, "energy"))
    with torch.no_grad():
        for parameter in energy.network.layers[-1].parameters():  # type: ignore[union-attr, operator]
            parameter.zero_()
    prior = TiltedPrior(energy)
    density = prior.conditional(torch.arange(CHAINS) % 3) if conditional else prior.unconditional()
    start = prior.reference_sample(CHAINS, rng=torch_stream(0, "start"))
    z = langevin.run(density, start, settings=LangevinSettings(100, 0.08), rng=torch_stream(0, "noise")).z
    check_variance(z, 0.0, 1 / (1 - 0.08 / 2))


def test_a_linear_energy_shifts_the_mean() -> None:
    """F(z)[y] = w_y z: p(z given y) = N(w_y, I)."""
    energy = Energy.mlp(DIMENSIONS, 3, hidden=(), rng=torch_stream(0, "energy"))
    prior, y = TiltedPrior(energy), torch.arange(CHAINS) % 3
    start = prior.reference_sample(CHAINS, rng=torch_stream(0, "start"))
    settings = LangevinSettings(100, 0.08)
    z = langevin.run(prior.conditional(y), start, settings=settings, rng=torch_stream(0, "noise")).z
    weight = next(energy.parameters()).detach()
    check_variance(z, weight[y], 1 / (1 - 0.08 / 2))


class MixtureLogits(nn.Module):
    """F(z)[y] = log p_y(z) - log p0(z) + log share_y: then p(z given y) = p_y and p(z) = sum_y share_y p_y."""

    def __init__(self, classes: list[GaussianMixture], shares: Tensor) -> None:
        super().__init__()
        self.classes, self.shares = classes, shares

    def forward(self, z: Tensor) -> Tensor:
        tilts = torch.stack([mixture.value(z) for mixture in self.classes], dim=1)
        return tilts - reference_log_prob(z)[:, None] + self.shares.log()


def two_modes(weights: tuple[float, float], along: int) -> GaussianMixture:
    means = torch.zeros(2, 2)
    means[0, along], means[1, along] = -1.4, 1.4
    return GaussianMixture(torch.tensor(weights), means, torch.tensor([0.8, 0.8]))


def share_above(mixture: GaussianMixture, coordinate: int) -> float:
    """P(z[coordinate] > 0), from the normal distribution function."""
    tails = torch.special.ndtr(mixture.means[:, coordinate] / mixture.scales)
    return float(mixture.weights @ tails)


CLASSES = [two_modes((0.7, 0.3), 0), two_modes((0.2, 0.8), 1)]
MIXTURE_PRIOR = TiltedPrior(Energy(MixtureLogits(CLASSES, torch.tensor([0.75, 0.25])), latent_dim=2, num_classes=2))
MIXTURE_SETTINGS = LangevinSettings(num_steps=700, step_size=0.05)


def start_at_the_light_mode(n: int) -> Tensor:
    """All chains at the light mode of each class, so that the shares must be found by moving."""
    return torch.tensor([1.4, -1.4]).repeat(n, 1)


def test_conditional_chains_find_the_modes() -> None:
    y = torch.arange(CHAINS) % 2
    z = langevin.run(
        MIXTURE_PRIOR.conditional(y),
        start_at_the_light_mode(CHAINS),
        settings=MIXTURE_SETTINGS,
        rng=torch_stream(0, "modes"),
    ).z
    for label, mixture in enumerate(CLASSES):
        of_class = z[y == label]
        for coordinate in (0, 1):
            expected = share_above(mixture, coordinate)
            measured = float((of_class[:, coordinate] > 0).float().mean())
            assert abs(measured - expected) < 4 * math.sqrt(expected * (1 - expected) / len(of_class))


def test_unconditional_chains_find_the_classes() -> None:
    z = langevin.run(
        MIXTURE_PRIOR.unconditional(),
        start_at_the_light_mode(CHAINS),
        settings=MIXTURE_SETTINGS,
        rng=torch_stream(0, "classes"),
    ).z
    shares = MIXTURE_PRIOR.energy.class_probabilities(z).mean(dim=0)  # p(y) = E p(y given z)
    assert abs(float(shares[0]) - 0.75) < 4 * math.sqrt(0.75 * 0.25 / CHAINS)
