"""Rows shared out among processes that train together: each has every size-th row of a batch, and of its noise.

All processes hold the same generators in the same state and draw for the whole batch; each then keeps its own rows. So
the number of processes changes nothing but the last bits of sums: not the noise, not the checkpoint, not the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

Rows = TypeVar("Rows")


@dataclass(frozen=True)
class Share:
    """Which rows are this process's: `rank`, `rank + size`, `rank + 2 size`, ...

    Batches laid end to end stay aligned that way, as long as each can be divided by `size`.
    """

    rank: int = 0
    size: int = 1

    def of(self, rows: Rows) -> Rows:
        """This process's part of a batch: an array, a tensor or a list, along its first axis."""
        return rows[self.rank :: self.size]  # type: ignore[index]


class SharedGenerator(torch.Generator):
    """A generator that all processes hold in the same state.

    Attributes:
        share: whose rows are kept.
    """

    share: Share


def draw_rows(draw: Callable[[Sequence[int]], Tensor], shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """`draw(shape)`, which draws from `generator`; of a shared generator, this process's rows of the whole batch."""
    if not isinstance(generator, SharedGenerator):
        return draw(shape)
    count, *rest = shape
    return generator.share.of(draw((count * generator.share.size, *rest)))


def normal_rows(shape: Sequence[int], *, generator: torch.Generator, dtype: torch.dtype | None = None) -> Tensor:
    """Standard normal numbers on the generator's device: this process's rows of a batch."""
    device = generator.device
    return draw_rows(lambda size: torch.randn(size, generator=generator, dtype=dtype, device=device), shape, generator)


def shared(generator: torch.Generator, share: Share) -> torch.Generator:
    """The same generator in the same state, of which this process keeps its rows; itself where nothing is shared."""
    if share.size == 1:
        return generator
    twin = SharedGenerator(device=generator.device)
    twin.set_state(generator.get_state())
    twin.share = share
    return twin
