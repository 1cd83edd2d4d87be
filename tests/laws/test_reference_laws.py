"""Laws of the tilted mixture: F = 0 gives back the mixture, a known tilt is recovered, chains keep its moments."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from synthsieve.models.energy import Energy
from synthsieve.models.reference import PROPOSALS, FittedPrior, FittedReference
from synthsieve.sampling import langevin
from synthsieve.sampling.mixture import ClassMixture, fit_class_mixture
from synthsieve.training.fit_reference import Encoded, learn_correction

D = 3


def mixture(apart: float = 2.0, shares=(0.5, 0.5)) -> ClassMixture:
    """Two classes, the first of two components, with correlated coordinates of different widths."""
    scale = torch.tensor([[0.5, 0.0, 0.0], [0.3, 0.8, 0.0], [0.0, -0.2, 0.1]])
    return ClassMixture(
        log_shares=torch.tensor(shares).log(),
        labels=torch.tensor([0, 0, 1]),
        log_weights=torch.tensor([0.25, 0.75, 1.0]).log(),
        means=torch.tensor([[-apart, 0.0, 0.0], [0.0, apart, 0.0], [apart, 0.0, 0.5]]),
        scales=torch.stack([scale, 0.5 * scale, scale.tril() + 0.2 * torch.eye(D)]),
    )


class Function(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, z):
        return self.function(z)


def prior(function, reference: ClassMixture) -> FittedPrior:
    energy = Energy(Function(function), latent_dim=D, num_classes=2)
    return FittedPrior(energy, FittedReference(reference))


def flat(z):
    return torch.zeros(len(z), 2)


def draw(of: FittedPrior, y: torch.Tensor, seed: int = 0, num_steps: int = 0, step_size: float = 0.02) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    uniform = torch.rand((len(y), PROPOSALS, 3), generator=rng)
    start = of.propose(y, uniform, torch.randn((len(y), PROPOSALS, D), generator=rng))
    if not num_steps:
        return start.origin
    settings = langevin.LangevinSettings(num_steps, step_size)
    u = langevin.run(start.density(), torch.zeros_like(start.origin), settings=settings, rng=rng).z
    return start.z(u)


def moments(of: ClassMixture, labels=(0, 1)) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the mixture over some classes, in closed form."""
    kept = np.isin(of.labels.numpy(), labels)
    weights = (of.log_weights + of.log_shares[of.labels]).exp().numpy()[kept]
    weights = weights / weights.sum()
    means, scales = of.means.numpy()[kept], of.scales.numpy()[kept]
    mean = weights @ means
    second = sum(w * (s @ s.T + np.outer(m, m)) for w, m, s in zip(weights, means, scales, strict=True))
    return mean, second - np.outer(mean, mean)


def assert_moments(z: torch.Tensor, mean: np.ndarray, covariance: np.ndarray, slack: float = 0.0) -> None:
    """Within four standard errors, and `slack` of each standard deviation."""
    z = z.double().numpy()
    width = np.sqrt(np.diag(covariance))
    assert (np.abs(z.mean(axis=0) - mean) < (4 / math.sqrt(len(z)) + slack) * width).all()
    centred = (z - mean) / width
    products = centred[:, :, None] * centred[:, None, :]
    error = 4 * products.std(axis=0) / math.sqrt(len(z)) + slack
    assert (np.abs(products.mean(axis=0) - covariance / np.outer(width, width)) < error).all()


def test_the_density_is_normalized_and_sums_over_classes():
    of = mixture()
    rng = torch.Generator().manual_seed(0)
    box = 14.0
    z = box * (torch.rand((400_000, D), generator=rng) - 0.5)
    inside = of.log_prob(z).exp() * box**D
    assert abs(float(inside.mean()) - 1) < 4 * float(inside.std()) / math.sqrt(len(z))
    torch.testing.assert_close(of.joint_log_prob(z[:100]).logsumexp(dim=1), of.log_prob(z[:100]))


def test_the_density_is_that_of_torch_distributions():
    of = mixture()
    z = torch.randn((50, D), generator=torch.Generator().manual_seed(1))
    each = [
        torch.distributions.MultivariateNormal(m, scale_tril=s).log_prob(z)
        for m, s in zip(of.means, of.scales, strict=True)
    ]
    expected = torch.stack(each, dim=1) + of.log_weights + of.log_shares[of.labels]
    torch.testing.assert_close(of.component_log_prob(z), expected, rtol=1e-4, atol=1e-3)


def test_without_an_energy_every_class_is_the_whole_mixture():
    of = mixture(shares=(0.3, 0.7))
    z = draw(prior(flat, of), torch.zeros(20_000, dtype=torch.int64))
    mean, covariance = moments(of)
    # Choosing among PROPOSALS weighted draws is biased by 1/PROPOSALS of a standard deviation at most.
    assert_moments(z, mean, covariance, slack=1 / PROPOSALS)


def test_an_energy_that_knows_the_classes_gives_each_its_own_components():
    of = mixture()
    y = torch.arange(2).repeat_interleave(20_000)
    z = draw(prior(lambda z: of.joint_log_prob(z), of), y)
    for label in (0, 1):
        assert_moments(z[y == label], *moments(of, (label,)), slack=1 / PROPOSALS)


