"""Unadjusted Langevin dynamics: chains that climb a log-density and are shaken by noise.

z' = z + s grad log p(z) + sqrt(2 T s) noise, with `step_size` s, `temperature` T and noise ~ N(0, I).

On N(0, I) the chain settles at variance T / (1 - s/2), not at T: the step is never corrected by a rejection.

The file reads in the order State, init, step, run. `step` is the formula; `run` is the same formula many times, in
place, and is what the rest of the package calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from synthsieve.errors import DivergedChainError
from synthsieve.sampling.diagnostics import Diagnostics, Recorder
from synthsieve.sampling.log_density import LogDensity, ascent_of
from synthsieve.sharing import SharedGenerator, normal_rows


@dataclass(frozen=True)
class LangevinSettings:
    """How far, how fast and how hot.

    Attributes:
        num_steps: steps of each chain, 0 or more.
        step_size: s, above 0. A predecessor's "step 0.4" is sqrt(2 s): s = 0.08.
        temperature: T, 0 or more. 1 targets p, lower sharpens it towards its modes, 0 is plain gradient ascent.
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
    """Where the chains are.

    Attributes:
        position: z, a chain a row, (n, d): all that the next step depends on, for the dynamics has no momentum.
        step: how many steps led here: so that an error can name the step, and a run can be cut in two.
    """

    position: Tensor
    step: int


@dataclass(frozen=True)
class LangevinRun:
    """What a run leaves behind.

    Attributes:
        z: where the chains ended, (n, d). Detached, unless the run was differentiable.
        diagnostics: measurements along the way, when they were asked for.
    """

    z: Tensor
    diagnostics: Diagnostics | None = None


def init(position: Tensor) -> State:
    """Chains at the given z, before any step. position: (n, d)."""
    if position.ndim != 2 or not position.is_floating_point():
        raise ValueError(
            f"position must be floating point of shape (n, d), a chain a row; "
            f"got {position.dtype} of shape {tuple(position.shape)}"
        )
    return State(position=position, step=0)


def step(
    state: State,
    log_density: LogDensity,
    *,
    step_size: float,
    temperature: float,
    generator: torch.Generator | None = None,
    noise: Tensor | None = None,
) -> State:
    """The chains one step on; the old state is left as it was.

    z' = z + s grad log p(z) + sqrt(2 T s) noise.

    Give either the `noise`, (n, d), or the `generator` that draws it.
    """
    z = state.position.detach()
    if generator is not None and noise is None:
        noise = draw_noise(z, generator=generator)
    elif noise is None or generator is not None:
        raise ValueError("step needs exactly one of noise and generator")
    _, gradient = log_density.value_and_gradient(z)
    return State(z + step_size * gradient + math.sqrt(2 * temperature * step_size) * noise, state.step + 1)


def run(
    log_density: LogDensity,
    start: Tensor,
    *,
    settings: LangevinSettings,
    generator: torch.Generator | None = None,
    noise: Tensor | None = None,
    differentiable: bool = False,
    gradient_steps: int | None = None,
    diagnostics: bool = False,
) -> LangevinRun:
    """Chains started at `start` and moved exactly `settings.num_steps` times.

    z' = z + s grad log p(z) + sqrt(2 T s) noise, num_steps times.

    By default no gradient enters or leaves: `start` is not written to, the result is detached, and no parameter's
    `.grad` is touched.

    Args:
        log_density: the target, up to a constant.
        start: where the chains begin, (n, d): draws of p0, or of q(z given x), or anything.
        settings: how far, how fast and how hot.
        generator: draws the noise, on its own device; the noise is then moved to `start`'s. With a CPU generator the
            same noise meets the chains on every device. At T = 0 nothing is drawn.
        noise: instead of a generator, the noise itself, (num_steps, n, d): each chain can then have a seed of its own.
        differentiable: let the gradient of the result flow back into `start` and into the log-density's parameters.
        gradient_steps: of a differentiable run, how many of the last steps the gradient passes through: all (None), the
            last k, or none (0). Unless it passes through all of them, it does not reach `start`.
        diagnostics: measure along the way. This costs a forward pass a step and leaves the chains as they were.

    Raises:
        DivergedChainError: a chain left the finite numbers; it names the first step after which one had.
    """
    state = init(start)
    if gradient_steps is not None and not (differentiable and gradient_steps >= 0):
        raise ValueError(f"gradient_steps needs differentiable=True and 0 or more steps; got {gradient_steps}")
    shaker = _shaker(start, settings, generator, noise)
    recorder = Recorder() if diagnostics else None
    if differentiable:
        through = settings.num_steps if gradient_steps is None else min(gradient_steps, settings.num_steps)
        quick = settings.num_steps - through
        if quick:
            state = _run_in_place(state, log_density, settings, quick, shaker, recorder)
        state = _run_with_graph(state, log_density, settings, through, shaker, recorder)
    else:
        state = _run_in_place(state, log_density, settings, settings.num_steps, shaker, recorder)
    measured = recorder.finish(2 * settings.temperature * settings.step_size) if recorder else None
    return LangevinRun(z=state.position, diagnostics=measured)


