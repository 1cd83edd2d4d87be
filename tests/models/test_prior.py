"""The tilted prior's densities, and their gradients against autograd."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from synthsieve.io.random_streams import torch_stream
from synthsieve.models import prior as prior_module
from synthsieve.models.energy import Energy
from synthsieve.models.networks.mlp import MLP
from synthsieve.models.prior import TiltedDensity, TiltedPrior, reference_log_prob
from synthsieve.sampling.log_density import AutogradLogDensity, PreparedLogDensity
from synthsieve.settings import Activation
from tests.models.networks.kinks import away_from_kinks

TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-5}
HIDDEN = {"linear": (), "three layers": (200, 200)}


def both_densities(energy: Energy, n: int) -> list[TiltedDensity]:
    y = torch.randint(energy.num_classes, (n,), generator=torch_stream(1, "labels"))
    return [TiltedPrior(energy).unconditional(), TiltedPrior(energy).conditional(y)]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("activation", Activation)
@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN.keys())
def test_gradients_equal_autograd(
    hidden: tuple[int, ...], activation: Activation, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prior_module, "CHUNK_ROWS", 32)  # so that 75 rows are two full chunks and a rest
    rng = torch_stream(0, "prior")
    energy = Energy.mlp(100, 10, hidden=hidden, activation=activation, rng=rng).to(dtype)
    z = away_from_kinks(energy.network, 2 * torch.randn(100, 100, generator=rng, dtype=dtype), 75)
    for density in both_densities(energy, 75):
        value, gradient = density.value_and_gradient(z)
        expected_value, expected = AutogradLogDensity(density.value).value_and_gradient(z)
        assert torch.allclose(value, expected_value)
        assert torch.allclose(gradient, expected, rtol=0, atol=TOLERANCES[dtype])
        moved = z.clone()
        density.ascent(moved)(0.08)
        assert torch.allclose(moved, z + 0.08 * expected, rtol=0, atol=TOLERANCES[dtype])
    assert all(parameter.grad is None for parameter in energy.parameters())


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN.keys())
def test_latents_outside_the_energy_have_the_reference_prior(hidden: tuple[int, ...]) -> None:
    rng = torch_stream(0, "prior")
    energy = Energy.mlp(7, 4, hidden=hidden, visible=3, rng=rng).double()
    z = torch.randn(20, 7, generator=rng, dtype=torch.float64)
    changed = torch.cat([z[:, :3], torch.randn(20, 4, generator=rng, dtype=torch.float64)], dim=1)
    assert torch.equal(energy.class_logits(z), energy.class_logits(changed))
    for density in both_densities(energy, 20):
        _, gradient = density.value_and_gradient(z)
        _, expected = AutogradLogDensity(density.value).value_and_gradient(z)
        assert torch.allclose(gradient, expected, rtol=0, atol=1e-10)
        assert torch.allclose(gradient[:, 3:], -z[:, 3:], rtol=0, atol=1e-10)


class ShiftedMLP(MLP):
    """A subclass with another forward: `InputGradient` must not be used for it."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).square()


@pytest.mark.parametrize(
    "network",
    [nn.Sequential(nn.LayerNorm(4), nn.Flatten()), ShiftedMLP((4, 6, 4), rng=torch_stream(0, "shifted"))],
    ids=["a module of another kind", "a subclass"],
)
def test_other_networks_use_autograd(network: nn.Module) -> None:
    z = torch.randn(9, 4, generator=torch_stream(0, "z"))
    for density in both_densities(Energy(network, latent_dim=4, num_classes=4), 9):
        _, expected = AutogradLogDensity(density.value).value_and_gradient(z)
        assert torch.allclose(density.value_and_gradient(z)[1], expected)
        moved = z.clone()
        density.ascent(moved)(0.1)
        assert torch.allclose(moved, z + 0.1 * expected)


def test_densities_are_the_formulas() -> None:
    rng = torch_stream(0, "prior")
    energy = Energy.mlp(4, 3, hidden=(6,), rng=rng)
    prior = TiltedPrior(energy)
    z, y = torch.randn(12, 4, generator=rng), torch.arange(12) % 3
    normal = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum(dim=1)
    assert torch.allclose(reference_log_prob(z), normal)
    assert torch.allclose(prior.log_density(z), energy.negative_free_energy(z) + normal)
    assert torch.allclose(prior.conditional_log_density(z, y), energy.class_logits(z)[torch.arange(12), y] + normal)
    assert isinstance(prior.unconditional(), PreparedLogDensity)


def test_reference_samples_are_standard_normal_and_repeat() -> None:
    prior = TiltedPrior(Energy.mlp(10, 3, hidden=(6,), rng=torch_stream(0, "energy")).double())
    one, two = (prior.reference_sample(4000, rng=torch_stream(3, "reference")) for _ in range(2))
    assert torch.equal(one, two)
    assert one.dtype == torch.float64
    count = one.numel()
    assert abs(float(one.mean())) < 4 * count**-0.5
    assert abs(float(one.var()) - 1) < 4 * (2 / count) ** 0.5


@pytest.mark.parametrize(
    ("y", "value"),
    [
        (torch.tensor([0, 3]), "0 to 3"),
        (torch.tensor([-1, 0]), "-1 to 0"),
        (torch.tensor([[0]]), r"shape \(n,\)"),
        (torch.tensor([0.0]), "int64"),
    ],
)
def test_invalid_classes(y: Tensor, value: str) -> None:
    prior = TiltedPrior(Energy.mlp(4, 3, hidden=(6,), rng=torch_stream(0, "energy")))
    with pytest.raises(ValueError, match=value):
        prior.conditional(y)


def test_one_class_per_chain() -> None:
    prior = TiltedPrior(Energy.mlp(4, 3, hidden=(6,), rng=torch_stream(0, "energy")))
    with pytest.raises(ValueError, match="3 classes for 2 chains"):
        prior.conditional(torch.tensor([0, 1, 2])).value_and_gradient(torch.zeros(2, 4))


def test_empty_batch() -> None:
    prior = TiltedPrior(Energy.mlp(4, 3, hidden=(6,), rng=torch_stream(0, "energy")))
    for density in (prior.unconditional(), prior.conditional(torch.empty(0, dtype=torch.int64))):
        value, gradient = density.value_and_gradient(torch.empty(0, 4))
        assert value.shape == (0,)
        assert gradient.shape == (0, 4)
