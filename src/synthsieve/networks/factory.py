"""From settings to networks: which encoder and which generator a data shape gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import nn

from synthsieve.config import Activation, ModelSettings, NetworkKind, View
from synthsieve.errors import ConfigError
from synthsieve.networks.dcgan import DCGANGenerator
from synthsieve.networks.layers import Dropout, ImageView, build
from synthsieve.networks.mlp import MLP
from synthsieve.networks.residual import ResidualEncoder
from synthsieve.networks.strided import StridedEncoder, StridedGenerator
from synthsieve.networks.wide_resnet import WideResNet


def default_kind(shape: Sequence[int]) -> NetworkKind:
    """`strided` for images it can halve twice, `mlp` for everything else."""
    is_image = len(shape) == 3 and all(side % 4 == 0 and side >= 8 for side in shape[1:])
    return NetworkKind.STRIDED if is_image else NetworkKind.MLP


def make_encoder(
    settings: ModelSettings,
    shape: Sequence[int],
    out_features: int,
    *,
    kind: NetworkKind,
    width: int,
    view: View,
    generator: torch.Generator,
) -> nn.Module:
    """A network x (n, *shape) -> (n, out_features)."""
    kind = default_kind(shape) if kind is NetworkKind.AUTO else kind
    norm, dropout = settings.norm, settings.dropout
    makers: dict[NetworkKind, Callable[[], nn.Module]] = {
        NetworkKind.STRIDED: lambda: StridedEncoder(
            shape, out_features, width=width, norm=norm, view=view, dropout=dropout
        ),
        NetworkKind.RESIDUAL: lambda: ResidualEncoder(
            shape, out_features, width=width, norm=norm, view=view, dropout=dropout
        ),
        NetworkKind.WIDE_RESNET: lambda: WideResNet(
            shape, out_features, depth=settings.encoder_depth, width=width, norm=norm, view=view, dropout=dropout
        ),
    }
    if kind is NetworkKind.MLP:
        sizes = (prod(shape), *[width] * settings.encoder_depth, out_features)
        return _mlp_encoder(sizes, shape, view, settings.dropout, generator)
    if kind not in makers:
        raise ConfigError(f"model.encoder can be mlp, strided, residual or wide-resnet, got {kind.value}")
    return build(makers[kind], generator=generator)


def make_generator(
    settings: ModelSettings, shape: Sequence[int], *, bounded: bool, generator: torch.Generator
) -> nn.Module:
    """A network z (n, latent_dim) -> (n, *shape); within (-1, 1) by tanh where it is bounded."""
    kind = default_kind(shape) if settings.generator is NetworkKind.AUTO else settings.generator
    width, latent_dim = settings.generator_width, settings.latent_dim
    if kind is NetworkKind.MLP:
        # Three layers, whatever the depth of the encoder: a generator too deep for few rows forgets its latents.
        network = MLP((latent_dim, width, width, prod(shape)), activation=Activation.SILU, generator=generator)
        return nn.Sequential(network, nn.Unflatten(1, tuple(shape)), *([nn.Tanh()] if bounded else []))
    makers: dict[NetworkKind, Callable[[], nn.Module]] = {
        NetworkKind.STRIDED: lambda: StridedGenerator(latent_dim, shape, width=width, bounded=bounded),
        NetworkKind.DCGAN: lambda: DCGANGenerator(latent_dim, shape, width=width),
    }
    if kind not in makers:
        raise ConfigError(f"model.generator can be mlp, strided or dcgan, got {kind.value}")
    return build(makers[kind], generator=generator)


def _mlp_encoder(
    sizes: Sequence[int], shape: Sequence[int], view: View, dropout: float, generator: torch.Generator
) -> nn.Module:
    """An MLP over the flattened example, with dropout on its input."""
    front: list[nn.Module] = []
    if len(shape) == 3:
        looked_at = ImageView(view, shape[0])
        front.append(looked_at)
        sizes = (sizes[0] // shape[0] * looked_at.channels, *sizes[1:])
    return nn.Sequential(
        *front, nn.Flatten(), Dropout(dropout), MLP(sizes, activation=Activation.SILU, generator=generator)
    )
