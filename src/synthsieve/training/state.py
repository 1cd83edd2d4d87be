"""All that a training step reads and changes: networks, optimisers, random generators, the step count."""

from __future__ import annotations

import copy
import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from synthsieve.data.dataset import InputSpec, Kind
from synthsieve.errors import ConfigError, NonFiniteLossError
from synthsieve.io.precision import require_bfloat16
from synthsieve.io.random_streams import torch_stream
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.networks.layers import attach_rng
from synthsieve.settings import DrawFrom, GradientThrough, Precision, Schedule, Settings, TrainingSettings
from synthsieve.training.parallel import SINGLE_PROCESS, ProcessGroup, shard_rng

CPU = torch.device("cpu")
STREAMS = ("posterior", "chains", "dropout", "smoothness", "implicit", "anchored", "shift")


@dataclass
class TrainState:
    """A model in training.

    Attributes:
        averaged: the exponential moving average of the networks, used for prediction.
        optimisers: one for each update of Algorithm 1: `prior` (step 4), `elbo` (step 5), `labels` (steps 6 and 8).
        rngs: a random generator for each name in `STREAMS`.
        data_hash: identifies data and split; a checkpoint of other data is refused.
        metrics: what the last step measured.
        group: the processes that train this model, each with its rows of every batch.
    """

    settings: Settings
    model: GenerativeClassifier
    averaged: GenerativeClassifier
    optimisers: dict[str, torch.optim.Optimizer]
    rngs: dict[str, torch.Generator]
    data_hash: str
    step: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    group: ProcessGroup = SINGLE_PROCESS

    def __post_init__(self) -> None:
        attach_rng(self.model, self.rngs["dropout"])
        self.group.check_model(self.model)

    def update(self, name: str, loss: Tensor, **metrics: Tensor) -> None:
        """One step of optimiser `name` down `loss`; `metrics` are recorded for the history.

        A number that is not finite stops the run before any weight is changed.
        """
        measured = {**metrics, name: loss}
        numbers = self.group.mean(torch.stack([value.detach() for value in measured.values()]).cpu().double())
        for metric, number in zip(measured, numbers.tolist(), strict=True):
            if not math.isfinite(number):
                raise non_finite(self.step + 1, metric, number)
            self.metrics[metric] = number
        optimiser = self.optimisers[name]
        for group in optimiser.param_groups:
            group["lr"] = group["base_lr"] * rate_at(self.step, self.settings)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
        self.group.average_gradients(parameters)
        limit = self.settings.training.clip_gradient
        if limit is not None:
            nn.utils.clip_grad_norm_(parameters, limit)
        optimiser.step()

    def autocast(self) -> AbstractContextManager[Any]:
        """The context of network passes, by `training.precision`.

        Without the cache of weights: they change within a step, and passes with and without gradient alternate.
        """
        if self.settings.training.precision is Precision.FLOAT32:
            return nullcontext()
        return torch.autocast(self.model.device.type, dtype=torch.bfloat16, cache_enabled=False)

    @property
    def label_steps(self) -> int:
        """Steps that the label tower has been trained for."""
        first = self.settings.augment_from_step if self.settings.augmentation.reinitialise else 0
        return self.step - first if self.step >= first else self.step

    def reinitialise(self) -> None:
        """New initial weights of the label tower (or the only tower) and of F, averaged too; optimisers start over."""
        new = build_networks(
            self.settings, self.model.input_spec, self.model.num_classes, stream=f"initial weights/{self.step}"
        )
        for model in (self.model, self.averaged):
            model.energy.load_state_dict(new.energy.state_dict())
            model.encoder.classifying_tower.load_state_dict(new.encoder.classifying_tower.state_dict())
        self.optimisers = _optimisers(self.model, self.settings.training)

    @torch.no_grad()
    def average(self) -> None:
        """Move the averaged weights toward the weights: slowly late, quickly in the first steps."""
        pretraining = self.step <= self.settings.training.steps
        decay = self.settings.training.ema_decay if pretraining else self.settings.augmentation.ema_decay
        decay = min(decay, (1 + self.step) / (10 + self.step))
        averaged, weights = (
            [value for value in (*module.parameters(), *module.buffers()) if value.dtype.is_floating_point]
            for module in (self.averaged, self.model)
        )
        torch._foreach_lerp_(averaged, weights, 1 - decay)

    def fork(self, settings: Settings | None = None, *, fresh_rngs: bool = False) -> TrainState:
        """A copy in a single process that leaves this one unchanged, perhaps with other settings.

        With `fresh_rngs` its random generators start again.
        """
        settings = settings or self.settings
        shared = {id(rng): rng for rng in self.rngs.values()}  # dropout holds one: it is replaced, not copied
        model = copy.deepcopy(self.model, shared)
        forked = _state(model, copy.deepcopy(self.averaged), settings, self.data_hash, SINGLE_PROCESS)
        for name, optimiser in self.optimisers.items():
            restore_optimiser(forked.optimisers[name], copy.deepcopy(optimiser.state_dict()))
        if not fresh_rngs:
            for name, rng in self.rngs.items():
                forked.rngs[name].set_state(rng.get_state())
        forked.step = self.step
        return forked


