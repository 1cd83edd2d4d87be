"""The encoder and the generator of a modality: the interface, and those of images, spectrograms and vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import nn

from synthsieve.data.dataset import InputSpec
from synthsieve.errors import ConfigError
from synthsieve.models.generator import GaussianGenerator, Generator
from synthsieve.models.networks import convolutional
from synthsieve.models.networks.layers import Dropout, ImageView, build
from synthsieve.models.networks.mlp import MLP
from synthsieve.settings import Activation, ModelSettings, NetworkKind, View


@dataclass(frozen=True)
class Tower:
    """One tower of the encoder: outputs for each x, which network, its width, how it sees images, dropout rates."""

    out_features: int
    kind: NetworkKind
    width: int
    view: View = View.PLAIN
    dropout: float = 0.0
    feature_dropout: float = 0.0


MakeEncoder = Callable[..., nn.Module]
"""settings, input_spec, tower, rng -> a network x (n, *shape) -> (n, tower.out_features).

Smoothness within a small radius is measured in x, or, if the network has a method `embed`, x (n, *shape) -> floats, in
these numbers; `forward_embedded`, or else `forward`, then takes them instead of x.
"""
MakeGenerator = Callable[..., Generator]  # settings, input_spec, rng -> p(x given z)


@dataclass(frozen=True)
class Networks:
    """The two networks of a modality."""

    make_encoder: MakeEncoder
    make_generator: MakeGenerator


def default_kind(shape: Sequence[int]) -> NetworkKind:
    """`strided` for images whose sides can be halved twice, `mlp` for everything else."""
    is_image = len(shape) == 3 and all(side % 4 == 0 and side >= 8 for side in shape[1:])
    return NetworkKind.STRIDED if is_image else NetworkKind.MLP


def make_array_encoder(
    settings: ModelSettings, input_spec: InputSpec, tower: Tower, *, rng: torch.Generator
) -> nn.Module:
    """For images, spectrograms and vectors: convolutions or an MLP."""
    shape = input_spec.shape
    kind = default_kind(shape) if tower.kind is NetworkKind.AUTO else tower.kind
    if kind is NetworkKind.MLP:
        view = ImageView(tower.view if len(shape) == 3 else View.PLAIN, shape[0])
        inputs = prod(shape) // shape[0] * view.channels
        sizes = (inputs, *[tower.width] * settings.encoder_depth, tower.out_features)
        network = MLP(sizes, activation=Activation.SILU, rng=rng)
        return convolutional.ImageEncoder(view, [nn.Flatten(), Dropout(tower.dropout), network])
    options: dict[str, Any] = {"norm": settings.norm, "view": tower.view, "dropout": tower.dropout}
    makers: dict[NetworkKind, Callable[..., nn.Module]] = {
        NetworkKind.STRIDED: convolutional.StridedEncoder,
        NetworkKind.RESIDUAL: convolutional.ResidualEncoder,
        NetworkKind.WIDE_RESNET: convolutional.WideResNet,
    }
    if kind not in makers:
        raise _unknown_network("encoder", kind, "mlp, strided, residual or wide-resnet")
    if kind is NetworkKind.WIDE_RESNET:
        options["depth"] = settings.encoder_depth
    if kind is NetworkKind.RESIDUAL:
        options["feature_dropout"] = tower.feature_dropout
    return build(lambda: makers[kind](shape, tower.out_features, width=tower.width, **options), rng=rng)


def make_gaussian_generator(settings: ModelSettings, input_spec: InputSpec, *, rng: torch.Generator) -> Generator:
    """For images, spectrograms and vectors: the network's output is the mean of a Gaussian; of images, in (-1, 1)."""
    shape, bounded = input_spec.shape, input_spec.kind == "image"
    kind = default_kind(shape) if settings.generator is NetworkKind.AUTO else settings.generator
    width, latent_dim = settings.generator_width, settings.latent_dim
    network: nn.Module
    if kind is NetworkKind.MLP:
        # Three layers, whatever the depth of the encoder: with few rows, a deeper generator ignores its latents.
        layers = MLP((latent_dim, width, width, prod(shape)), activation=Activation.SILU, rng=rng)
        network = nn.Sequential(layers, nn.Unflatten(1, tuple(shape)), *([nn.Tanh()] if bounded else []))
    elif kind is NetworkKind.STRIDED:
        strided = convolutional.StridedGenerator
        network = build(lambda: strided(latent_dim, shape, width=width, bounded=bounded), rng=rng)
    elif kind is NetworkKind.DCGAN:
        network = build(lambda: convolutional.DCGANGenerator(latent_dim, shape, width=width), rng=rng)
    else:
        raise _unknown_network("generator", kind, "mlp, strided or dcgan")
    return GaussianGenerator(network, shape=shape, observation_noise=settings.observation_noise)


def _unknown_network(setting: str, kind: NetworkKind, choices: str) -> ConfigError:
    return ConfigError(f"model.{setting} can be {choices}, got {kind.value}", code="network-kind")


ARRAYS = Networks(make_array_encoder, make_gaussian_generator)
