"""The MLP, and its input gradient against autograd."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from synthsieve.io.random_streams import torch_stream
from synthsieve.models.networks.layers import build
from synthsieve.models.networks.mlp import MLP, InputGradient
from synthsieve.settings import Activation
from tests.models.networks.kinks import away_from_kinks

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
def test_input_gradient_equals_autograd(sizes: tuple[int, ...], activation: Activation, dtype: torch.dtype) -> None:
    rng = torch_stream(0, "mlp")
    network = MLP(sizes, activation=activation, rng=rng).to(dtype)
    x = torch.randn(50, sizes[0], generator=rng, dtype=dtype)
    x = away_from_kinks(network, x, 33).requires_grad_()
    cotangent = torch.randn(33, sizes[-1], generator=rng, dtype=dtype)
    outputs = network(x)
    (expected,) = torch.autograd.grad((outputs * cotangent).sum(), x)

    gradient = InputGradient(network, 33, x.detach())
    tolerance = TOLERANCES[dtype]
    assert torch.allclose(gradient.outputs(x.detach()), outputs, rtol=0, atol=tolerance)
    target = torch.ones_like(x)
    gradient.add_gradient_(cotangent, target, keep=0.5, scale=2.0)
    assert torch.allclose(target, 0.5 + 2 * expected, rtol=0, atol=tolerance)
    assert all(parameter.grad is None for parameter in network.parameters())


@pytest.mark.parametrize("activation", Activation)
def test_nan_is_propagated(activation: Activation) -> None:
    network = MLP((4, 5, 3), activation=activation, rng=torch_stream(0, "mlp"))
    x = torch.full((2, 4), float("nan"))
    gradient = InputGradient(network, 2, x)
    outputs = gradient.outputs(x)
    assert outputs.isnan().all()
    target = torch.zeros(2, 4)
    gradient.add_gradient_(outputs, target, keep=1.0, scale=1.0)
    assert target.isnan().all()


def test_initial_weights_come_from_rng_only() -> None:
    torch_state = torch.get_rng_state()
    one, two = (MLP((3, 8, 2), rng=torch_stream(5, "weights")) for _ in range(2))
    assert torch.equal(torch_state, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert max(float(p.detach().abs().max()) for p in one.layers[1].parameters()) <= (3 / 8) ** 0.5


@pytest.mark.parametrize("sizes", [(3,), (), (3, 0, 2)])
def test_invalid_sizes(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="sizes"):
        MLP(sizes, rng=torch_stream(0, "weights"))


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: MLP((65536, 65536), rng=rng),
        lambda rng: build(lambda: nn.Linear(65536, 65536), rng=rng),
    ],
)
def test_on_meta_no_memory_is_taken(make):
    with torch.device("meta"):
        network = make(torch.Generator(device="cpu"))
    assert {weight.device.type for weight in network.parameters()} == {"meta"}