def init(
    settings: Settings,
    input_spec: InputSpec | tuple[int, ...],
    num_classes: int,
    *,
    data_hash: str,
    group: ProcessGroup = SINGLE_PROCESS,
    device: torch.device = CPU,
) -> TrainState:
    """The state before the first step; the same settings give the same weights."""
    model = build_networks(settings, input_spec, num_classes)
    check_precision(settings, device, faster=False)  # a worker beside others cannot measure the time
    model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]  # a fifth faster on CPUs
    averaged = copy.deepcopy(model).requires_grad_(False).eval()
    return _state(model, averaged, settings, data_hash, group)


def build_networks(
    settings: Settings,
    input_spec: InputSpec | tuple[int, ...],
    num_classes: int,
    *,
    stream: str = "initial weights",
) -> GenerativeClassifier:
    """The networks with their initial weights; a ConfigError where the settings do not fit the data."""
    rng = torch_stream(settings.seed, stream)
    model = GenerativeClassifier(settings.model, input_spec, num_classes, rng=rng)
    implicit, augmentation = settings.implicit, settings.augmentation
    if augmentation.draw_from is DrawFrom.STYLE_SWAP and model.encoder.label_tower is None:
        raise ConfigError(
            "augmentation.draw_from=style-swap needs label latents and style latents, but there is one tower: set "
            "model.label_latent_dim, or use within-class",
            code="one-tower",
        )
    if augmentation.draw_from is not DrawFrom.PRIOR and augmentation.residual and not model.generator.differentiable:
        raise ConfigError(
            f"augmentation.residual adds what the generator cannot draw to its x, but {model.input_spec.kind} has no "
            "numbers to add: set it to false",
            code="no-residual",
        )
    if implicit.enabled and implicit.gradient is not GradientThrough.NOTHING and not model.generator.differentiable:
        raise ConfigError(
            f"implicit.gradient={implicit.gradient.value} needs a generator whose x has a gradient, but that of "
            f"{model.input_spec.kind} has none: set it to nothing",
            code="no-gradient",
        )
    if settings.training.shift and len(model.input_spec.shape) != 3:
        message = f"training.shift moves images, and these data are {model.input_spec.kind}: set it to 0"
        raise ConfigError(message, code="no-shift")
    if settings.training.precision is Precision.BFLOAT16 and model.input_spec.kind == Kind.TEXT:
        message = "training.precision=bfloat16 is not for text, whose words are drawn one by one: set it to float32"
        raise ConfigError(message, code="no-bfloat16")
    return model


def check_networks(settings: Settings, input_spec: InputSpec, num_classes: int) -> None:
    """Raise what `build_networks` would, without memory for weights."""
    with torch.device("meta"):
        build_networks(settings, input_spec, num_classes)


