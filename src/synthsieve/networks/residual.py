"""A small residual tower for images: most of its arithmetic is in large, dense convolutions, which CPUs do quickly."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from synthsieve.config import Norm, View
from synthsieve.networks.layers import Dropout, IdentityConv2d, ImageView, image_size, norm_layer


class Pair(nn.Module):
    """Two 3x3 convolutions, the second beside a shortcut: h = silu(norm(conv(x))), then silu(pool(h + norm(conv(h)))).

    Pooling comes before the last nonlinearity, which then has a quarter of the work and, where it rises, the same
    result.
    """

    def __init__(self, before: int, after: int, *, norm: Norm, pool: bool) -> None:
        super().__init__()
        self.enter = nn.Sequential(
            IdentityConv2d(before, after, 3, 1, 1, bias=False), norm_layer(norm, after), nn.SiLU()
        )
        self.inner = nn.Sequential(IdentityConv2d(after, after, 3, 1, 1, bias=False), norm_layer(norm, after))
        self.leave = nn.Sequential(nn.MaxPool2d(2) if pool else nn.Identity(), nn.SiLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        entered: torch.Tensor = self.enter(x)
        left: torch.Tensor = self.leave(entered + self.inner(entered))
        return left


class ResidualEncoder(nn.Module):
    """Pixels folded 2 x 2 into channels, three pairs of convolutions with max-pooling between, a flattened linear head.

    x (n, channels, height, width) -> features (n, out_features). The pairs have width, 2 width and 3 width channels. A
    pair halves the sides where both are even and stay at `SMALLEST` or more: below that, where something lies is lost,
    which tells digits apart. 32 x 32 ends at 4 x 4, 28 x 28 at 7 x 7, 8 x 8 at 4 x 4.
    """

    SMALLEST = 4

    def __init__(
        self, shape: Sequence[int], out_features: int, *, width: int, norm: Norm, view: View, dropout: float = 0.0
    ) -> None:
        super().__init__()
        channels, height, across = image_size(shape)
        looked_at = ImageView(view, channels)
        layers: list[nn.Module] = [looked_at, nn.PixelUnshuffle(2)]
        before, sides = 4 * looked_at.channels, (height // 2, across // 2)
        for index in (1, 2, 3):
            pool = index < 3 and all(side % 2 == 0 and side // 2 >= self.SMALLEST for side in sides)
            layers.append(Pair(before, index * width, norm=norm, pool=pool))
            before, sides = index * width, (sides[0] >> pool, sides[1] >> pool)
        layers += [nn.Flatten(), Dropout(dropout), nn.Linear(before * sides[0] * sides[1], out_features)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)
