"""p(x given z) of a row of a table: each column by a likelihood of its own, independent given z.

A category, or which state a number is in (a value of its own or one of its spikes, or missing), is drawn from
probabilities; a number of its own from a mixture of Gaussians over its normal score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from synthsieve.config import Activation, ModelSettings
from synthsieve.layout import Layout
from synthsieve.model.generator import Generator
from synthsieve.model.modalities import Networks, make_array_encoder
from synthsieve.networks.mlp import MLP

COMPONENTS = 3
SCALE_FLOOR = 0.05  # of a component, in normal scores: values many rows share would draw it to nothing
LOWEST_LOGIT = -1e4  # of a slot that a column does not have


@dataclass(frozen=True)
class Parameters:
    """What the network says of each row.

    Attributes:
        log_slots: log-probabilities (n, columns, slots), of the slots a column has not nearly -inf.
        log_weights, means, scales: of the mixtures, each (n, numbers, COMPONENTS).
    """

    log_slots: Tensor
    log_weights: Tensor
    means: Tensor
    scales: Tensor


class ColumnsGenerator(Generator):
    """p(x given z) = prod over columns of p(slot given z) p(score given z)^(the slot is a value of its own).

    Columns are padded to one number of slots, so that all are computed at once. Slot 0 of a number that has values of
    its own is that it is one; its score has a density then, and is fixed in every other slot.

    Args:
        network: z (n, latent_dim) -> columns x slots logits, then 3 x mixtures x COMPONENTS numbers.
        layout: of a table: its width, and the block of each column.
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

    def __init__(self, network: nn.Module, layout: Layout) -> None:
        super().__init__()
        self.network = network
        (self.width,) = layout.shape
        plan = _plan(layout)
        for name, tensor in plan.items():
            self.register_buffer(name, tensor, persistent=False)  # it follows from the layout: not in checkpoints
        self.columns, self.slots = self.slot_input.shape
        self.mixtures = len(self.mixture)

    def forward(self, z: Tensor) -> Tensor:
        """The mean of p(x given z): probabilities in the slots, expected scores. (n, latent_dim) -> (n, width)."""
        said = self._said(z)
        return self._assembled(said.log_slots.exp(), (said.log_weights.exp() * said.means).sum(dim=2))

    def log_prob(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x given z), normalised over slots and scores, in nats; a column whose slots are all 0 says nothing.

        (n, width), (n, latent_dim) -> (n,).
        """
        said = self._said(z)
        taken = self._taken(x)
        total = (taken * said.log_slots).sum(dim=(1, 2))
        if self.mixtures:
            score = x[:, self.mixture_input, None]
            each = (
                -0.5 * ((score - said.means) / said.scales).square() - said.scales.log() - 0.5 * math.log(2 * math.pi)
            )
            density = torch.logsumexp(said.log_weights + each, dim=2)
            total = total + (taken[:, self.mixture, 0] * density).sum(dim=1)
        return total

    def noise(self, *, generator: torch.Generator) -> Tensor:
        """Even numbers in [0, 1): two for each column, two for each mixture."""
        return torch.rand(2 * (self.columns + self.mixtures), generator=generator)

    def sample(self, z: Tensor, noise: Tensor) -> Tensor:
        """A draw of p(x given z), by inverse distribution functions. (n, latent_dim), (n, ...) -> (n, width)."""
        said = self._said(z)
        of_slot, of_position, of_component, of_score = noise.split([self.columns] * 2 + [self.mixtures] * 2, dim=1)
        chosen = _drawn(said.log_slots.exp(), of_slot)
        taken = nn.functional.one_hot(chosen, self.slots).to(z)
        nearness = torch.where(chosen == self.shared_slot, 1 - self.shared_depth * of_position, 1.0)
        component = _drawn(said.log_weights.exp(), of_component)[:, :, None]
        normal = torch.special.ndtri(of_score.clamp(1e-6, 1 - 1e-6))
        scores = said.means.gather(2, component)[:, :, 0] + said.scales.gather(2, component)[:, :, 0] * normal
        return self._assembled(taken, scores, nearness[:, :, None])

    def _said(self, z: Tensor) -> Parameters:
        slots, mixtures = self.network(z).split([self.columns * self.slots, 3 * self.mixtures * COMPONENTS], dim=1)
        logits = slots.unflatten(1, (self.columns, self.slots)).masked_fill(~self.has_slot, LOWEST_LOGIT)
        weights, means, scales = mixtures.unflatten(1, (3, self.mixtures, COMPONENTS)).unbind(dim=1)
        return Parameters(
            logits.log_softmax(dim=2),
            weights.log_softmax(dim=2),
            means,
            SCALE_FLOOR + nn.functional.softplus(scales),
        )

    def _taken(self, x: Tensor) -> Tensor:
        """Which slot each cell is in, ones and zeros: (n, width) -> (n, columns, slots)."""
        on = nn.functional.pad((x > 0.5).to(x), (0, 1))
        taken = on[:, self.slot_input]
        if self.mixtures:
            own = 1 - taken[:, self.mixture].sum(dim=2)
            taken[:, self.mixture, 0] = own
        return taken

    def _assembled(self, slots: Tensor, scores: Tensor, nearness: Tensor | float = 1.0) -> Tensor:
        """Network input from what the slots hold, (n, columns, slots), and the mixtures' scores, (n, mixtures)."""
        x = slots.new_zeros(len(slots), self.width + 1)
        x = x.index_add(1, self.slot_input.flatten(), (slots * nearness).flatten(1))[:, : self.width]
        if len(self.number):
            expected = (slots * self.slot_score).sum(dim=2)
            expected = expected.index_add(1, self.mixture, slots[:, self.mixture, 0] * scores)
            x = x.index_add(1, self.number_input, expected[:, self.number])
        return x


