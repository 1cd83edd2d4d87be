"""Unadjusted Langevin dynamics.

z' = z + s grad log p(z) + sqrt(2 T s) noise, with `step_size` s, `temperature` T and noise ~ N(0, I).

There is no rejection step: on N(0, I) the chain converges to variance T / (1 - s/2), not to T. `step` is the formula;
`run` repeats it in place, and is what the rest of the package calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from synthsieve.errors import DivergedChainError
from synthsieve.io.random_streams import randn
from synthsieve.sampling.log_density import LogDensity, ascent_of


@dataclass(frozen=True)
class LangevinSettings:
    """Options of a chain.

    Attributes:
        num_steps: steps of each chain, 0 or more.
        step_size: s, above 0. A step given as the scale of the noise, 0.4, is sqrt(2 s): s = 0.08.
        temperature: T, 0 or more. 1 targets p, lower values sharpen it towards its modes, 0 is gradient ascent.
    """

    num_steps: int = 60
    step_size: float = 0.08
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.num_steps < 0:
            raise ValueError(f"num_steps must be 0 or more; got {self.num_steps}")
        if not (math.isfinite(self.step_size) and self.step_size > 0):
            raise ValueError(f"step_size must be a finite number above 0; got {self.step_size}")
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f"temperature must be a finite number, 0 or more; got {self.temperature}")


class Diagnostics:
    """The log-density of chains at their start and after each step, collected step by step.

    The unadjusted sampler accepts every move, so there is no acceptance rate to report.
    """

    def __init__(self) -> None:
        self._values: list[Tensor] = []

    def record(self, log_density: Tensor) -> None:
        """The log-density of each chain (n,) at one more place."""
        self._values.append(log_density.detach().cpu().double())

    @property
    def log_density(self) -> Tensor:
        """Mean log p, up to the density's constant, at the start and after each step. (num_steps + 1,), float64."""
        return torch.stack(self._values).mean(dim=1)

    @property
    def log_density_range(self) -> Tensor:
        """Its 5 % and 95 % quantiles over the chains there. (num_steps + 1, 2), float64."""
        each = torch.stack(self._values)
        return torch.quantile(each, each.new_tensor([0.05, 0.95]), dim=1).T

    @property
    def late_climb(self) -> float:
        """Change of the mean log-density over the last quarter of the steps. About 0 for a converged chain."""
        num_steps = len(self._values) - 1
        return float(self.log_density[num_steps] - self.log_density[num_steps - math.ceil(num_steps / 4)])


@dataclass(frozen=True)
class LangevinRun:
    """The final positions z (n, d), detached unless the run was differentiable, and diagnostics if requested."""

    z: Tensor
    diagnostics: Diagnostics | None = None


def step(z: Tensor, log_density: LogDensity, *, step_size: float, temperature: float, rng: torch.Generator) -> Tensor:
    """One step from z (n, d), as the formula says: z' = z + s grad log p(z) + sqrt(2 T s) noise."""
    _, gradient = log_density.value_and_gradient(z)
    return z + step_size * gradient + math.sqrt(2 * temperature * step_size) * draw_noise(z, rng=rng)


