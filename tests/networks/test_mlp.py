"""The MLP, its activations and the hand-written gradient against autograd."""

from __future__ import annotations

import pytest
import torch
from tests.networks.kinks import away_from_kinks

from synthsieve.config import Activation
from synthsieve.networks.activation import Pass, activate
from synthsieve.networks.mlp import MLP, InputGradient
from synthsieve.randomness import torch_stream

SIZES = {
    "no hidden layer": (6, 4),
    "one": (6, 9, 4),
    "the paper's three layers": (100, 200, 200, 10),
    "deep": (5, 7, 8, 9, 3),
}
TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-5}


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("activation", Activation)
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
def test_the_hand_written_gradient_equals_autograd(
    sizes: tuple[int, ...], activation: Activation, dtype: torch.dtype
) -> None:
    generator = torch_stream(0, "mlp")
    network = MLP(sizes, activation=activation, generator=generator).to(dtype)
    x = torch.randn(50, sizes[0], generator=generator, dtype=dtype)
    x = away_from_kinks(network, x, 33).requires_grad_()
    cotangent = torch.randn(33, sizes[-1], generator=generator, dtype=dtype)
    outputs = network(x)
    (expected,) = torch.autograd.grad((outputs * cotangent).sum(), x)

    by_hand = InputGradient(network, 33, x.detach())
    tolerance = TOLERANCES[dtype]
    assert torch.allclose(by_hand.outputs(x.detach()), outputs, rtol=0, atol=tolerance)
    target = torch.ones_like(x)
    by_hand.pull_back_outputs_(cotangent, target, keep=0.5, scale=2.0)
    assert torch.allclose(target, 0.5 + 2 * expected, rtol=0, atol=tolerance)
    assert all(parameter.grad is None for parameter in network.parameters())


@pytest.mark.parametrize("activation", Activation)
def test_every_pass_gives_the_activation_and_its_slope(activation: Activation) -> None:
    x = torch.cat([torch.linspace(-30, 30, 4001), torch.linspace(-3000, 3000, 100)]).requires_grad_()
    expected = activate(activation, x)
    (slope,) = torch.autograd.grad(expected.sum(), x)
    for make in (Pass.of, Pass.plain):
        kept, out = x.detach().clone(), torch.empty_like(x)
        passes = make(activation, kept, out)
        passes.forward()
        assert torch.allclose(out, expected, rtol=2e-6, atol=2e-6)
        passes.backward(torch.full_like(x, 3.0))
        assert torch.allclose(out, 3 * slope, rtol=0, atol=5e-6)


@pytest.mark.parametrize("activation", Activation)
def test_a_pass_does_not_swallow_nan(activation: Activation) -> None:
    kept, out = torch.full((40,), float("nan")), torch.empty(40)
    passes = Pass.of(activation, kept, out)
    passes.forward()
    assert out.isnan().all()
    passes.backward(torch.full((40,), float("nan")))
    assert out.isnan().all()


def test_first_weights_come_from_the_generator_alone() -> None:
    torch_state = torch.get_rng_state()
    one, two = (MLP((3, 8, 2), generator=torch_stream(5, "weights")) for _ in range(2))
    assert torch.equal(torch_state, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert max(float(p.detach().abs().max()) for p in one.layers[1].parameters()) <= (3 / 8) ** 0.5


@pytest.mark.parametrize("sizes", [(3,), (), (3, 0, 2)])
def test_impossible_sizes_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="sizes must name"):
        MLP(sizes, generator=torch_stream(0, "weights"))