def test_the_class_counts_once():
    """With the energy that knows the classes, log p(z given y) is that of the components of y, up to a constant."""
    of = mixture(apart=0.5)
    z = torch.randn((200, D), generator=torch.Generator().manual_seed(2))
    found = prior(lambda z: of.joint_log_prob(z), of).conditional_log_density(z, torch.ones(200, dtype=torch.int64))
    torch.testing.assert_close(found, of.joint_log_prob(z)[:, 1], rtol=1e-4, atol=1e-3)


def test_class_temperature_and_offsets_change_the_classifier_alone():
    """log p(z given y) = log softmax((F(z) + offsets) / T)[y] + log p_ref(z)."""
    of = mixture(apart=0.5)
    z = torch.randn((200, D), generator=torch.Generator().manual_seed(2))
    y = torch.arange(2).repeat(100)
    moved = torch.tensor([3.0, 0.0])
    energy = Energy(Function(lambda z: of.joint_log_prob(z) - moved), latent_dim=D, num_classes=2)
    found = FittedPrior(energy, FittedReference(of, None, 0.25, moved)).conditional_log_density(z, y)
    expected = (4 * of.joint_log_prob(z)).log_softmax(dim=1).gather(1, y[:, None]).squeeze(1) + of.log_prob(z)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("num_steps", [0, 30])
def test_a_known_tilt_moves_the_draws_as_it_should(num_steps):
    """p(y given z) proportional to exp(a z_0) on one Gaussian component moves its mean by covariance a."""
    one = ClassMixture(
        torch.tensor([0.5, 0.5]).log(),
        torch.tensor([0, 1]),
        torch.zeros(2),
        torch.zeros(2, D),
        torch.eye(D).expand(2, D, D).contiguous(),
    )

    # A tiny share of class 1 everywhere: log p(1 given z) = a z_0 - 8 but for a term below exp(a z_0 - 8).
    def tilt(z):
        return torch.stack([torch.zeros(len(z)), 0.5 * z[:, 0] - 8], dim=1)

    z = draw(prior(tilt, one), torch.ones(20_000, dtype=torch.int64), num_steps=num_steps)
    expected = np.array([0.5, 0.0, 0.0])
    assert_moments(z, expected, np.eye(D), slack=1 / PROPOSALS)


def test_chains_that_start_in_the_mixture_keep_its_moments():
    of = mixture()
    y = torch.ones(20_000, dtype=torch.int64)
    z = draw(prior(lambda z: of.joint_log_prob(z), of), y, num_steps=50)
    # The unadjusted chain's variance is 1 / (1 - s/2) of the target's: 1 % at s = 0.02.
    assert_moments(z, *moments(of, (1,)), slack=0.01 + 1 / PROPOSALS)


def test_a_known_mixture_is_recovered():
    of = mixture(apart=3.0)
    rng = torch.Generator().manual_seed(3)
    y = torch.arange(2).repeat_interleave(2000)
    z = of.place(of.choose_components(y, torch.rand(len(y), generator=rng)), torch.randn((len(y), D), generator=rng))
    weights = np.eye(2)[y.numpy()]
    found = fit_class_mixture(z.numpy(), weights, rng=np.random.default_rng(0))
    assert np.bincount(found.labels.numpy()).tolist() == [2, 1]
    assert abs(float(found.log_prob(z).mean() - of.log_prob(z).mean())) < 0.05
    for label in (0, 1):
        assert_moments(z[y == label], *moments(found, (label,)), slack=0.05)


def test_the_correction_recovers_a_known_tilt():
    """Points of N(0.7 e_0, I) against a reference N(0, I): f(z) = 0.7 z_0 - 0.245."""
    rng = np.random.default_rng(4)
    mean = rng.standard_normal((6000, D)) * math.sqrt(1 - 0.3**2) + np.array([0.7, 0, 0])
    encoded = Encoded(mean, np.full_like(mean, 0.3), np.ones((len(mean), 1)))
    standard = ClassMixture(
        torch.zeros(1), torch.zeros(1, dtype=torch.int64), torch.zeros(1), torch.zeros(1, D), torch.eye(D)[None]
    )
    correction = learn_correction(encoded, standard, seed=0)
    assert correction is not None
    z = torch.randn((2000, D), generator=torch.Generator().manual_seed(5))
    expected = 0.7 * z[:, 0] - 0.245
    found = correction(z).squeeze(1)
    assert float((found - expected).square().mean().sqrt()) < 0.2
    tilted = FittedPrior(Energy(Function(flat), latent_dim=D, num_classes=2), FittedReference(standard, correction))
    torch.testing.assert_close(tilted.log_density(z), found + standard.log_prob(z))


def test_a_reference_that_is_right_needs_no_correction():
    rng = np.random.default_rng(6)
    mean = rng.standard_normal((2000, D)) * 0.8
    encoded = Encoded(mean, np.full_like(mean, 0.6), np.ones((len(mean), 1)))
    standard = ClassMixture(
        torch.zeros(1), torch.zeros(1, dtype=torch.int64), torch.zeros(1), torch.zeros(1, D), torch.eye(D)[None]
    )
    correction = learn_correction(encoded, standard, seed=0)
    z = torch.randn((2000, D), generator=torch.Generator().manual_seed(7))
    assert correction is None or float(correction(z).abs().mean()) < 0.1
