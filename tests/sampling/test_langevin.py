"""One step, many steps, and the guarantees of a run: exactness, no side effects, repeatability, clear errors."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from synthsieve.errors import DivergedChainError
from synthsieve.io.random_streams import torch_stream
from synthsieve.models.energy import Energy
from synthsieve.models.prior import TiltedPrior
from synthsieve.sampling import langevin
from synthsieve.sampling.langevin import LangevinSettings
from synthsieve.sampling.log_density import AutogradLogDensity, LogDensity
from synthsieve.settings import Activation
from tests.errors import raises


def standard_normal(z: Tensor) -> Tensor:
    return -0.5 * z.square().sum(dim=1)


NORMAL = AutogradLogDensity(standard_normal)


def small_prior(dtype: torch.dtype = torch.float64, activation: Activation = Activation.GELU) -> TiltedPrior:
    energy = Energy.mlp(4, 3, hidden=(7, 6), activation=activation, rng=torch_stream(0, "energy"))
    return TiltedPrior(energy.to(dtype))


def test_one_step_equals_the_formula() -> None:
    z = torch.randn(6, 4, generator=torch_stream(0, "z"), dtype=torch.float64)
    noise = torch.randn(6, 4, generator=torch_stream(0, "step"), dtype=torch.float64)
    density = small_prior().unconditional()
    after = langevin.step(z, density, step_size=0.08, temperature=0.7, rng=torch_stream(0, "step"))
    _, gradient = AutogradLogDensity(density.value).value_and_gradient(z)
    assert torch.allclose(after, z + 0.08 * gradient + math.sqrt(2 * 0.7 * 0.08) * noise, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("differentiable", [False, True])
def test_a_run_equals_repeated_steps(differentiable: bool, dtype: torch.dtype) -> None:
    z = torch.randn(6, 4, generator=torch_stream(0, "z"), dtype=dtype)
    density = small_prior(dtype).unconditional()
    rng = torch_stream(0, "noise")
    stepped = z
    for _ in range(11):
        stepped = langevin.step(stepped, density, step_size=0.1, temperature=0.5, rng=rng)
    settings = LangevinSettings(num_steps=11, step_size=0.1, temperature=0.5)
    result = langevin.run(density, z, settings=settings, rng=torch_stream(0, "noise"), differentiable=differentiable)
    assert result.z.dtype == dtype
    assert torch.allclose(result.z, stepped, atol=1e-5)
    assert result.diagnostics is None


# In float64 chains that round differently stay close. In float32 a pre-activation within rounding of 0 may fall on
# either side of leaky ReLU's kink, where the slope jumps, so only smooth activations give the same chains: 60 steps of
# about three roundings each, in both runs, of positions below 8 (half an ulp is 2.4e-7) add up to at most 9e-5.
CHAINS = [
    *((torch.float64, activation, 1e-10) for activation in Activation),
    *((torch.float32, activation, 1e-4) for activation in (Activation.GELU, Activation.SILU)),
]


@pytest.mark.parametrize(("dtype", "activation", "tolerance"), CHAINS)
@pytest.mark.parametrize("conditional", [False, True])
def test_chains_equal_autograd_chains(
    conditional: bool, dtype: torch.dtype, activation: Activation, tolerance: float
) -> None:
    rng = torch_stream(0, "chains")
    prior = TiltedPrior(Energy.mlp(100, 10, activation=activation, rng=rng).to(dtype))
    z = prior.reference_sample(64, rng=rng)
    density = prior.conditional(torch.arange(64) % 10) if conditional else prior.unconditional()
    plain: LogDensity = AutogradLogDensity(density.value)
    ours, autograd = (
        langevin.run(target, z, settings=LangevinSettings(), rng=torch_stream(1, "noise")).z
        for target in (density, plain)
    )
    assert ours.dtype == dtype
    assert torch.allclose(ours, autograd, rtol=0, atol=tolerance)


def test_zero_temperature_is_gradient_ascent() -> None:
    rng = torch_stream(0, "noise")
    before = rng.get_state()
    z = torch.randn(5, 3, generator=torch_stream(0, "z"), dtype=torch.float64)
    settings = LangevinSettings(num_steps=10, step_size=0.1, temperature=0.0)
    result = langevin.run(NORMAL, z, settings=settings, rng=rng)
    assert torch.allclose(result.z, 0.9**10 * z, atol=1e-12)
    assert torch.equal(before, rng.get_state())


def test_runs_repeat_and_do_not_use_the_global_rng() -> None:
    prior = small_prior(torch.float32)
    z = prior.reference_sample(33, rng=torch_stream(0, "z"))
    untouched, global_state = z.clone(), torch.get_rng_state()
    results = [
        langevin.run(
            prior.unconditional(), z, settings=LangevinSettings(), rng=torch_stream(1, "n"), diagnostics=measured
        ).z
        for measured in (False, False, True)
    ]
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])  # diagnostics do not change the chains
    assert torch.equal(z, untouched)
    assert torch.equal(global_state, torch.get_rng_state())


@pytest.mark.parametrize("wrapped", [False, True])
def test_parameters_and_start_are_not_modified(wrapped: bool) -> None:
    prior = small_prior()
    parameters = list(prior.energy.parameters())
    parameters[0].grad = torch.full_like(parameters[0], 7.0)
    start = prior.reference_sample(5, rng=torch_stream(0, "z")).requires_grad_()
    density: LogDensity = prior.unconditional()
    if wrapped:
        density = AutogradLogDensity(density.value)
    result = langevin.run(density, start, settings=LangevinSettings(3), rng=torch_stream(0, "noise"))
    assert not result.z.requires_grad
    assert result.z.grad_fn is None
    assert start.grad is None
    assert torch.equal(parameters[0].grad, torch.full_like(parameters[0], 7.0))
    assert all(parameter.grad is None for parameter in parameters[1:])


@pytest.mark.parametrize("conditional", [False, True])
def test_gradcheck_of_a_differentiable_chain(conditional: bool) -> None:
    prior = small_prior()
    start = prior.reference_sample(3, rng=torch_stream(0, "z")).requires_grad_()
    density = prior.conditional(torch.tensor([0, 2, 1])) if conditional else prior.unconditional()

    def chain(start: Tensor, *parameters: Tensor) -> Tensor:
        return langevin.run(
            density, start, settings=LangevinSettings(3), rng=torch_stream(0, "noise"), differentiable=True
        ).z

    # The parameters are perturbed in place by gradcheck, so the energy sees them.
    assert torch.autograd.gradcheck(chain, (start, *prior.energy.parameters()), fast_mode=False)


@pytest.mark.parametrize(
    ("gradient_steps", "into_start", "into_energy"), [(None, True, True), (2, False, True), (0, False, False)]
)
def test_gradient_steps(gradient_steps: int | None, into_start: bool, into_energy: bool) -> None:
    prior = small_prior()
    start = prior.reference_sample(3, rng=torch_stream(0, "z")).requires_grad_()

    def chain(differentiable: bool, gradient_steps: int | None = None) -> Tensor:
        return langevin.run(
            prior.unconditional(),
            start,
            settings=LangevinSettings(5),
            rng=torch_stream(0, "noise"),
            differentiable=differentiable,
            gradient_steps=gradient_steps,
        ).z

    z = chain(True, gradient_steps)
    assert torch.allclose(z, chain(False), atol=1e-12)
    assert z.requires_grad == (into_start or into_energy)
    if z.requires_grad:
        z.square().sum().backward()
    assert (start.grad is not None) == into_start
    assert (next(prior.energy.parameters()).grad is not None) == into_energy


def test_differentiable_chain_inside_no_grad() -> None:
    prior = small_prior()
    with torch.no_grad():
        z = langevin.run(
            prior.unconditional(),
            prior.reference_sample(3, rng=torch_stream(0, "z")),
            settings=LangevinSettings(2),
            rng=torch_stream(0, "noise"),
            differentiable=True,
        ).z
    assert z.requires_grad


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
@pytest.mark.parametrize(("differentiable", "gradient_steps"), [(False, None), (True, None), (True, 2), (True, 6)])
@pytest.mark.parametrize("bad_step", [1, 4, 7])
def test_a_diverged_chain_names_the_step(
    bad_step: int, differentiable: bool, gradient_steps: int | None, broken: float
) -> None:
    calls = 0

    def breaks(z: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        slope = torch.ones(len(z))
        slope[1] = broken if calls == bad_step else 1.0
        return slope * standard_normal(z)

    with raises(DivergedChainError, "diverged-chain", step=bad_step):
        langevin.run(
            AutogradLogDensity(breaks),
            torch.ones(3, 2),
            settings=LangevinSettings(8),
            rng=torch_stream(0, "noise"),
            differentiable=differentiable,
            gradient_steps=gradient_steps,
        )


@pytest.mark.parametrize("activation", Activation)
def test_a_diverged_mlp_chain(activation: Activation) -> None:
    prior = small_prior(torch.float32, activation)
    start = prior.reference_sample(5, rng=torch_stream(0, "z"))
    start[3, 1] = float("nan")
    for density in (prior.unconditional(), prior.conditional(torch.arange(5) % 3)):
        with raises(DivergedChainError, "diverged-chain", step=1):
            langevin.run(density, start, settings=LangevinSettings(4), rng=torch_stream(0, "noise"))
    settings = LangevinSettings(num_steps=200, step_size=10.0)  # 1 - s = -9: each step is nine times longer
    with raises(DivergedChainError, "diverged-chain"):
        langevin.run(prior.unconditional(), start.nan_to_num(), settings=settings, rng=torch_stream(0, "noise"))


def test_no_steps_returns_the_start() -> None:
    start = torch.ones(2, 3, requires_grad=True)
    result = langevin.run(NORMAL, start, settings=LangevinSettings(0), rng=torch_stream(0, "noise"))
    assert torch.equal(result.z, start)
    assert not result.z.requires_grad


@pytest.mark.parametrize(
    "settings", [{"num_steps": -1}, {"step_size": 0.0}, {"step_size": float("nan")}, {"temperature": -1.0}]
)
def test_invalid_settings(settings: dict[str, float]) -> None:
    (name,) = settings
    with pytest.raises(ValueError, match=name):
        LangevinSettings(**settings)  # type: ignore[arg-type]


def test_invalid_calls() -> None:
    z, rng, settings = torch.zeros(2, 3), torch_stream(0, "noise"), LangevinSettings(2)
    with pytest.raises(ValueError, match="start must"):
        langevin.run(NORMAL, z[0], settings=settings, rng=rng)
    with pytest.raises(ValueError, match="int64"):
        langevin.run(NORMAL, z.long(), settings=settings, rng=rng)
    with pytest.raises(ValueError, match="gradient_steps"):
        langevin.run(NORMAL, z, settings=settings, rng=rng, gradient_steps=1)
