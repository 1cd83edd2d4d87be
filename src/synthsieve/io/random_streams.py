"""One seed, many named random streams.

A stream derives from (seed, name) alone, so adding one never shifts another. No function here or elsewhere touches a
global generator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def derive_seed(seed: int, name: str) -> int:
    """A 63-bit seed for the stream `name`: the first eight bytes of SHA-256("seed/name"), less the sign."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "big") >> 1


def numpy_stream(seed: int, name: str) -> np.random.Generator:
    """The numpy generator of (seed, name), in its first state."""
    return np.random.default_rng(derive_seed(seed, name))


def torch_stream(seed: int, name: str) -> torch.Generator:
    """The torch CPU generator of (seed, name), in its first state."""
    import torch

    return torch.Generator().manual_seed(derive_seed(seed, name))


def draw_rows(draw: Callable[[Sequence[int]], Tensor], shape: Sequence[int], rng: torch.Generator) -> Tensor:
    """`draw(shape)`, a function that draws from `rng`.

    A generator with a method `draw_rows` decides itself which rows it keeps: in data-parallel training, those of its
    process (`training.parallel.ShardedGenerator`).
    """
    own_draw_rows = getattr(rng, "draw_rows", None)
    return draw(shape) if own_draw_rows is None else own_draw_rows(draw, shape)


def randn(shape: Sequence[int], *, rng: torch.Generator, dtype: torch.dtype | None = None) -> Tensor:
    """Standard normal numbers of `shape`, on the device of `rng`."""
    import torch

    return draw_rows(lambda size: torch.randn(size, generator=rng, dtype=dtype, device=rng.device), shape, rng)