def draw_noise(like: Tensor, *, generator: torch.Generator) -> Tensor:
    """Standard normal noise of a tensor's shape, dtype and device, drawn on the generator's device and then moved."""
    return normal_rows(like.shape, generator=generator, dtype=like.dtype).to(like.device)


Shaker = Callable[[int], Tensor]  # the number of a step -> its noise, (n, d), good until the next call


def _shaker(
    start: Tensor, settings: LangevinSettings, generator: torch.Generator | None, noise: Tensor | None
) -> Shaker:
    """The noise of each step: drawn from the generator as the steps come, or looked up."""
    if (generator is None) == (noise is None):
        raise ValueError("run needs exactly one of noise and generator")
    if noise is not None:
        expected = (settings.num_steps, *start.shape)
        if tuple(noise.shape) != expected:
            raise ValueError(f"noise must be (num_steps, n, d) = {expected}; got {tuple(noise.shape)}")
        return noise.to(start).__getitem__
    assert generator is not None
    if isinstance(generator, SharedGenerator):
        return lambda step: draw_noise(start, generator=generator)
    buffer = torch.empty(start.shape, dtype=start.dtype, device=generator.device)
    return lambda step: buffer.normal_(generator=generator).to(start.device)


@torch.no_grad()
def _run_in_place(
    state: State,
    log_density: LogDensity,
    settings: LangevinSettings,
    num_steps: int,
    shaker: Shaker,
    recorder: Recorder | None,
) -> State:
    z = state.position.detach().clone(memory_format=torch.contiguous_format)
    ascend = ascent_of(log_density, z)
    noise_scale = math.sqrt(2 * settings.temperature * settings.step_size)
    sums = z.new_zeros(num_steps)
    if recorder and state.step == 0:
        recorder.start(log_density.value(z))
    for done, total in enumerate(sums.unbind()):
        before = z.clone() if recorder else z
        ascend(settings.step_size)
        if noise_scale:
            z.add_(shaker(state.step + done), alpha=noise_scale)
        torch.sum(z, dim=(0, 1), out=total)
        if recorder:
            recorder.moved(before, z, log_density.value(z))
    _refuse_divergence(sums, state.step, settings)
    return State(z, state.step + num_steps)


@torch.enable_grad()
def _run_with_graph(
    state: State,
    log_density: LogDensity,
    settings: LangevinSettings,
    num_steps: int,
    shaker: Shaker,
    recorder: Recorder | None,
) -> State:
    z = state.position
    noise_scale = math.sqrt(2 * settings.temperature * settings.step_size)
    sums = z.new_zeros(num_steps)
    if recorder and state.step == 0:
        recorder.start(log_density.value(z.detach()))
    for done, total in enumerate(sums.unbind()):
        before = z
        z = z if z.requires_grad else z.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(log_density.value(z).sum(), z, create_graph=True)
        z = z + settings.step_size * gradient
        if noise_scale:
            z = z + noise_scale * shaker(state.step + done)
        torch.sum(z.detach(), dim=(0, 1), out=total)
        if recorder:
            recorder.moved(before, z, log_density.value(z.detach()))
    _refuse_divergence(sums, state.step, settings)
    return State(z, state.step + num_steps)


def _refuse_divergence(sums: Tensor, first_step: int, settings: LangevinSettings) -> None:
    """Raise if the sum of all positions after some step, (num_steps,), is not finite.

    One number that is not finite makes its step's sum so; the sums wait on the device and are looked at once.
    """
    finite = torch.isfinite(sums)
    if bool(finite.all()):
        return
    diverged = first_step + int((~finite).int().argmax()) + 1
    raise DivergedChainError(
        diverged,
        f"a Langevin chain left the finite numbers at step {diverged} of {settings.num_steps} "
        f"(step_size={settings.step_size}, temperature={settings.temperature}): lower the step size, "
        f"or keep the energy smaller (lower its learning rate, clip its gradient, decay its weights)",
    )
