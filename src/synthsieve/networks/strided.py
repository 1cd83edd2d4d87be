"""A small strided pair for two cores: nearly all arithmetic happens at a quarter of the resolution or below."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from synthsieve.config import Norm, View
from synthsieve.networks.layers import Dropout, ImageView, image_size, norm_layer


class StridedEncoder(nn.Module):
    """Four convolutions, three of them with stride, then one flattened linear head.

    x (n, channels, height, width) -> features (n, out_features).
    """

    def __init__(
        self, shape: Sequence[int], out_features: int, *, width: int, norm: Norm, view: View, dropout: float = 0.0
    ) -> None:
        super().__init__()
        channels, height, across = image_size(shape)
        looked_at = ImageView(view, channels)
        plan = [(width, 5, 2), (2 * width, 3, 2), (3 * width, 3, 1), (3 * width, 3, 2)]
        layers: list[nn.Module] = [looked_at]
        before = looked_at.channels
        for after, kernel, stride in plan:
            layers += [nn.Conv2d(before, after, kernel, stride, kernel // 2), norm_layer(norm, after), nn.SiLU()]
            before = after
        positions = -(-height // 8) * -(-across // 8)
        layers += [nn.Flatten(), Dropout(dropout), nn.Linear(before * positions, out_features)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class StridedGenerator(nn.Module):
    """A linear layer to a quarter of each side, convolutions there, two doublings by pixel shuffle.

    z (n, latent_dim) -> x (n, channels, height, width), in (-1, 1) by tanh where it is bounded.
    """

    def __init__(self, latent_dim: int, shape: Sequence[int], *, width: int, bounded: bool = True) -> None:
        super().__init__()
        channels, height, across = image_size(shape)
        self.base = (4 * width, height // 4, across // 4)
        self.linear = nn.Linear(latent_dim, 4 * width * (height // 4) * (across // 4))
        self.layers = nn.Sequential(
            nn.SiLU(),
            nn.Conv2d(4 * width, 4 * width, 3, 1, 1),
            nn.SiLU(),
            nn.Conv2d(4 * width, 8 * width, 3, 1, 1),
            nn.PixelShuffle(2),  # (n, 2 width, height / 2, width / 2)
            nn.SiLU(),
            nn.Conv2d(2 * width, 2 * width, 3, 1, 1),
            nn.SiLU(),
            nn.Conv2d(2 * width, 4 * channels, 3, 1, 1),
            nn.PixelShuffle(2),  # (n, channels, height, width)
            nn.Tanh() if bounded else nn.Identity(),
        )

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.layers(self.linear(z).view(-1, *self.base))
