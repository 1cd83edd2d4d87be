"""What the methods of the benchmark share: the protocol `init`, `step`, `predict_logits`, and the parts to build from.

Every method gets the same batches, the same classifier network (the encoder of the settings and F at the mean of its
output), the same optimiser with the same schedule, the same averaged weights for prediction, and the same compute.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from synthsieve.data.dataset import InputSpec, Kind
from synthsieve.errors import NonFiniteLossError
from synthsieve.experiments.arms import label_tower_only
from synthsieve.io.random_streams import torch_stream
from synthsieve.io.tensors import named_tensors, tensors_under
from synthsieve.models.encoder import Encoder
from synthsieve.models.energy import Energy
from synthsieve.models.generator import Generator
from synthsieve.models.networks.layers import attach_rng
from synthsieve.models.networks.mlp import MLP
from synthsieve.models.registry import networks_of
from synthsieve.settings import Activation, ModelSettings, Settings
from synthsieve.training import objectives
from synthsieve.training.data import TrainingData
from synthsieve.training.state import CPU, adam, restore_optimiser
from synthsieve.training.step import Batch

TRIALS = 3  # hyperparameters tried for every method
WARM_UP = 0.05  # the share of the budget over which the learning rate rises
CONTINUOUS = (Kind.IMAGE, Kind.VECTOR, Kind.SOUND)


@dataclass(frozen=True)
class BenchmarkTask:
    """What a method is trained on; the same for all methods."""

    data: TrainingData
    settings: Settings  # of our model for these data; the seed is in it
    share: float = 1.0  # the budget, as a multiple of the compute of our own training
    device: torch.device = CPU

    @property
    def input_spec(self) -> InputSpec:
        return self.data.encoding.input_spec

    @property
    def num_classes(self) -> int:
        return len(self.data.split.classes)

    @property
    def model(self) -> ModelSettings:
        """The classifier network: of two towers only that of the labels (decision 0802)."""
        return label_tower_only(self.settings.model)


class Classifier(nn.Module):
    """The network that every method shares: x -> encoder -> F, as x -> mean of q(z given x) -> F in our model."""

    def __init__(self, task: BenchmarkTask, *, rng: torch.Generator) -> None:
        super().__init__()
        model = task.model
        self.encoder = Encoder(model, task.input_spec, rng=rng)
        hidden = [model.energy_width] * (model.energy_layers - 1)
        activation = model.energy_activation
        self.energy = Energy.mlp(model.latent_dim, task.num_classes, hidden=hidden, activation=activation, rng=rng)

    def features(self, x: Tensor) -> Tensor:
        """The output of the encoder. (n, *shape), or embedded x -> (n, latent_dim)."""
        mean: Tensor = self.encoder(x).mean
        return mean

    def forward(self, x: Tensor) -> Tensor:
        """Class logits. (n, *shape), or embedded x -> (n, num_classes)."""
        return self.energy.class_logits(self.features(x))

    def of_embedded(self, embedded: Tensor) -> Tensor:
        """Class logits of x after `encoder.embed`. (n, *) -> (n, num_classes)."""
        style = embedded.new_zeros(len(embedded), self.encoder.label_latent_dim + self.encoder.style_latent_dim)
        return self.energy.class_logits(self.encoder.with_style_of(embedded, style))


class BenchmarkMethod(ABC):
    """One method in training. A method says in `init` what it consists of, in `step` how it learns from a batch.

    Modules, `optimisers`, `rngs` and `memory` are all its state: `tensors` and `restore` store and continue it.
    """

    name: ClassVar[str]
    cites: ClassVar[str]  # the publication
    grid: ClassVar[tuple[dict[str, float], ...]]  # the arguments of `init` that are tried, the default first
    continuous_only: ClassVar[bool] = False  # for methods that move or generate x by gradients
    network: Any  # a `Classifier`, but for methods that cannot use it
    averaged: Any

    def __init__(self, task: BenchmarkTask, **parameters: float) -> None:
        self.task = task
        self.steps = 0
        self.done = 0.0  # the share of the budget that is spent; set by who trains
        streams = ("weights", "dropout", "noise")
        self.rngs = {name: torch_stream(task.settings.seed, f"benchmark/{name}") for name in streams}
        self.optimisers: dict[str, torch.optim.Optimizer] = {}
        self.memory: dict[str, Tensor] = {}
        self.init(**parameters)

    @classmethod
    def refuses(cls, input_spec: InputSpec) -> str | None:
        """Why the method does not apply to such data; None where it does."""
        if cls.continuous_only and input_spec.kind not in CONTINUOUS:
            return f"it needs x of continuous numbers, which those of {input_spec.kind} are not"
        return None

    @abstractmethod
    def init(self, *args: Any, **parameters: Any) -> None:
        """Build everything; the parameters are those of `grid`."""

    def build_classifier(self, rate: float = 1.0) -> None:
        """The classifier network, its average, and its optimiser; `rate` is a factor on the learning rate."""
        self.network = Classifier(self.task, rng=self.rngs["weights"])
        self.network.to(self.task.device, memory_format=torch.channels_last)
        attach_rng(self.network, self.rngs["dropout"])
        self.averaged = copy.deepcopy(self.network, {id(self.rngs["dropout"]): self.rngs["dropout"]})
        self.averaged.requires_grad_(False).eval()
        self.optimise("classifier", self.network.parameters(), rate=rate)

    @abstractmethod
    def step(self, batch: Batch) -> None:
        """Learn from one batch."""

    def predict_logits(self, x: Tensor) -> Tensor:
        """The logits of each class, by the averaged weights. (n, *shape) -> (n, num_classes)."""
        logits: Tensor = self.averaged(x)
        return logits

    @property
    def phase(self) -> str:
        """Names what the next step computes: steps of one phase cost the same."""
        return ""

    @property
    def ready(self) -> bool:
        """Whether its predictions count yet."""
        return True

    def advance(self, batch: Batch) -> None:
        """One step, at the point where the share `done` of the budget is spent."""
        for module in self.modules():
            module.train(module is not getattr(self, "averaged", None))
        self.step(batch if len(batch.unlabeled_x) else self.without_unlabeled(batch))
        self.steps += 1
        self.average()

    def without_unlabeled(self, batch: Batch) -> Batch:
        """The batch of data without unlabelled rows: the labelled x stand for them."""
        return replace(batch, unlabeled_x=batch.labeled_x)

    # What methods are built from.

    def optimise(
        self, name: str, parameters: Iterable[nn.Parameter], *, rate: float = 1.0, momentum: float = 0.9
    ) -> None:
        """Adam with the learning rate and the weight decay of the settings."""
        settings = self.task.settings.training
        rate, decay = rate * settings.label_learning_rate, settings.weight_decay
        self.optimisers[name] = adam(list(parameters), rate, momentum=momentum, decay=decay)

    def descend(self, loss: Tensor, name: str = "classifier") -> None:
        """One step of optimiser `name` down `loss`; only its own weights get a gradient."""
        if not math.isfinite(loss.item()):
            message = f"the loss of {self.name} became {loss.item()} at step {self.steps + 1}"
            raise NonFiniteLossError(self.steps + 1, name, message)
        optimiser = self.optimisers[name]
        weights = [weight for group in optimiser.param_groups for weight in group["params"]]
        for weight, gradient in zip(weights, torch.autograd.grad(loss, weights, allow_unused=True), strict=True):
            weight.grad = gradient
        for group in optimiser.param_groups:
            group["lr"] = group["base_lr"] * self.rate_at(self.done)
        limit = self.task.settings.training.clip_gradient
        if limit is not None:
            nn.utils.clip_grad_norm_(weights, limit)
        optimiser.step()

    def rate_at(self, done: float) -> float:
        """The factor on learning rates: a short warm-up, then a cosine down to a twentieth."""
        return min(1.0, (done + 1e-3) / WARM_UP) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))

    def ramp(self, until: float, start: float = 0.0) -> float:
        """Rises from 0 to 1 in a line while the spent share of the budget goes from `start` to `until`."""
        return min(1.0, max(0.0, (self.done - start) / (until - start)))

    def sigmoid_ramp(self, until: float) -> float:
        """exp(-5 (1 - t)^2), t from 0 to 1 (Laine and Aila 2017)."""
        return math.exp(-5 * (1 - self.ramp(until)) ** 2)

    def embed(self, x: Tensor) -> Tensor:
        """x as continuous numbers, which the network takes too: x itself but for text."""
        return x if x.is_floating_point() else self.network.encoder.embed(x)

    def logits(self, *parts: Tensor) -> tuple[Tensor, ...]:
        """Logits of several batches in one pass, so that a batch norm sees all of them."""
        return self.network(torch.cat(parts)).split([len(part) for part in parts])

    def cross_entropy(self, logits: Tensor, batch: Batch) -> Tensor:
        """Of the labelled examples of the batch."""
        return objectives.cross_entropy(logits, batch.labeled_y, batch.labeled_weights)

    def mlp(self, *sizes: int) -> MLP:
        """Fully connected layers."""
        return MLP(sizes, activation=Activation.SILU, rng=self.rngs["weights"]).to(self.task.device)

    def generator(self, latent_dim: int) -> Generator:
        """p(x given z), the generator network of the settings for another number of latents."""
        settings = self.task.settings.model.model_copy(update={"latent_dim": latent_dim})
        network = networks_of(self.task.input_spec).make_generator(
            settings, self.task.input_spec, rng=self.rngs["weights"]
        )
        attach_rng(network, self.rngs["dropout"])
        return network.to(self.task.device)

    def one_hot(self, y: Tensor) -> Tensor:
        return nn.functional.one_hot(y, self.task.num_classes).float()

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers."""
        return torch.randn(shape, generator=self.rngs["noise"]).to(self.task.device)

    def random_classes(self, count: int) -> Tensor:
        """Classes drawn uniformly: int64 (count,)."""
        return torch.randint(self.task.num_classes, (count,), generator=self.rngs["noise"]).to(self.task.device)

    @torch.no_grad()
    def average(self) -> None:
        """Move the averaged weights toward the weights."""
        decay = min(self.task.settings.training.ema_decay, (1 + self.steps) / (10 + self.steps))
        averaged, weights = (
            [value for value in (*module.parameters(), *module.buffers()) if value.dtype.is_floating_point]
            for module in (self.averaged, self.network)
        )
        torch._foreach_lerp_(averaged, weights, 1 - decay)

    # What prediction and checkpoints need.

    def modules(self) -> list[nn.Module]:
        return [value for value in vars(self).values() if isinstance(value, nn.Module)]

    def eval(self) -> None:
        for module in self.modules():
            module.eval()

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one example."""
        return self.task.input_spec.shape

    def to_tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.task.device)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that changes in training, by name."""
        found = named_tensors("rng", {name: rng.get_state() for name, rng in self.rngs.items()})
        found |= named_tensors("memory", self.memory)
        for name, value in vars(self).items():
            if isinstance(value, nn.Module):
                found |= named_tensors(f"module/{name}", value.state_dict())
        for name, optimiser in self.optimisers.items():
            for index, moments in optimiser.state_dict()["state"].items():
                found |= named_tensors(f"optimiser/{name}/{index}", moments)
        return found

    def restore(self, tensors: Mapping[str, Tensor], steps: int) -> None:
        """Continue where `tensors` were taken."""
        self.steps = steps
        self.memory = {name: kept.to(self.task.device) for name, kept in tensors_under("memory", tensors).items()}
        for name, rng_state in tensors_under("rng", tensors).items():
            self.rngs[name].set_state(rng_state)
        for name, value in vars(self).items():
            if isinstance(value, nn.Module):
                value.load_state_dict(tensors_under(f"module/{name}", tensors))
        for name, optimiser in self.optimisers.items():
            moments: dict[int, dict[str, Any]] = {}
            for key, tensor in tensors_under(f"optimiser/{name}", tensors).items():
                index, _, field = key.partition("/")
                moments.setdefault(int(index), {})[field] = tensor
            restore_optimiser(optimiser, {**optimiser.state_dict(), "state": moments})


def entropy(logits: Tensor) -> Tensor:
    """Mean entropy of the predictions, in nats."""
    log_p = logits.log_softmax(dim=1)
    return -(log_p.exp() * log_p).sum(dim=1).mean()
