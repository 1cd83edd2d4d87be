"""All that a training step reads and changes: the networks, their optimisers, the generators, the step count."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from synthsieve.config import GradientThrough, LearningSettings, Schedule, Settings
from synthsieve.errors import ConfigError, NonFiniteLossError
from synthsieve.layout import Layout
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.networks.layers import attach_generator
from synthsieve.randomness import torch_stream
from synthsieve.sharing import shared
from synthsieve.together import ALONE, Together

CPU = torch.device("cpu")
STREAMS = ("posterior", "chains", "dropout", "smoothness", "implicit")


@dataclass
class Learner:
    """A model that learns.

    Attributes:
        settings: everything that decides the run.
        model: the networks that are trained.
        averaged: their exponential moving average, used for prediction.
        optimisers: one for each update of Algorithm 1: `prior` (step 4), `elbo` (step 5), `labels` (steps 6 and 8).
        generators: one for each name in `STREAMS`.
        data: the hash of the data and split it learns from; a checkpoint of other data is refused.
        step: updates done so far.
        terms: what the step that was last taken measured.
        together: the processes that train this model, each with its share of every batch.
        door: what losses pass through on their way to `backward`.
    """

    settings: Settings
    model: GenerativeClassifier
    averaged: GenerativeClassifier
    optimisers: dict[str, torch.optim.Optimizer]
    generators: dict[str, torch.Generator]
    data: str
    step: int = 0
    terms: dict[str, float] = field(default_factory=dict)
    together: Together = ALONE
    door: Callable[[Tensor], Tensor] = field(init=False)

    def __post_init__(self) -> None:
        self.door = self.together.door(self.model)

    @classmethod
    def create(
        cls,
        settings: Settings,
        layout: Layout | tuple[int, ...],
        num_classes: int,
        *,
        data: str,
        together: Together = ALONE,
        device: torch.device = CPU,
    ) -> Learner:
        """A learner before its first step; the same settings give the same weights."""
        model = GenerativeClassifier(
            settings.model, layout, num_classes, generator=torch_stream(settings.seed, "initial weights")
        )
        _check_gradient(settings, model)
        model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]  # a fifth quicker on CPUs
        averaged = copy.deepcopy(model).requires_grad_(False).eval()
        generators = {name: shared(torch_stream(settings.seed, name), together.share) for name in STREAMS}
        attach_generator(model, generators["dropout"])
        optimisers = _optimisers(model, settings.learning)
        return cls(settings, model, averaged, optimisers, generators, data, together=together)

    def update(self, name: str, loss: Tensor, **terms: Tensor) -> None:
        """One step of optimiser `name` down `loss`; `terms` are noted for the history.

        A term that is not finite stops the run before any weight is touched.
        """
        measured = {**terms, name: loss}
        numbers = self.together.mean(torch.stack([value.detach().double() for value in measured.values()]))
        for term, number in zip(measured, numbers.cpu().tolist(), strict=True):
            if not math.isfinite(number):
                raise non_finite(self.step + 1, term, number)
            self.terms[term] = number
        optimiser = self.optimisers[name]
        for group in optimiser.param_groups:
            group["lr"] = group["base_lr"] * rate_at(self.step, self.settings)
        optimiser.zero_grad(set_to_none=True)
        self.door(loss).backward()
        limit = self.settings.learning.clip_gradient
        if limit is not None:
            nn.utils.clip_grad_norm_([p for group in optimiser.param_groups for p in group["params"]], limit)
        optimiser.step()

    @torch.no_grad()
    def average(self) -> None:
        """Move the averaged weights toward the weights: slowly late, quickly in the first steps."""
        first_phase = self.step <= self.settings.learning.steps
        decay = self.settings.learning.ema_decay if first_phase else self.settings.augmentation.ema_decay
        decay = min(decay, (1 + self.step) / (10 + self.step))
        torch._foreach_lerp_(_floats(self.averaged), _floats(self.model), 1 - decay)


def _check_gradient(settings: Settings, model: GenerativeClassifier) -> None:
    """Refuse a gradient through x where x passes none on."""
    implicit = settings.implicit
    if implicit.enabled and implicit.gradient is not GradientThrough.NOTHING and not model.generator.differentiable:
        raise ConfigError(
            f"implicit.gradient={implicit.gradient.value} needs a generator whose x has a gradient, but that of "
            f"{model.layout.kind} has none: set it to nothing"
        )


def non_finite(step: int, term: str, number: float) -> NonFiniteLossError:
    """The error for a term that is no longer a finite number."""
    return NonFiniteLossError(
        step,
        term,
        f"the term {term!r} became {number} at step {step}: lower the learning rates (learning.label_learning_rate, "
        f"learning.elbo_learning_rate, learning.prior_learning_rate), set learning.clip_gradient, or raise "
        f"learning.logit_penalty; the last good checkpoint is kept",
    )


def rate_at(step: int, settings: Settings) -> float:
    """The learning rate's factor at `step`: up a line over `warmup` steps, then level, or down a cosine to 1/20.

    The steps after `learning.steps` begin again at `augmentation.learning_rate` and have a cosine of their own.
    """
    learning, augmentation = settings.learning, settings.augmentation
    if step < learning.steps:
        top = min(1.0, (step + 1) / (learning.warmup + 1))
        done = max(0.0, step - learning.warmup) / max(1, learning.steps - learning.warmup)
    else:
        top = augmentation.learning_rate
        done = (step - learning.steps) / max(1, augmentation.steps)
    if learning.schedule is Schedule.CONSTANT:
        return top
    return top * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))


def ramp_at(step: int, over: int) -> float:
    """The share of an unlabelled term at `step`: from 0 up a line to 1 after `over` steps.

    At full weight from the start, smoothness keeps predictions flat, and mutual information hardens first mistakes.
    """
    return min(1.0, step / over)


def _optimisers(model: GenerativeClassifier, settings: LearningSettings) -> dict[str, torch.optim.Optimizer]:
    """One Adam for each update, each with state of its own (method, section 5).

    Adam cancels a factor on its whole loss, so the ELBO's weight is a factor on the learning rates of steps 4 and 5.
    Weight decay belongs to the labels' update alone: it is there that few examples meet many weights.
    """
    energy, encoder = list(model.energy.parameters()), list(model.encoder.parameters())
    generator = list(model.generator.parameters())
    return {
        "prior": _adam(energy, settings.elbo_weight * settings.prior_learning_rate),
        "elbo": _adam(
            [*encoder, *generator], settings.elbo_weight * settings.elbo_learning_rate, momentum=settings.elbo_momentum
        ),
        # The generator is touched by it only where the implicit form gives it a gradient.
        "labels": _adam([*energy, *encoder, *generator], settings.label_learning_rate, decay=settings.weight_decay),
    }


def _adam(
    parameters: list[nn.Parameter], rate: float, *, momentum: float = 0.9, decay: float = 0.0
) -> torch.optim.Optimizer:
    # Fused where torch has it: a quarter of the time on CPUs.
    way = "fused" if parameters[0].device.type in ("cpu", "cuda") else "foreach"
    optimiser = torch.optim.AdamW(parameters, lr=rate, betas=(momentum, 0.999), weight_decay=decay, **{way: True})
    for group in optimiser.param_groups:
        group["base_lr"] = rate
    return optimiser


def restore_optimiser(optimiser: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """`optimiser.load_state_dict(state)`, each moment laid out in memory as its weights are: a fused step reads them
    side by side, whatever their strides say."""
    optimiser.load_state_dict(state)
    for weight, values in optimiser.state.items():
        for name, value in values.items():
            if value.shape == weight.shape:
                values[name] = torch.empty_like(weight, requires_grad=False).copy_(value)


def _floats(module: nn.Module) -> list[Tensor]:
    """Its weights and statistics, in order."""
    both = (*module.parameters(), *module.buffers())
    return [value for value in both if value.dtype.is_floating_point]
