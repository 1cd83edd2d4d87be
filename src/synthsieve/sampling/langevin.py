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
from synthsieve.sampling.diagnostics import Diagnostics, Recorder
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


@dataclass(frozen=True)
class State:
    """The state of the chains.

    Attributes:
        position: z, one chain per row, (n, d).
        step: the number of steps taken so far.
    """

    position: Tensor
    step: int


@dataclass(frozen=True)
class LangevinRun:
    """The result of a run.

    Attributes:
        z: the final positions, (n, d). Detached, unless the run was differentiable.
        diagnostics: measurements of each step, if requested.
    """

    z: Tensor
    diagnostics: Diagnostics | None = None


def init(position: Tensor) -> State:
    """Chains at the given positions, (n, d), before any step."""
    if position.ndim != 2 or not position.is_floating_point():
        raise ValueError(f"position must be floating point (n, d); got {position.dtype} {tuple(position.shape)}")
    return State(position=position, step=0)


def step(
    state: State,
    log_density: LogDensity,
    *,
    step_size: float,
    temperature: float,
    rng: torch.Generator | None = None,
    noise: Tensor | None = None,
) -> State:
    """The state after one step: z' = z + s grad log p(z) + sqrt(2 T s) noise.

    Give either the `noise`, (n, d), or the `rng` that draws it.
    """
    z = state.position.detach()
    if rng is not None and noise is None:
        noise = draw_noise(z, rng=rng)
    elif noise is None or rng is not None:
        raise ValueError("step needs exactly one of noise and rng")
    _, gradient = log_density.value_and_gradient(z)
    return State(z + step_size * gradient + math.sqrt(2 * temperature * step_size) * noise, state.step + 1)


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
        log_density: the target, up to a constant.
        start: the initial positions, (n, d): samples of p0, of q(z given x), or anything else.
        settings: number of steps, step size and temperature.
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
    state = init(start)
    if gradient_steps is not None and not (differentiable and gradient_steps >= 0):
        raise ValueError(f"gradient_steps needs differentiable=True and 0 or more steps; got {gradient_steps}")
    noise_fn = _noise_fn(start, settings, rng, noise)
    recorder = Recorder() if diagnostics else None
    with_gradient = 0
    if differentiable:
        with_gradient = settings.num_steps if gradient_steps is None else min(gradient_steps, settings.num_steps)
    without_gradient = settings.num_steps - with_gradient
    if without_gradient or not differentiable:
        state = _advance(state, log_density, settings, without_gradient, noise_fn, recorder, graph=False)
    if differentiable:
        state = _advance(state, log_density, settings, with_gradient, noise_fn, recorder, graph=True)
    measured = recorder.finish(2 * settings.temperature * settings.step_size) if recorder else None
    return LangevinRun(z=state.position, diagnostics=measured)


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
    state: State,
    log_density: LogDensity,
    settings: LangevinSettings,
    num_steps: int,
    noise_fn: NoiseFn,
    recorder: Recorder | None,
    *,
    graph: bool,
) -> State:
    """The state after `num_steps` steps: in place on a copy of z, or with a graph."""
    noise_scale = math.sqrt(2 * settings.temperature * settings.step_size)
    with torch.set_grad_enabled(graph):
        z = state.position if graph else state.position.detach().clone(memory_format=torch.contiguous_format)
        ascend = None if graph else ascent_of(log_density, z)
        sums = z.new_zeros(num_steps)
        if recorder and state.step == 0:
            recorder.start(log_density.value(z.detach()))
        for done, total in enumerate(sums.unbind()):
            before = z.clone() if recorder else z
            if ascend is None:
                z = z if z.requires_grad else z.detach().requires_grad_()
                (gradient,) = torch.autograd.grad(log_density.value(z).sum(), z, create_graph=True)
                z = z + settings.step_size * gradient
                if noise_scale:
                    z = z + noise_scale * noise_fn(state.step + done)
            else:
                ascend(settings.step_size)
                if noise_scale:
                    z.add_(noise_fn(state.step + done), alpha=noise_scale)
            torch.sum(z.detach(), dim=(0, 1), out=total)
            if recorder:
                recorder.step(before, z, log_density.value(z.detach()))
    _check_finite(sums, state.step, settings)
    return State(z, state.step + num_steps)


def _check_finite(sums: Tensor, first_step: int, settings: LangevinSettings) -> None:
    """Raise if the sum of all positions after some step, (num_steps,), is not finite: one device transfer per run."""
    finite = torch.isfinite(sums)
    if bool(finite.all()):
        return
    diverged = first_step + int((~finite).int().argmax()) + 1
    raise DivergedChainError(
        diverged,
        f"a Langevin chain became non-finite at step {diverged} of {settings.num_steps} "
        f"(step_size={settings.step_size}, temperature={settings.temperature}): lower the step size or regularize the "
        "energy (lower its learning rate, clip its gradient, decay its weights)",
    )
