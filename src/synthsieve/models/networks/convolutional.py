"""Convolutional encoders x (n, channels, height, width) -> (n, out_features), and generators of images."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor, nn

from synthsieve.errors import ConfigError
from synthsieve.models.networks.layers import Dropout, ImageView, image_size, norm_layer
from synthsieve.settings import Norm, View

LARGEST_MEAN = 0.95  # of a colour that a generator starts at: where tanh still has a gradient


class ImageEncoder(nn.Module):
    """A view of the image, then layers one after another.

    `embed` gives the view, in whose numbers smoothness is measured, and `forward_embedded` what follows it.
    """

    def __init__(self, view: ImageView, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.embed = view
        self.forward_embedded = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.forward_embedded(self.embed(x))
        return output


class StridedEncoder(ImageEncoder):
    """Four convolutions, three of them strided, then a linear head: most work is at low resolution."""

    def __init__(
        self, shape: Sequence[int], out_features: int, *, width: int, norm: Norm, view: View, dropout: float = 0.0
    ) -> None:
        channels, height, across = image_size(shape)
        image_view = ImageView(view, channels)
        layers: list[nn.Module] = []
        before = image_view.channels
        for after, kernel, stride in ((width, 5, 2), (2 * width, 3, 2), (3 * width, 3, 1), (3 * width, 3, 2)):
            layers += [nn.Conv2d(before, after, kernel, stride, kernel // 2), norm_layer(norm, after), nn.SiLU()]
            before = after
        positions = -(-height // 8) * -(-across // 8)
        layers += [nn.Flatten(), Dropout(dropout), nn.Linear(before * positions, out_features)]
        super().__init__(image_view, layers)


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions, the second with a shortcut: h = silu(norm(conv(x))), then silu(pool(h + norm(conv(h)))).

    Pooling comes before the last nonlinearity, which then has a quarter of the work.
    """

    def __init__(self, before: int, after: int, *, norm: Norm, pool: bool) -> None:
        super().__init__()
        self.enter = nn.Sequential(nn.Conv2d(before, after, 3, 1, 1, bias=False), norm_layer(norm, after), nn.SiLU())
        self.inner = nn.Sequential(nn.Conv2d(after, after, 3, 1, 1, bias=False), norm_layer(norm, after))
        self.leave = nn.Sequential(nn.MaxPool2d(2) if pool else nn.Identity(), nn.SiLU())

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.enter(x)
        output: Tensor = self.leave(hidden + self.inner(hidden))
        return output