def _plan(layout: Layout) -> dict[str, Tensor]:
    """Where the columns' slots and scores lie in a network's input.

    slot_input, has_slot, slot_score (columns, slots): the input of each slot, the one behind the last if it has none;
    whether the column has that slot; the score that goes with it. shared_slot, shared_depth (columns,): that of rare
    categories, or -1. number, mixture: the columns that have a score, and a density for it; *_input: where it lies.
    """
    (width,), blocks = layout.shape, layout.details
    inputs = [_slot_inputs(block, behind=width) for block in blocks]
    slots = max(map(len, inputs))
    scores = [[0.0] * bool(block[4]) + list(block[3]) if block[0] == "number" else [] for block in blocks]
    numbers = [i for i, block in enumerate(blocks) if block[0] == "number"]
    mixtures = [i for i in numbers if blocks[i][4]]
    shared = [(block[3], block[4]) if block[0] == "category" else (-1, 0.0) for block in blocks]
    return {
        "slot_input": torch.tensor([mine + [width] * (slots - len(mine)) for mine in inputs]),
        "has_slot": torch.tensor([[slot < len(mine) for slot in range(slots)] for mine in inputs]),
        "slot_score": torch.tensor([mine + [0.0] * (slots - len(mine)) for mine in scores]),
        "shared_slot": torch.tensor([slot for slot, _ in shared]),
        "shared_depth": torch.tensor([depth for _, depth in shared]),
        "number": torch.tensor(numbers, dtype=torch.int64),
        "number_input": torch.tensor([blocks[i][1] for i in numbers], dtype=torch.int64),
        "mixture": torch.tensor(mixtures, dtype=torch.int64),
        "mixture_input": torch.tensor([blocks[i][1] for i in mixtures], dtype=torch.int64),
    }


def _slot_inputs(block: tuple[Any, ...], *, behind: int) -> list[int]:
    """The input of each slot of a column; that a number is a value of its own shows by no other slot being on."""
    kind, start, size, *_ = block
    if kind == "category":
        return list(range(start, start + size))
    return [behind] * bool(block[4]) + list(range(start + 1, start + size))


def _drawn(probabilities: Tensor, even: Tensor) -> Tensor:
    """The index at which the cumulative probability passes `even`: (n, m, k), (n, m) -> int64 (n, m)."""
    passed = probabilities.cumsum(dim=2)
    return (passed <= even[:, :, None] * passed[:, :, -1:]).sum(dim=2).clamp(max=probabilities.shape[2] - 1)


def make_generator(settings: ModelSettings, layout: Layout, *, generator: torch.Generator) -> Generator:
    """An MLP of three layers to the parameters of every column."""
    plan = _plan(layout)
    width, parameters = settings.generator_width, plan["slot_input"].numel() + 3 * COMPONENTS * len(plan["mixture"])
    sizes = (settings.latent_dim, width, width, parameters)
    return ColumnsGenerator(MLP(sizes, activation=Activation.SILU, generator=generator), layout)


NETWORKS = Networks(make_array_encoder, make_generator)