def check_precision(settings: Settings, device: torch.device, *, faster: bool = True) -> None:
    """Refuse mixed precision that is wrong, or not `faster`, on the device."""
    if settings.training.precision is Precision.BFLOAT16:
        require_bfloat16(device, faster=faster)


def _state(
    model: GenerativeClassifier, averaged: GenerativeClassifier, settings: Settings, data_hash: str, group: ProcessGroup
) -> TrainState:
    rngs = {name: shard_rng(torch_stream(settings.seed, name), group) for name in STREAMS}
    return TrainState(settings, model, averaged, _optimisers(model, settings.training), rngs, data_hash, group=group)


def non_finite(step: int, metric: str, number: float) -> NonFiniteLossError:
    """The error for a metric that is not a finite number."""
    return NonFiniteLossError(
        step,
        metric,
        f"{metric!r} became {number} at step {step}: lower the learning rates (training.label_learning_rate, "
        f"training.elbo_learning_rate, training.prior_learning_rate), set training.clip_gradient, or raise "
        f"training.logit_penalty; the last good checkpoint is kept",
    )


def rate_at(step: int, settings: Settings) -> float:
    """The learning rate's factor at `step`: up a line over `warmup` steps, then level, or down a cosine to 1/20.

    The steps after `training.steps` start again at `augmentation.learning_rate`, with another cosine; a new label tower
    has the warm-up, too.
    """
    training, augmentation = settings.training, settings.augmentation
    if step < training.steps:
        top = min(1.0, (step + 1) / (training.warmup + 1))
        done = max(0.0, step - training.warmup) / max(1, training.steps - training.warmup)
    else:
        since = step - training.steps
        top = augmentation.learning_rate
        if augmentation.reinitialise:
            top *= min(1.0, (since + 1) / (training.warmup + 1))
        done = since / max(1, augmentation.steps)
    if training.schedule is Schedule.CONSTANT:
        return top
    return top * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))


def ramp_at(step: int, over: int) -> float:
    """The share of an unlabelled term at `step`: from 0 up a line to 1 after `over` steps.

    At full weight from the start, smoothness keeps predictions flat, and mutual information hardens first mistakes.
    """
    return min(1.0, step / over)


def _optimisers(model: GenerativeClassifier, settings: TrainingSettings) -> dict[str, torch.optim.Optimizer]:
    """One Adam for each update, each with its own state (method, section 5).

    Adam cancels a factor on its whole loss, so the ELBO's weight is a factor on the learning rates of steps 4 and 5.
    Weight decay belongs to the labels' update alone: it is there that few examples meet many weights.
    """
    energy, encoder, generator = (list(part.parameters()) for part in (model.energy, model.encoder, model.generator))
    prior_rate, elbo_rate = settings.prior_learning_rate, settings.elbo_learning_rate
    return {
        "prior": adam(energy, settings.elbo_weight * prior_rate),
        "elbo": adam([*encoder, *generator], settings.elbo_weight * elbo_rate, momentum=settings.elbo_momentum),
        # The generator is touched by it only where the implicit form gives it a gradient.
        "labels": adam([*energy, *encoder, *generator], settings.label_learning_rate, decay=settings.weight_decay),
    }


def adam(
    parameters: list[nn.Parameter], rate: float, *, momentum: float = 0.9, decay: float = 0.0
) -> torch.optim.Optimizer:
    """AdamW, fused where torch has it (a quarter of the time on CPUs); schedules multiply `base_lr` of its groups."""
    way = "fused" if parameters[0].device.type in ("cpu", "cuda") else "foreach"
    optimiser = torch.optim.AdamW(parameters, lr=rate, betas=(momentum, 0.999), weight_decay=decay, **{way: True})
    for group in optimiser.param_groups:
        group["base_lr"] = rate
    return optimiser


def restore_optimiser(optimiser: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Load `state`, each moment laid out in memory as its weights are: a fused step reads them side by side."""
    optimiser.load_state_dict(state)
    for weight, values in optimiser.state.items():
        for name, value in values.items():
            if value.shape == weight.shape:
                values[name] = torch.empty_like(weight, requires_grad=False).copy_(value)
