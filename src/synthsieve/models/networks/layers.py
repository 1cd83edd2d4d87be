"""What networks share: normalization, image views, dropout with an explicit random generator, initial weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import torch
from torch import nn

from synthsieve.errors import ConfigError
from synthsieve.io.random_streams import draw_rows
from synthsieve.settings import Norm, View

Built = TypeVar("Built", bound=nn.Module)


def default_device() -> torch.device:
    """Where new tensors are made; `torch.get_default_device` of torch 2.4 does not see `with torch.device(...)`."""
    return torch.empty(0).device


def build(make: Callable[[], Built], *, rng: torch.Generator) -> Built:
    """The module that `make` returns, with weights drawn from `rng` and never from the global random state.

    Convolutions preserve the variance of the signal through an activation, linear layers without one; biases are zero.
    """
    device = default_device()
    with torch.device("meta"):
        module = make()
    module = module.to_empty(device=device)
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            fan_in = part.weight[0].numel() if not isinstance(part, nn.ConvTranspose2d) else part.weight[:, 0].numel()
            bound = math.sqrt((3 if isinstance(part, nn.Linear) else 6) / fan_in)
            with torch.no_grad():
                part.weight.uniform_(-bound, bound, generator=rng)
                if part.bias is not None:
                    part.bias.zero_()
        elif isinstance(part, nn.GroupNorm | nn.BatchNorm2d):
            part.reset_parameters()
    return module


def in_float32(output: torch.Tensor) -> torch.Tensor:
    """The output of a network; what autocast computed in bfloat16 becomes float32, for losses."""
    return output.float() if output.dtype is torch.bfloat16 else output


class BatchNorm2d(nn.BatchNorm2d):
    """Batch norm that does not update its running statistics within `fixed_statistics`."""

    update_statistics = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training and not self.update_statistics:
            return nn.functional.batch_norm(x, None, None, self.weight, self.bias, training=True, eps=self.eps)
        return super().forward(x)


class Dropout(nn.Module):
    """Dropout whose mask is drawn from the random generator set by `attach_rng`, so that runs can be resumed."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.rng: torch.Generator | None = None
        self.enabled = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training or not self.enabled or self.rate == 0:
            return x
        if self.rng is None:
            raise RuntimeError("dropout in training mode needs a random generator: call attach_rng first")
        rng = self.rng
        mask = draw_rows(lambda size: torch.empty(size).bernoulli_(1 - self.rate, generator=rng), x.shape, rng)
        return x * mask.to(x) / (1 - self.rate)


@contextmanager
def _switched_off(module: nn.Module, kind: type[nn.Module], flag: str) -> Iterator[None]:
    parts = [part for part in module.modules() if isinstance(part, kind)]
    for part in parts:
        setattr(part, flag, False)
    try:
        yield
    finally:
        for part in parts:
            setattr(part, flag, True)


def fixed_statistics(module: nn.Module) -> AbstractContextManager[None]:
    """A context in which no batch norm of `module` updates its running statistics: for passes over perturbed x."""
    return _switched_off(module, BatchNorm2d, "update_statistics")


def without_dropout(module: nn.Module) -> AbstractContextManager[None]:
    """A context in which no dropout of `module` drops anything: for predictions that serve as targets."""
    return _switched_off(module, Dropout, "enabled")


def attach_rng(module: nn.Module, rng: torch.Generator) -> None:
    """Let every dropout inside `module` draw from `rng`."""
    for part in module.modules():
        if isinstance(part, Dropout):
            part.rng = rng


def norm_layer(norm: Norm, channels: int) -> nn.Module:
    """Group norm with groups of at least four channels, or batch norm."""
    if norm is Norm.BATCH:
        return BatchNorm2d(channels)
    fitting = (groups for groups in (8, 4, 2) if channels % groups == 0 and channels // groups >= 4)
    return nn.GroupNorm(next(fitting, 1), channels)


class ImageView(nn.Module):
    """The image as an encoder tower sees it: plain, standardized per image, or its standardized grey value.

    x (n, channels, height, width) -> the same, or (n, 1, height, width) when grey.
    """

    LUMA = (0.299, 0.587, 0.114)
    FLOOR = 0.04  # added to the deviation, so that a flat image is not amplified to noise

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
    """(channels, height, width), both sides multiples of 4."""
    if len(shape) != 3 or any(side % 4 or side < 8 for side in shape[1:]):
        raise ConfigError(
            "convolutional networks expect images (channels, height, width) with sides of 8 or more that are "
            f"multiples of 4, got {tuple(shape)}: pad or resize them, or set model.encoder and model.generator to mlp",
            code="image-shape",
        )
    channels, height, width = shape
    return channels, height, width
