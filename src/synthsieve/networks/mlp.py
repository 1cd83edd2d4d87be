"""A multilayer perceptron, and the gradient of its outputs in its input written out by hand.

A Langevin chain needs the gradient in the input only, thousands of times with the same weights. `InputGradient` keeps
what autograd would rebuild at each step: the buffers, and nothing of the parameters' own gradient.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

LEAKY_SLOPE = 0.2


class Activation(enum.Enum):
    """The elementwise function between two layers."""

    GELU = "gelu"  # x Phi(x), the exact one
    SILU = "silu"  # x sigmoid(x)
    LEAKY_RELU = "leaky_relu"  # x where x > 0, else 0.2 x

    def apply(self, x: Tensor) -> Tensor:
        """The activation of x, differentiable. Same shape as x."""
        if self is Activation.GELU:
            return nn.functional.gelu(x)
        if self is Activation.SILU:
            return nn.functional.silu(x)
        return nn.functional.leaky_relu(x, LEAKY_SLOPE)

    def apply_into(self, x: Tensor, out: Tensor) -> None:
        """Write the activation of x over `out`, without a graph. Both of one shape."""
        if self is Activation.GELU:
            torch.ops.aten.gelu.out(x, out=out)
        elif self is Activation.SILU:
            torch.ops.aten.silu.out(x, out=out)
        else:
            torch.ops.aten.leaky_relu.out(x, LEAKY_SLOPE, out=out)

    def pull_back_(self, cotangent: Tensor, x: Tensor, out: Tensor) -> None:
        """Write cotangent * activation'(x) over `out`, which may be `cotangent` itself. All of one shape."""
        if self is Activation.GELU:
            torch.ops.aten.gelu_backward.grad_input(cotangent, x, grad_input=out)
        elif self is Activation.SILU:
            torch.ops.aten.silu_backward.grad_input(cotangent, x, grad_input=out)
        else:
            torch.ops.aten.leaky_relu_backward.grad_input(cotangent, x, LEAKY_SLOPE, False, grad_input=out)


class MLP(nn.Module):
    """Fully connected layers with an activation between each two, none after the last.

    h_0 = x; h_i = activation(W_i h_{i-1} + b_i); output = W_k h_{k-1} + b_k.

    Args:
        sizes: the width of the input, of each hidden layer and of the output: (100, 200, 200, 10) is three layers.
        activation: the function between two layers.
        generator: draws the first weights, uniform within 1/sqrt(fan in) as `nn.Linear` does.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        activation: Activation = Activation.GELU,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        if len(sizes) < 2 or min(sizes) < 1:
            raise ValueError(f"sizes must name at least an input and an output width, each 1 or more; got {sizes!r}")
        self.sizes = tuple(sizes)
        self.activation = activation
        # skip_init: nn.Linear would draw its first weights from the global generator.
        self.layers = nn.ModuleList(
            nn.utils.skip_init(nn.Linear, fan_in, fan_out) for fan_in, fan_out in pairwise(self.sizes)
        )
        for layer in self.linears():
            bound = 1 / math.sqrt(layer.in_features)
            nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
            nn.init.uniform_(layer.bias, -bound, bound, generator=generator)

    def linears(self) -> list[nn.Linear]:
        """The layers, from input to output."""
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]

    def forward(self, x: Tensor) -> Tensor:
        """The outputs at x. (n, sizes[0]) -> (n, sizes[-1])."""
        *hidden, last = self.linears()
        for layer in hidden:
            x = self.activation.apply(layer(x))
        output: Tensor = last(x)
        return output


class InputGradient:
    """An MLP's forward pass and its pull-back to the input, in buffers made once.

    The weights are read where the network keeps them, never copied and never given a gradient. The order of calls is:
    `outputs` or `last_hidden` for a batch, then one of the pull-backs for the same batch.

    Args:
        network: the MLP.
        rows: the largest batch it will see.
        like: a tensor whose dtype and device the buffers take.
    """

    def __init__(self, network: MLP, rows: int, like: Tensor) -> None:
        self.activation = network.activation
        self.weights = [layer.weight.detach() for layer in network.linears()]
        self.biases = [layer.bias.detach() for layer in network.linears()]
        hidden = network.sizes[1:-1]
        self._pre = [like.new_empty(rows, width) for width in hidden]  # before the activation
        self._post = [like.new_empty(rows, width) for width in hidden]  # after it; then the cotangent on the way back
        self._output = like.new_empty(rows, network.sizes[-1])

    def last_hidden(self, x: Tensor) -> Tensor:
        """The input of the last layer at x: a buffer, valid until the next call. (n, sizes[0]) -> (n, sizes[-2])."""
        rows = len(x)
        for weight, bias, pre, post in zip(self.weights, self.biases, self._pre, self._post, strict=False):
            torch.addmm(bias, x, weight.t(), out=pre[:rows])
            self.activation.apply_into(pre[:rows], post[:rows])
            x = post[:rows]
        return x

    def outputs(self, x: Tensor) -> Tensor:
        """The outputs at x: a buffer, valid until the next call. (n, sizes[0]) -> (n, sizes[-1])."""
        return torch.addmm(self.biases[-1], self.last_hidden(x), self.weights[-1].t(), out=self._output[: len(x)])

    def pull_back_outputs_(self, cotangent: Tensor, target: Tensor, *, keep: float, scale: float) -> None:
        """Add a gradient to `target` in place, for weights `cotangent` on the outputs.

        target <- keep target + scale grad_x sum(cotangent * output(x)). (n, sizes[-1]), (n, sizes[0]).
        """
        if not self._post:
            target.addmm_(cotangent, self.weights[0], beta=keep, alpha=scale)
            return
        rows = len(cotangent)
        torch.mm(cotangent, self.weights[-1], out=self._post[-1][:rows])
        self.pull_back_hidden_(self._post[-1][:rows], target, keep=keep, scale=scale)

    def pull_back_hidden_(self, cotangent: Tensor, target: Tensor, *, keep: float, scale: float) -> None:
        """The same for weights on the last hidden layer, of which there must be one. (n, sizes[-2]), (n, sizes[0])."""
        rows = len(cotangent)
        for index in reversed(range(len(self._post))):
            delta = self._post[index][:rows]
            self.activation.pull_back_(cotangent, self._pre[index][:rows], delta)
            if index == 0:
                target.addmm_(delta, self.weights[0], beta=keep, alpha=scale)
            else:
                cotangent = torch.mm(delta, self.weights[index], out=self._post[index - 1][:rows])
