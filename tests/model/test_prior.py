"""The tilted prior's densities, and their gradients against autograd."""

from __future__ import annotations

import pytest
import torch
from tests.networks.kinks import away_from_kinks
from torch import Tensor, nn

from synthsieve.config import Activation
from synthsieve.model import prior as prior_module
from synthsieve.model.energy import Energy
from synthsieve.model.prior import TiltedDensity, TiltedPrior, reference_log_prob
from synthsieve.networks.mlp import MLP
from synthsieve.randomness import torch_stream
from synthsieve.sampling.log_density import AutogradLogDensity, PreparedLogDensity

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
    generator = torch_stream(0, "prior")
    energy = Energy.mlp(100, 10, hidden=hidden, activation=activation, generator=generator).to(dtype)
    z = away_from_kinks(energy.network, 2 * torch.randn(100, 100, generator=generator, dtype=dtype), 75)
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
def test_latents_that_the_energy_does_not_see_keep_the_reference(hidden: tuple[int, ...]) -> None:
    generator = torch_stream(0, "prior")
    energy = Energy.mlp(7, 4, hidden=hidden, visible=3, generator=generator).double()
    z = torch.randn(20, 7, generator=generator, dtype=torch.float64)
    changed = torch.cat([z[:, :3], torch.randn(20, 4, generator=generator, dtype=torch.float64)], dim=1)
    assert torch.equal(energy.class_logits(z), energy.class_logits(changed))
    for density in both_densities(energy, 20):
        _, gradient = density.value_and_gradient(z)
        _, expected = AutogradLogDensity(density.value).value_and_gradient(z)
        assert torch.allclose(gradient, expected, rtol=0, atol=1e-10)
        assert torch.allclose(gradient[:, 3:], -z[:, 3:], rtol=0, atol=1e-10)


class ShiftedMLP(MLP):
    """A subclass with another forward: the hand-written gradient must not be used for it."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).square()


@pytest.mark.parametrize(
    "network",
    [nn.Sequential(nn.LayerNorm(4), nn.Flatten()), ShiftedMLP((4, 6, 4), generator=torch_stream(0, "shifted"))],
    ids=["a module of another kind", "a subclass"],
)
def test_other_networks_go_through_autograd(network: nn.Module) -> None:
    z = torch.randn(9, 4, generator=torch_stream(0, "z"))
    for density in both_densities(Energy(network, latent_dim=4, num_classes=4), 9):
        _, expected = AutogradLogDensity(density.value).value_and_gradient(z)
        assert torch.allclose(density.value_and_gradient(z)[1], expected)
        moved = z.clone()
        density.ascent(moved)(0.1)
        assert torch.allclose(moved, z + 0.1 * expected)


def test_densities_are_the_formulas() -> None:
    generator = torch_stream(0, "prior")
    energy = Energy.mlp(4, 3, hidden=(6,), generator=generator)
    prior = TiltedPrior(energy)
    z, y = torch.randn(12, 4, generator=generator), torch.arange(12) % 3
    normal = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum(dim=1)
    assert torch.allclose(reference_log_prob(z), normal)
    assert torch.allclose(prior.log_density(z), energy.negative_free_energy(z) + normal)
    assert torch.allclose(prior.conditional_log_density(z, y), energy.class_logits(z)[torch.arange(12), y] + normal)
    assert isinstance(prior.unconditional(), PreparedLogDensity)


def test_reference_samples_are_standard_normal_and_repeat() -> None:
    prior = TiltedPrior(Energy.mlp(10, 3, hidden=(6,), generator=torch_stream(0, "energy")).double())
    one, two = (prior.reference_sample(4000, generator=torch_stream(3, "reference")) for _ in range(2))
    assert torch.equal(one, two)
    assert one.dtype == torch.float64
    count = one.numel()
    assert abs(float(one.mean())) < 4 * count**-0.5
    assert abs(float(one.var()) - 1) < 4 * (2 / count) ** 0.5


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (torch.tensor([0, 3]), "0 to 2; got 0 to 3"),
        (torch.tensor([-1, 0]), "0 to 2; got -1 to 0"),
        (torch.tensor([[0]]), r"shape \(n,\)"),
        (torch.tensor([0.0]), "int64"),
    ],
)
def test_impossible_classes_are_refused(y: Tensor, said: str) -> None:
    prior = TiltedPrior(Energy.mlp(4, 3, hidden=(6,), generator=torch_stream(0, "energy")))
    with pytest.raises(ValueError, match=said):
        prior.conditional(y)


def test_a_class_for_each_chain_is_required() -> None:
    prior = TiltedPrior(Energy.mlp(4, 3, hidden=(6,), generator=torch_stream(0, "energy")))
    with pytest.raises(ValueError, match="3 classes for 2 chains"):
        prior.conditional(torch.tensor([0, 1, 2])).value_and_gradient(torch.zeros(2, 4))


def test_no_rows_is_no_work() -> None:
    prior = TiltedPrior(Energy.mlp(4, 3, hidden=(6,), generator=torch_stream(0, "energy")))
    for density in (prior.unconditional(), prior.conditional(torch.empty(0, dtype=torch.int64))):
        value, gradient = density.value_and_gradient(torch.empty(0, 4))
        assert value.shape == (0,)
        assert gradient.shape == (0, 4)
