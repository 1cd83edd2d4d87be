"""p(x given z) of a table row: one likelihood per column, independent given z.

A category, or the state of a number (a continuous value, one of its spikes, or missing), is drawn from probabilities; a
continuous value from a mixture of Gaussians over its normal score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from synthsieve.data.dataset import InputSpec
from synthsieve.models.generator import Generator
from synthsieve.models.modalities import Networks, make_array_encoder
from synthsieve.models.networks.layers import in_float32
from synthsieve.models.networks.mlp import MLP
from synthsieve.settings import Activation, ModelSettings

COMPONENTS = 3
SCALE_FLOOR = 0.05  # of a component, in normal scores: frequent values would shrink it to zero
LOWEST_LOGIT = -1e4  # of a slot that a column does not have


@dataclass(frozen=True)
class Parameters:
    """The parameters of p(x given z) for each row; of the mixtures, each is (n, mixtures, COMPONENTS)."""

    log_slots: Tensor  # log-probabilities (n, columns, slots), nearly -inf for slots that a column does not have
    log_weights: Tensor
    means: Tensor
    scales: Tensor


class ColumnsGenerator(Generator):
    """p(x given z) = prod over columns of p(slot given z) p(score given z)^(the slot is a continuous value).

    Columns are padded to one number of slots, so that all are computed at once. Slot 0 of a number with continuous
    values stands for them; its score has a density then, and is fixed in every other slot.

    Args:
        network: z (n, latent_dim) -> columns x slots logits, then 3 x mixtures x COMPONENTS numbers.
        input_spec: of a table: its width, and the block of each column.
    """

    always_draws = True
    slot_input: Tensor
    has_slot: Tensor
    slot_score: Tensor
    shared_slot: Tensor
    shared_depth: Tensor
    number: Tensor
    number_input: Tensor
    mixture: Tensor
    mixture_input: Tensor

    def __init__(self, network: nn.Module, input_spec: InputSpec) -> None:
        super().__init__()
        self.network = network
        (self.width,) = input_spec.shape
        for name, tensor in _index_tensors(input_spec).items():
            self.register_buffer(name, tensor, persistent=False)  # they follow from input_spec: not in checkpoints
        self.columns, self.slots = self.slot_input.shape
        self.mixtures = len(self.mixture)

    def forward(self, z: Tensor) -> Tensor:
        """The mean of p(x given z): probabilities in the slots, expected scores. (n, latent_dim) -> (n, width)."""
        parameters = self._distribution(z)
        scores = (parameters.log_weights.exp() * parameters.means).sum(dim=2)
        return self._assemble(parameters.log_slots.exp(), scores)

    def log_prob(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x given z), normalized over slots and scores, in nats; columns whose slots are all 0 contribute 0.

        (n, width), (n, latent_dim) -> (n,).
        """
        parameters = self._distribution(z)
        slots = self._slots(x)
        total = (slots * parameters.log_slots).sum(dim=(1, 2))
        if self.mixtures:
            normalized = (x[:, self.mixture_input, None] - parameters.means) / parameters.scales
            log_normal = -0.5 * normalized.square() - parameters.scales.log() - 0.5 * math.log(2 * math.pi)
            density = torch.logsumexp(parameters.log_weights + log_normal, dim=2)
            total = total + (slots[:, self.mixture, 0] * density).sum(dim=1)
        return total

    def noise(self, *, rng: torch.Generator) -> Tensor:
        """Uniform numbers in [0, 1): two for each column, two for each mixture."""
        return torch.rand(2 * (self.columns + self.mixtures), generator=rng)

    def sample(self, z: Tensor, noise: Tensor) -> Tensor:
        """A draw of p(x given z), by inverse distribution functions. (n, latent_dim), (n, ...) -> (n, width)."""
        parameters = self._distribution(z)
        of_slot, of_position, of_component, of_score = noise.split([self.columns] * 2 + [self.mixtures] * 2, dim=1)
        slot = _draw_index(parameters.log_slots.exp(), of_slot)
        slots = nn.functional.one_hot(slot, self.slots).to(z)
        slot_value = torch.where(slot == self.shared_slot, 1 - self.shared_depth * of_position, 1.0)
        component = _draw_index(parameters.log_weights.exp(), of_component)[:, :, None]
        normal = torch.special.ndtri(of_score.clamp(1e-6, 1 - 1e-6))
        mean, scale = (values.gather(2, component)[:, :, 0] for values in (parameters.means, parameters.scales))
        return self._assemble(slots, mean + scale * normal, slot_value[:, :, None])

    def _distribution(self, z: Tensor) -> Parameters:
        slots, mixtures = in_float32(self.network(z)).split(
            [self.columns * self.slots, 3 * self.mixtures * COMPONENTS], dim=1
        )
        logits = slots.unflatten(1, (self.columns, self.slots)).masked_fill(~self.has_slot, LOWEST_LOGIT)
        weights, means, scales = mixtures.unflatten(1, (3, self.mixtures, COMPONENTS)).unbind(dim=1)
        scales = SCALE_FLOOR + nn.functional.softplus(scales)
        return Parameters(logits.log_softmax(dim=2), weights.log_softmax(dim=2), means, scales)

    def _slots(self, x: Tensor) -> Tensor:
        """The slot of each cell, one-hot: (n, width) -> (n, columns, slots)."""
        on = nn.functional.pad((x > 0.5).to(x), (0, 1))
        slots = on[:, self.slot_input]
        if self.mixtures:
            slots[:, self.mixture, 0] = 1 - slots[:, self.mixture].sum(dim=2)
        return slots

    def _assemble(self, slots: Tensor, scores: Tensor, slot_value: Tensor | float = 1.0) -> Tensor:
        """Network input from the slots, (n, columns, slots), and the mixtures' scores, (n, mixtures)."""
        x = slots.new_zeros(len(slots), self.width + 1)
        x = x.index_add(1, self.slot_input.flatten(), (slots * slot_value).flatten(1))[:, : self.width]
        if len(self.number):
            expected = (slots * self.slot_score).sum(dim=2)
            expected = expected.index_add(1, self.mixture, slots[:, self.mixture, 0] * scores)
            x = x.index_add(1, self.number_input, expected[:, self.number])
        return x


