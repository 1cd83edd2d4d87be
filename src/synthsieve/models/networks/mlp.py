"""A multilayer perceptron, and the gradient of its outputs with respect to its input without autograd.

A Langevin chain needs that gradient thousands of times with the same weights. `InputGradient` reuses its buffers from
step to step and computes no gradient of the parameters. See decision 0301.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from synthsieve.models.networks.layers import default_device
from synthsieve.settings import Activation

LEAKY_SLOPE = 0.2


def activate(activation: Activation, x: Tensor) -> Tensor:
    """The activation of x, differentiable: the exact GELU x Phi(x), SiLU x sigmoid(x), or leaky ReLU with slope 0.2."""
    if activation is Activation.GELU:
        return nn.functional.gelu(x)
    if activation is Activation.SILU:
        return nn.functional.silu(x)
    return nn.functional.leaky_relu(x, LEAKY_SLOPE)


class MLP(nn.Module):
    """Fully connected layers with an activation between them, none after the last.

    h_0 = x; h_i = activation(W_i h_{i-1} + b_i); output = W_k h_{k-1} + b_k.

    Args:
        sizes: the width of the input, of each hidden layer and of the output: (100, 200, 200, 10) is three layers.
        activation: the function between two layers.
        rng: draws the initial weights, which preserve the variance of the signal; biases start at zero.
    """

    def __init__(self, sizes: Sequence[int], *, activation: Activation = Activation.GELU, rng: torch.Generator) -> None:
        super().__init__()
        if len(sizes) < 2 or min(sizes) < 1:
            raise ValueError(f"sizes must be at least two widths, each 1 or more; got {sizes!r}")
        self.sizes = tuple(sizes)
        self.activation = activation
        # skip_init: nn.Linear would draw its initial weights from the global random state.
        device = default_device()
        self.layers = nn.ModuleList(
            nn.utils.skip_init(nn.Linear, fan_in, fan_out, device=device) for fan_in, fan_out in pairwise(self.sizes)
        )
        for layer in self.linears():
            # With torch's narrower default, the signal vanishes after six layers and 50 labels are too few to train.
            bound = math.sqrt((3 if layer is self.layers[-1] else 6) / layer.in_features)
            nn.init.uniform_(layer.weight, -bound, bound, generator=rng)
            nn.init.zeros_(layer.bias)

    def linears(self) -> list[nn.Linear]:
        """The layers, from input to output."""
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]

    def forward(self, x: Tensor) -> Tensor:
        """The outputs at x. (n, sizes[0]) -> (n, sizes[-1])."""
        output: Tensor = self.layers[-1](self.last_hidden(x))
        return output

    def last_hidden(self, x: Tensor) -> Tensor:
        """The input of the last layer at x. (n, sizes[0]) -> (n, sizes[-2])."""
        for layer in self.linears()[:-1]:
            x = activate(self.activation, layer(x))
        return x


class InputGradient:
    """Forward and backward pass of an MLP for one batch size, in buffers that are allocated once.

    Call `outputs` or `last_hidden` at x, then `add_gradient_` or `add_gradient_of_hidden_` for the same x.

    Args:
        network: the MLP; its weights are read in place (only a first layer that must be padded is copied).
        rows: the batch size, n below.
        like: has the dtype and the device of the buffers. It may be wider than the network's input: the additional
            columns have no gradient.
    """

    def __init__(self, network: MLP, rows: int, like: Tensor) -> None:
        self.activation = network.activation
        self.weights = [layer.weight.detach() for layer in network.linears()]
        padding = like.shape[1] - network.sizes[0]
        if padding:
            self.weights[0] = nn.functional.pad(self.weights[0], (0, padding))
        self._transposed = [weight.t() for weight in self.weights]  # views: MKL is faster on them than on copies
        self._biases = [layer.bias.detach() for layer in network.linears()]
        hidden = network.sizes[1:-1]
        self._pre = [like.new_empty(rows, width) for width in hidden]  # before the activation
        self._post = [like.new_empty(rows, width) for width in hidden]  # after it; in the backward pass, the gradient
        self._output = like.new_empty(rows, network.sizes[-1])

    def last_hidden(self, x: Tensor) -> Tensor:
        """The input of the last layer at x: a buffer, valid until the next call. (n, sizes[0]) -> (n, sizes[-2])."""
        for bias, weight, pre, post in zip(self._biases, self._transposed, self._pre, self._post, strict=False):
            torch.addmm(bias, x, weight, out=pre)
            _activate_out(self.activation, pre, out=post)
            x = post
        return x

    def outputs(self, x: Tensor) -> Tensor:
        """The outputs at x: a buffer, valid until the next call. (n, sizes[0]) -> (n, sizes[-1])."""
        return torch.addmm(self._biases[-1], self.last_hidden(x), self._transposed[-1], out=self._output)

    def add_gradient_(self, cotangent: Tensor, target: Tensor, *, keep: float, scale: float) -> None:
        """target <- keep target + scale grad_x sum(cotangent * outputs(x)), in place. (n, sizes[-1]), (n, sizes[0])."""
        if self._post:
            cotangent = torch.mm(cotangent, self.weights[-1], out=self._post[-1])
        self.add_gradient_of_hidden_(cotangent, target, keep=keep, scale=scale)

    def add_gradient_of_hidden_(self, cotangent: Tensor, target: Tensor, *, keep: float, scale: float) -> None:
        """target <- keep target + scale grad_x sum(cotangent * last_hidden(x)). (n, sizes[-2]), (n, sizes[0])."""
        for index in reversed(range(len(self._post))):
            gradient = self._post[index]
            _activation_backward_out(self.activation, cotangent, self._pre[index], out=gradient)
            cotangent = torch.mm(gradient, self.weights[index], out=self._post[index - 1]) if index else gradient
        target.addmm_(cotangent, self.weights[0], beta=keep, alpha=scale)


def _activate_out(activation: Activation, x: Tensor, *, out: Tensor) -> None:
    aten = torch.ops.aten
    if activation is Activation.GELU:
        aten.gelu.out(x, out=out)
    elif activation is Activation.SILU:
        aten.silu.out(x, out=out)
    else:
        aten.leaky_relu.out(x, LEAKY_SLOPE, out=out)


def _activation_backward_out(activation: Activation, cotangent: Tensor, x: Tensor, *, out: Tensor) -> None:
    """out <- cotangent * activation'(x); the cotangent may be `out` itself."""
    aten = torch.ops.aten
    if activation is Activation.GELU:
        aten.gelu_backward.grad_input(cotangent, x, grad_input=out)
    elif activation is Activation.SILU:
        aten.silu_backward.grad_input(cotangent, x, grad_input=out)
    else:
        aten.leaky_relu_backward.grad_input(cotangent, x, LEAKY_SLOPE, False, grad_input=out)
