"""The parts networks share: normalisation, the view of an image, dropout with a generator, initial weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import nn

from synthsieve.config import Norm, View
from synthsieve.errors import ConfigError
from synthsieve.sharing import draw_rows

Built = TypeVar("Built", bound=nn.Module)


def build(make: Callable[[], Built], *, generator: torch.Generator) -> Built:
    """The module `make` returns, its weights drawn from `generator`; no global generator is touched.

    Convolutions keep the signal's variance through an activation, linear layers without one; biases start at zero.
    Within `torch.device("meta")` nothing is allocated.
    """
    device = torch.get_default_device()
    with torch.device("meta"):
        module = make()
    module = module.to_empty(device=device)
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            fan_in = part.weight[0].numel() if not isinstance(part, nn.ConvTranspose2d) else part.weight[:, 0].numel()
            bound = math.sqrt((3 if isinstance(part, nn.Linear) else 6) / fan_in)
            with torch.no_grad():
                part.weight.uniform_(-bound, bound, generator=generator)
                if isinstance(part, IdentityConv2d):
                    nn.init.dirac_(part.weight[: part.in_channels])
                if part.bias is not None:
                    part.bias.zero_()
        elif isinstance(part, nn.GroupNorm | nn.BatchNorm2d):
            part.reset_parameters()
    return module


class IdentityConv2d(nn.Conv2d):
    """A convolution that begins by passing its input on: `build` makes the first filters the identity (dirac)."""


class BatchNorm2d(nn.BatchNorm2d):
    """Batch norm by the statistics of the batch; within `fixed_statistics` it does not remember them.

    Attributes:
        remembers: the running statistics, used for prediction, follow the batches it sees in training.
    """

    remembers = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training and not self.remembers:
            return nn.functional.batch_norm(x, None, None, self.weight, self.bias, training=True, eps=self.eps)
        return super().forward(x)


@contextmanager
def fixed_statistics(module: nn.Module) -> Iterator[None]:
    """Within it no batch norm of `module` updates its running statistics: for passes over x that were moved."""
    parts = [part for part in module.modules() if isinstance(part, BatchNorm2d)]
    for part in parts:
        part.remembers = False
    try:
        yield
    finally:
        for part in parts:
            part.remembers = True


class Dropout(nn.Module):
    """Dropout whose mask comes from a generator that `attach_generator` handed over: nothing hidden, resumable."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.generator: torch.Generator | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training or self.rate == 0:
            return x
        if self.generator is None:
            raise RuntimeError("dropout is in training mode without a generator: call attach_generator first")
        generator = self.generator
        mask = draw_rows(
            lambda size: torch.empty(size).bernoulli_(1 - self.rate, generator=generator), x.shape, generator
        )
        return x * mask.to(x) / (1 - self.rate)


def attach_generator(module: nn.Module, generator: torch.Generator) -> None:
    """Let every dropout inside `module` draw from `generator`."""
    for part in module.modules():
        if isinstance(part, Dropout):
            part.generator = generator


def norm_layer(norm: Norm, channels: int) -> nn.Module:
    """Group norm with groups of at least four channels, or batch norm."""
    if norm is Norm.BATCH:
        return BatchNorm2d(channels)
    fitting = (groups for groups in (8, 4, 2) if channels % groups == 0 and channels // groups >= 4)
    return nn.GroupNorm(next(fitting, 1), channels)


class ImageView(nn.Module):
    """The image as a tower sees it: plain, each image at zero mean and unit deviation, or that of its grey value.

    x (n, channels, height, width) -> the same, or (n, 1, height, width) when grey.
    """

    LUMA = (0.299, 0.587, 0.114)
    FLOOR = 0.04  # of the deviation, so that a flat image is not blown up to noise

    def __init__(self, view: View, channels: int) -> None:
        super().__init__()
        self.view = view
        self.grey = view is View.GREY_CONTRAST and channels == 3
        self.channels = 1 if self.grey else channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.view is View.PLAIN:
            return x
        if self.grey:
            red, green, blue = self.LUMA
            x = red * x[:, 0:1] + green * x[:, 1:2] + blue * x[:, 2:3]
        deviation, mean = torch.std_mean(x, dim=(1, 2, 3), keepdim=True)
        return (x - mean) / (deviation + self.FLOOR)


def image_size(shape: Sequence[int]) -> tuple[int, int, int]:
    """(channels, height, width), both sides multiples of 4, or an error that says what to do."""
    if len(shape) != 3 or any(side % 4 or side < 8 for side in shape[1:]):
        raise ConfigError(
            f"convolutional networks expect images (channels, height, width) with sides of 8 or more that are "
            f"multiples of 4, got {tuple(shape)}: pad or resize the images, or set model.encoder and "
            f"model.generator to mlp"
        )
    channels, height, width = shape
    return channels, height, width
