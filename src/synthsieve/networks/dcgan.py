"""The DCGAN generator (Radford 2015) as the paper uses it: four layers of transposed convolutions, tanh at the end."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from synthsieve.networks.layers import image_size


class DCGANGenerator(nn.Module):
    """Channels 4 width, 2 width, width, then the image's; width 128 is the paper's 512-256-128-3. No batch norm.

    z (n, latent_dim) -> x (n, channels, height, width) in (-1, 1). Each layer doubles the sides while they divide; a
    28-pixel side starts at 7 and keeps its size in the third layer.
    """

    def __init__(self, latent_dim: int, shape: Sequence[int], *, width: int) -> None:
        super().__init__()
        channels, height, across = image_size(shape)
        doublings = 3 if height % 8 == 0 and across % 8 == 0 else 2
        base = (height >> doublings, across >> doublings)
        layers: list[nn.Module] = [nn.ConvTranspose2d(latent_dim, 4 * width, base), nn.LeakyReLU(0.2)]
        plan = [(4 * width, 2 * width), (2 * width, width), (width, channels)]
        for index, (before, after) in enumerate(plan):
            doubles = index < doublings
            layers.append(nn.ConvTranspose2d(before, after, *((4, 2, 1) if doubles else (3, 1, 1))))
            layers.append(nn.LeakyReLU(0.2) if index < len(plan) - 1 else nn.Tanh())
        self.layers = nn.Sequential(*layers)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.layers(z[:, :, None, None])
