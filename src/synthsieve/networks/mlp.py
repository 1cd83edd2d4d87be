"""A multilayer perceptron, and the gradient of its outputs in its input written out by hand.

A Langevin chain needs the gradient in the input only, thousands of times with the same weights. `InputGradient` keeps
what autograd would rebuild at each step: the buffers, and nothing of the parameters' own gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from synthsieve.config import Activation
from synthsieve.networks.activation import Pass, activate


class MLP(nn.Module):
    """Fully connected layers with an activation between each two, none after the last.

    h_0 = x; h_i = activation(W_i h_{i-1} + b_i); output = W_k h_{k-1} + b_k.

    Args:
        sizes: the width of the input, of each hidden layer and of the output: (100, 200, 200, 10) is three layers.
        activation: the function between two layers.
        generator: draws the first weights, which keep the signal's variance; biases start at zero.
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
        device = torch.get_default_device()
        self.layers = nn.ModuleList(
            nn.utils.skip_init(nn.Linear, fan_in, fan_out, device=device) for fan_in, fan_out in pairwise(self.sizes)
        )
        for layer in self.linears():
            # torch's own narrower range lets six layers forget the input: 50 labels then teach little.
            bound = math.sqrt((3 if layer is self.layers[-1] else 6) / layer.in_features)
            nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
            nn.init.zeros_(layer.bias)

    def linears(self) -> list[nn.Linear]:
        """The layers, from input to output."""
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]

    def forward(self, x: Tensor) -> Tensor:
        """The outputs at x. (n, sizes[0]) -> (n, sizes[-1])."""
        output: Tensor = self.layers[-1](self.last_hidden(x))
        return output

    def last_hidden(self, x: Tensor) -> Tensor:
        """What the last layer sees at x. (n, sizes[0]) -> (n, sizes[-2])."""
        for layer in self.linears()[:-1]:
            x = activate(self.activation, layer(x))
        return x


class InputGradient:
    """An MLP's forward pass and its pull-back to the input, in buffers made once for one batch size.

    The weights are read where the network keeps them, but for a first layer that is padded, and never given a gradient.
    The order of calls is: `outputs` or `last_hidden` at x, then one of the pull-backs for the same x.

    Args:
        network: the MLP.
        rows: the batch size it will see, n below.
        like: a tensor whose dtype and device the buffers take. It may be wider than the network's input: the numbers
            after those that the network looks at have no gradient.
    """

    def __init__(self, network: MLP, rows: int, like: Tensor) -> None:
        self.weights = [layer.weight.detach() for layer in network.linears()]
        unseen = like.shape[1] - network.sizes[0]
        if unseen:
            self.weights[0] = nn.functional.pad(self.weights[0], (0, unseen))
        self._transposed = [weight.t() for weight in self.weights]  # views: MKL is quicker on them than on copies
        self._biases = [layer.bias.detach() for layer in network.linears()]
        hidden = network.sizes[1:-1]
        self._pre = [like.new_empty(rows, width) for width in hidden]  # before the activation
        self._post = [like.new_empty(rows, width) for width in hidden]  # after it; then the cotangent on the way back
        self._activations = [
            Pass.of(network.activation, pre, post) for pre, post in zip(self._pre, self._post, strict=True)
        ]
        self._output = like.new_empty(rows, network.sizes[-1])

    def last_hidden(self, x: Tensor) -> Tensor:
        """The input of the last layer at x: a buffer, valid until the next call. (n, sizes[0]) -> (n, sizes[-2])."""
        for index, activation in enumerate(self._activations):
            torch.addmm(self._biases[index], x, self._transposed[index], out=self._pre[index])
            activation.forward()
            x = self._post[index]
        return x

    def outputs(self, x: Tensor) -> Tensor:
        """The outputs at x: a buffer, valid until the next call. (n, sizes[0]) -> (n, sizes[-1])."""
        return torch.addmm(self._biases[-1], self.last_hidden(x), self._transposed[-1], out=self._output)

    def pull_back_outputs_(self, cotangent: Tensor, target: Tensor, *, keep: float, scale: float) -> None:
        """Add a gradient to `target` in place, for weights `cotangent` on the outputs.

        target <- keep target + scale grad_x sum(cotangent * output(x)). (n, sizes[-1]), (n, sizes[0]).
        """
        if self._post:
            cotangent = torch.mm(cotangent, self.weights[-1], out=self._post[-1])
        self.pull_back_hidden_(cotangent, target, keep=keep, scale=scale)

    def pull_back_hidden_(self, cotangent: Tensor, target: Tensor, *, keep: float, scale: float) -> None:
        """The same for weights on the last hidden layer, of which there must be one. (n, sizes[-2]), (n, sizes[0])."""
        for index in reversed(range(len(self._post))):
            self._activations[index].backward(cotangent)
            cotangent = self._post[index]
            if index > 0:
                cotangent = torch.mm(cotangent, self.weights[index], out=self._post[index - 1])
        target.addmm_(cotangent, self.weights[0], beta=keep, alpha=scale)