class ResidualEncoder(ImageEncoder):
    """Pixels folded 2 x 2 into channels, three residual blocks of width, 2 width and 3 width channels, a linear head.

    `feature_dropout` is the dropout rate between blocks, `dropout` that before the head.

    A block halves the sides where both are even and stay at `MIN_SIDE` or more: positions within the image tell digits
    apart. 32 x 32 ends at 4 x 4, 28 x 28 at 7 x 7, 8 x 8 at 4 x 4.
    """

    MIN_SIDE = 4

    def __init__(
        self,
        shape: Sequence[int],
        out_features: int,
        *,
        width: int,
        norm: Norm,
        view: View,
        dropout: float = 0.0,
        feature_dropout: float = 0.0,
    ) -> None:
        channels, height, across = image_size(shape)
        image_view = ImageView(view, channels)
        layers: list[nn.Module] = [nn.PixelUnshuffle(2)]
        before, sides = 4 * image_view.channels, (height // 2, across // 2)
        for index in (1, 2, 3):
            pool = index < 3 and all(side % 2 == 0 and side // 2 >= self.MIN_SIDE for side in sides)
            layers += [ResidualBlock(before, index * width, norm=norm, pool=pool)]
            layers += [Dropout(feature_dropout)] if index < 3 else []
            before, sides = index * width, (sides[0] >> pool, sides[1] >> pool)
        head = nn.Linear(before * sides[0] * sides[1], out_features)
        super().__init__(image_view, [*layers, nn.Flatten(), Dropout(dropout), head])


class WideResNetBlock(nn.Module):
    """x -> shortcut(x) + conv(dropout(conv(x))), with a norm and a nonlinearity before each convolution."""

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

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.enter(x)
        return self.inner(hidden) + (x if self.shortcut is None else self.shortcut(hidden))


class WideResNet(ImageEncoder):
    """Wide ResNet (Zagoruyko 2016), the paper's encoder: pre-activation blocks in three groups, then a linear head.

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
        if depth < 10 or (depth - 4) % 6:
            raise ConfigError(
                f"the depth of a wide ResNet must be 6 n + 4 (10, 16, 22, 28), but model.encoder_depth is {depth}",
                code="network-depth",
            )
        image_view = ImageView(view, image_size(shape)[0])
        layers: list[nn.Module] = [nn.Conv2d(image_view.channels, 16, 3, 1, 1, bias=False)]
        before = 16
        for after, first_stride in ((16 * width, 1), (32 * width, 2), (64 * width, 2)):
            for index in range((depth - 4) // 6):
                stride = first_stride if index == 0 else 1
                layers.append(WideResNetBlock(before, after, stride, norm=norm, dropout=dropout))
                before = after
        layers += [norm_layer(norm, before), nn.LeakyReLU(0.1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        super().__init__(image_view, [*layers, nn.Linear(before, out_features)])


class ImageGenerator(nn.Module):
    """z (n, latent_dim) -> x (n, channels, height, width). The last of `layers` gives the output."""

    layers: nn.Sequential

    @torch.no_grad()
    def start_at(self, mean: Tensor) -> None:
        """Set the bias of the last convolution so that tanh gives the mean colour (channels,) where its weights give 0.

        Otherwise the first steps turn images of a dark background black altogether, where tanh has no gradient left:
        the generator then ignores its latents for good.
        """
        if not any(isinstance(layer, nn.Tanh) for layer in self.layers):
            return
        last = [layer for layer in self.layers if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d)][-1]
        assert last.bias is not None
        last.bias.copy_(mean.clamp(-LARGEST_MEAN, LARGEST_MEAN).atanh().repeat_interleave(len(last.bias) // len(mean)))


class StridedGenerator(ImageGenerator):
    """A linear layer to a quarter of each side, convolutions there, two doublings by pixel shuffle.

    z (n, latent_dim) -> x (n, channels, height, width), in (-1, 1) by tanh if `bounded`.
    """

    def __init__(self, latent_dim: int, shape: Sequence[int], *, width: int, bounded: bool = True) -> None:
        super().__init__()
        channels, height, across = image_size(shape)
        self.base = (4 * width, height // 4, across // 4)
        self.linear = nn.Linear(latent_dim, prod(self.base))
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

    def forward(self, z: Tensor) -> Tensor:
        return self.layers(self.linear(z).view(-1, *self.base))


class DCGANGenerator(ImageGenerator):
    """The DCGAN generator (Radford 2015) as the paper uses it: four transposed convolutions, tanh, no batch norm.

    z (n, latent_dim) -> x (n, channels, height, width) in (-1, 1). Channels are 4 width, 2 width, width, then the
    image's; width 128 is the paper's 512-256-128-3. Each layer doubles the sides while they divide; a 28-pixel side
    starts at 7 and keeps its size in the third layer.
    """

    def __init__(self, latent_dim: int, shape: Sequence[int], *, width: int) -> None:
        super().__init__()
        channels, height, across = image_size(shape)
        doublings = 3 if height % 8 == 0 and across % 8 == 0 else 2
        base = (height >> doublings, across >> doublings)
        layers: list[nn.Module] = [nn.ConvTranspose2d(latent_dim, 4 * width, base), nn.LeakyReLU(0.2)]
        plan = [(4 * width, 2 * width), (2 * width, width), (width, channels)]
        for index, (before, after) in enumerate(plan):
            layers.append(nn.ConvTranspose2d(before, after, *((4, 2, 1) if index < doublings else (3, 1, 1))))
            layers.append(nn.LeakyReLU(0.2) if index < len(plan) - 1 else nn.Tanh())
        self.layers = nn.Sequential(*layers)

    def forward(self, z: Tensor) -> Tensor:
        x: Tensor = self.layers(z[:, :, None, None])
        return x