def run(
    log_density: LogDensity,
    start: Tensor,
    *,
    settings: LangevinSettings,
    rng: torch.Generator | None = None,
    noise: Tensor | None = None,
    differentiable: bool = False,
    gradient_steps: int | None = None,
    diagnostics: bool = False,
) -> LangevinRun:
    """Run chains from `start` for `settings.num_steps` steps of z' = z + s grad log p(z) + sqrt(2 T s) noise.

    `start` and the `.grad` of parameters are not modified; the result is detached by default.

    Args:
        start: the initial positions, (n, d): samples of p0, of q(z given x), or anything else.
        rng: draws the noise on its own device; the noise is then moved, so a CPU generator gives the same noise on
            every device. At T = 0 nothing is drawn.
        noise: instead of `rng`, the noise itself, (num_steps, n, d), for example with one seed per chain.
        differentiable: keep the gradient of the result in `start` and in the parameters of the log-density.
        gradient_steps: for a differentiable run, how many of the last steps have a gradient: all (None), the last k,
            or none (0). Unless all have one, it does not reach `start`.
        diagnostics: record measurements. This costs a forward pass per step and does not change the chains.

    Raises:
        DivergedChainError: a chain became non-finite; it names the first such step.
    """
    if start.ndim != 2 or not start.is_floating_point():
        raise ValueError(f"start must be floating point (n, d); got {start.dtype} {tuple(start.shape)}")
    if gradient_steps is not None and not (differentiable and gradient_steps >= 0):
        raise ValueError(f"gradient_steps needs differentiable=True and 0 or more steps; got {gradient_steps}")
    noise_fn = _noise_fn(start, settings, rng, noise)
    measured = Diagnostics() if diagnostics else None
    if measured is not None:
        with torch.no_grad():
            measured.record(log_density.value(start))
    first = settings.num_steps  # the first step with a gradient
    if differentiable:
        first = 0 if gradient_steps is None else max(0, settings.num_steps - gradient_steps)
    z = start
    if first or not differentiable:
        z = _advance(z, log_density, settings, range(first), noise_fn, measured, graph=False)
    if differentiable:
        z = _advance(z, log_density, settings, range(first, settings.num_steps), noise_fn, measured, graph=True)
    return LangevinRun(z, measured)


def draw_noise(like: Tensor, *, rng: torch.Generator) -> Tensor:
    """Standard normal noise of a tensor's shape, dtype and device, drawn on the device of `rng` and then moved."""
    return randn(like.shape, rng=rng, dtype=like.dtype).to(like.device)


NoiseFn = Callable[[int], Tensor]  # index of a step -> its noise, (n, d), valid until the next call


def _noise_fn(start: Tensor, settings: LangevinSettings, rng: torch.Generator | None, noise: Tensor | None) -> NoiseFn:
    if (rng is None) == (noise is None):
        raise ValueError("run needs exactly one of noise and rng")
    if noise is not None:
        expected = (settings.num_steps, *start.shape)
        if tuple(noise.shape) != expected:
            raise ValueError(f"noise must be (num_steps, n, d) = {expected}; got {tuple(noise.shape)}")
        return noise.to(start).__getitem__
    assert rng is not None
    if type(rng) is not torch.Generator:  # it keeps some rows of each draw
        return lambda step: draw_noise(start, rng=rng)
    buffer = torch.empty(start.shape, dtype=start.dtype, device=rng.device)
    return lambda step: buffer.normal_(generator=rng).to(start.device)


def _advance(
    start: Tensor,
    log_density: LogDensity,
    settings: LangevinSettings,
    steps: range,
    noise_fn: NoiseFn,
    measured: Diagnostics | None,
    *,
    graph: bool,
) -> Tensor:
    """The positions after `steps`: in place on a copy of z, or with a graph."""
    noise_scale = math.sqrt(2 * settings.temperature * settings.step_size)
    with torch.set_grad_enabled(graph):
        z = start if graph else start.detach().clone(memory_format=torch.contiguous_format)
        ascend = None if graph else ascent_of(log_density, z)
        sums = z.new_zeros(len(steps))
        for index, total in zip(steps, sums.unbind(), strict=True):
            if ascend is None:
                z = z if z.requires_grad else z.detach().requires_grad_()
                (gradient,) = torch.autograd.grad(log_density.value(z).sum(), z, create_graph=True)
                z = z + settings.step_size * gradient
                if noise_scale:
                    z = z + noise_scale * noise_fn(index)
            else:
                ascend(settings.step_size)
                if noise_scale:
                    z.add_(noise_fn(index), alpha=noise_scale)
            torch.sum(z.detach(), dim=(0, 1), out=total)
            if measured is not None:
                measured.record(log_density.value(z.detach()))
    finite = torch.isfinite(sums)  # one transfer from the device for all steps
    if not bool(finite.all()):
        diverged = steps.start + int((~finite).int().argmax()) + 1
        raise DivergedChainError(
            diverged,
            f"a Langevin chain became non-finite at step {diverged} of {settings.num_steps} "
            f"(step_size={settings.step_size}, temperature={settings.temperature}): lower the step size or regularize "
            "the energy (lower its learning rate, clip its gradient, decay its weights)",
        )
    return z
