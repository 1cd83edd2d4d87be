"""Wide ResNet (Zagoruyko 2016), the paper's encoder: pre-activation blocks in three groups, then a linear head."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from synthsieve.config import Norm, View
from synthsieve.errors import ConfigError
from synthsieve.networks.layers import Dropout, ImageView, image_size, norm_layer


class Block(nn.Module):
    """x -> shortcut(x) + conv(dropout(conv(x))), a norm and a nonlinearity before each convolution."""

    def __init__(self, before: int, after: int, stride: int, *, norm: Norm, dropout: float) -> None:
        super().__init__()
        self.enter = nn.Sequential(norm_layer(norm, before), nn.LeakyReLU(0.1))
        self.inner = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            norm_layer(norm, after),
            nn.LeakyReLU(0.1),
            Dropout(dropout),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
        )
        same = before == after and stride == 1
        self.shortcut = None if same else nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        entered = self.enter(x)
        return self.inner(entered) + (x if self.shortcut is None else self.shortcut(entered))


class WideResNet(nn.Module):
    """WRN-depth-width: x (n, channels, height, width) -> features (n, out_features).

    Args:
        depth: 6 n + 4 layers (10, 16, 22, 28): n blocks in each of three groups.
        width: the multiplier of 16, 32 and 64 channels.
    """

    def __init__(
        self,
        shape: Sequence[int],
        out_features: int,
        *,
        depth: int,
        width: int,
        norm: Norm,
        view: View,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise ConfigError(f"a wide ResNet's depth is 6 n + 4 (10, 16, 22, 28), got model.encoder_depth={depth}")
        channels, _, _ = image_size(shape)
        looked_at = ImageView(view, channels)
        layers: list[nn.Module] = [looked_at, nn.Conv2d(looked_at.channels, 16, 3, 1, 1, bias=False)]
        before = 16
        for after, first_stride in ((16 * width, 1), (32 * width, 2), (64 * width, 2)):
            for index in range((depth - 4) // 6):
                stride = first_stride if index == 0 else 1
                layers.append(Block(before, after, stride, norm=norm, dropout=dropout))
                before = after
        layers += [norm_layer(norm, before), nn.LeakyReLU(0.1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        layers.append(nn.Linear(before, out_features))
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)