def _index_tensors(input_spec: InputSpec) -> dict[str, Tensor]:
    """The positions of the columns' slots and scores in the network input.

    slot_input, has_slot, slot_score (columns, slots): the input of each slot, or `width` if the column does not have
    it; whether it has it; the score of that slot. shared_slot, shared_depth (columns,): of rare categories, or -1.
    number, mixture: the columns that have a score, and those with a density for it; *_input: its position.
    """
    (width,), blocks = input_spec.shape, input_spec.details
    inputs = [_slot_inputs(block, absent=width) for block in blocks]
    slots = max(map(len, inputs))
    scores = [[0.0] * bool(block[4]) + list(block[3]) if block[0] == "number" else [] for block in blocks]
    numbers = [i for i, block in enumerate(blocks) if block[0] == "number"]
    mixtures = [i for i in numbers if blocks[i][4]]
    shared = [(block[3], block[4]) if block[0] == "category" else (-1, 0.0) for block in blocks]
    return {
        "slot_input": torch.tensor([row + [width] * (slots - len(row)) for row in inputs]),
        "has_slot": torch.tensor([[slot < len(row) for slot in range(slots)] for row in inputs]),
        "slot_score": torch.tensor([row + [0.0] * (slots - len(row)) for row in scores]),
        "shared_slot": torch.tensor([slot for slot, _ in shared]),
        "shared_depth": torch.tensor([depth for _, depth in shared]),
        "number": torch.tensor(numbers, dtype=torch.int64),
        "number_input": torch.tensor([blocks[i][1] for i in numbers], dtype=torch.int64),
        "mixture": torch.tensor(mixtures, dtype=torch.int64),
        "mixture_input": torch.tensor([blocks[i][1] for i in mixtures], dtype=torch.int64),
    }


def _slot_inputs(block: tuple[Any, ...], *, absent: int) -> list[int]:
    """The input of each slot of a column; the slot of continuous values has none: it is on if no other slot is."""
    kind, start, size, *_ = block
    if kind == "category":
        return list(range(start, start + size))
    return [absent] * bool(block[4]) + list(range(start + 1, start + size))


def _draw_index(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """The index at which the cumulative probability exceeds `uniform`: (n, m, k), (n, m) -> int64 (n, m)."""
    cumulative = probabilities.cumsum(dim=2)
    below = cumulative <= uniform[:, :, None] * cumulative[:, :, -1:]
    return below.sum(dim=2).clamp(max=probabilities.shape[2] - 1)


def make_generator(settings: ModelSettings, input_spec: InputSpec, *, rng: torch.Generator) -> Generator:
    """An MLP of three layers to the parameters of every column."""
    index = _index_tensors(input_spec)
    width, parameters = settings.generator_width, index["slot_input"].numel() + 3 * COMPONENTS * len(index["mixture"])
    sizes = (settings.latent_dim, width, width, parameters)
    return ColumnsGenerator(MLP(sizes, activation=Activation.SILU, rng=rng), input_spec)


NETWORKS = Networks(make_array_encoder, make_generator)
