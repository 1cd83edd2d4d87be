"""The mixture that samplers are tested against."""

from __future__ import annotations

import pytest
import torch

from synthsieve.io.random_streams import torch_stream
from synthsieve.sampling.log_density import AutogradLogDensity
from tests.sampling.gaussian_mixture import GaussianMixture

MIXTURE = GaussianMixture(
    weights=torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64),
    means=torch.tensor([[0.0, 1.0], [2.0, -1.0], [-3.0, 0.5]], dtype=torch.float64),
    scales=torch.tensor([0.5, 1.0, 1.5], dtype=torch.float64),
)


def test_density_equals_torch_distributions() -> None:
    components = torch.distributions.Independent(
        torch.distributions.Normal(MIXTURE.means, MIXTURE.scales[:, None].expand(3, 2)), 1
    )
    peer = torch.distributions.MixtureSameFamily(torch.distributions.Categorical(MIXTURE.weights), components)
    z = 3 * torch.randn(50, 2, generator=torch_stream(0, "z"), dtype=torch.float64)
    assert torch.allclose(MIXTURE.value(z), peer.log_prob(z), atol=1e-12)


def test_gradient_equals_autograd() -> None:
    z = 3 * torch.randn(50, 2, generator=torch_stream(0, "z"), dtype=torch.float64)
    value, gradient = MIXTURE.value_and_gradient(z)
    expected_value, expected = AutogradLogDensity(MIXTURE.value).value_and_gradient(z)
    assert torch.allclose(value, expected_value, atol=1e-12)
    assert torch.allclose(gradient, expected, atol=1e-12)


def test_samples_have_the_right_weights_and_mean() -> None:
    n = 20_000
    z = MIXTURE.sample(n, rng=torch_stream(0, "draws"))
    shares = MIXTURE.responsibilities(z).mean(dim=0)
    assert torch.allclose(shares, MIXTURE.weights, rtol=0, atol=4 * 0.5 * n**-0.5)
    mean = MIXTURE.weights @ MIXTURE.means
    assert torch.allclose(z.mean(dim=0), mean, rtol=0, atol=4 * float(z.std(dim=0).max()) * n**-0.5)


def test_invalid_mixtures() -> None:
    with pytest.raises(ValueError, match="sum to 1"):
        GaussianMixture(torch.tensor([0.5, 0.6]), torch.zeros(2, 1), torch.ones(2))
    with pytest.raises(ValueError, match="scales"):
        GaussianMixture(torch.tensor([0.5, 0.5]), torch.zeros(2, 1), torch.tensor([1.0, 0.0]))
    with pytest.raises(ValueError, match="means"):
        GaussianMixture(torch.tensor([0.5, 0.5]), torch.zeros(2), torch.ones(2))
