"""The interface between samplers and models: a log-density and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

Ascent = Callable[[float], None]  # step_size -> the z it was made for moves by step_size grad log p(z), in place


class LogDensity(Protocol):
    """log p(z), up to a constant, and its gradient in z."""

    def value(self, z: Tensor) -> Tensor:
        """The log-density, differentiable twice in z and in whatever parameters it has. (n, d) -> (n,)."""

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The log-density and its gradient in z, without a graph. (n, d) -> (n,), (n, d)."""


@runtime_checkable
class PreparedLogDensity(LogDensity, Protocol):
    """A log-density that allocates its buffers once for many in-place updates."""

    def ascent(self, z: Tensor) -> Ascent:
        """A function that, called with a step_size, adds step_size grad log p(z) to this z, in place."""


@dataclass(frozen=True)
class AutogradLogDensity:
    """A function z -> log p(z), (n, d) -> (n,), as a `LogDensity` with autograd gradients.

    Row i of the value may depend on row i of z only.
    """

    function: Callable[[Tensor], Tensor]

    def value(self, z: Tensor) -> Tensor:
        return self.function(z)

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            leaf = z.detach().requires_grad_()
            value = self.function(leaf)
            (gradient,) = torch.autograd.grad(value.sum(), leaf)
        return value.detach(), gradient


def ascent_of(log_density: LogDensity, z: Tensor) -> Ascent:
    """The in-place ascent of a `PreparedLogDensity`, else one that uses its gradient."""
    if isinstance(log_density, PreparedLogDensity):
        return log_density.ascent(z)

    def ascend(step_size: float) -> None:
        z.add_(log_density.value_and_gradient(z)[1], alpha=step_size)

    return ascend
