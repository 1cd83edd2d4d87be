"""The encoder: q(z given x) = N(mean(x), diag scale(x)^2), from one tower or two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from synthsieve.data.dataset import InputSpec
from synthsieve.io.random_streams import randn
from synthsieve.models.modalities import Tower
from synthsieve.models.networks.layers import in_float32
from synthsieve.models.registry import networks_of
from synthsieve.settings import ModelSettings, NetworkKind

LOG_SCALE_RANGE = (-6.0, 2.0)


@dataclass(frozen=True)
class Posterior:
    """A diagonal Gaussian over latents, one for each example."""

    mean: Tensor  # (n, latent_dim)
    log_scale: Tensor  # (n, latent_dim), the log of the standard deviation

    def __getitem__(self, rows: slice) -> Posterior:
        """The posteriors of some of the examples."""
        return Posterior(self.mean[rows], self.log_scale[rows])

    def detach(self) -> Posterior:
        """The same posterior without a gradient."""
        return Posterior(self.mean.detach(), self.log_scale.detach())

    def with_scale(self, scale: float) -> Posterior:
        """The same means, with one standard deviation."""
        return Posterior(self.mean, torch.full_like(self.log_scale, math.log(scale)))

    @staticmethod
    def cat(parts: Sequence[Posterior], dim: int = 0) -> Posterior:
        """The posteriors of all parts: of more examples, or of more latents."""
        return Posterior(
            torch.cat([part.mean for part in parts], dim), torch.cat([part.log_scale for part in parts], dim)
        )

    def sample(self, *, rng: torch.Generator) -> Tensor:
        """One sample for each example, differentiable in mean and scale. z = mean + scale noise. (n, latent_dim)."""
        noise = randn(self.mean.shape, rng=rng, dtype=self.mean.dtype)
        return self.mean + self.log_scale.exp() * noise.to(self.mean.device)

    def kl_to_reference(self) -> Tensor:
        """KL(q || p0) of each latent: (mean^2 + scale^2 - 1) / 2 - log scale. (n, latent_dim), nats."""
        return 0.5 * (self.mean.square() + (2 * self.log_scale).exp() - 1) - self.log_scale


@dataclass(frozen=True)
class GradientScale:
    """The factor on the gradient of a loss in each tower, from 0 (the tower is not differentiated) to 1."""

    label: float = 1.0
    style: float = 1.0


WHOLE = GradientScale()


class Encoder(nn.Module):
    """q(z given x). With `label_latent_dim` > 0 there are two towers, and z = (label latents, style latents).

    The caller chooses by `GradientScale` which gradient reaches which tower. With one tower, the style tower computes
    all of z and gets the larger of the two factors.
    """

    def __init__(self, settings: ModelSettings, input_spec: InputSpec, *, rng: torch.Generator) -> None:
        super().__init__()
        self.label_latent_dim = settings.label_latent_dim
        self.style_latent_dim = settings.latent_dim - settings.label_latent_dim
        self.label_scale = settings.label_scale
        make = networks_of(input_spec).make_encoder
        self.label_tower: nn.Module | None = None
        classifying: dict[str, Any] = {
            "view": settings.view,
            "dropout": settings.dropout,
            "feature_dropout": settings.feature_dropout,
        }
        if self.label_latent_dim:
            kind = settings.encoder if settings.label_encoder is NetworkKind.AUTO else settings.label_encoder
            tower = Tower(2 * self.label_latent_dim, kind, settings.label_width, **classifying)
            self.label_tower = make(settings, input_spec, tower, rng=rng)
            classifying = {}
        tower = Tower(2 * self.style_latent_dim, settings.encoder, settings.encoder_width, **classifying)
        self.style_tower = make(settings, input_spec, tower, rng=rng)

    def forward(self, x: Tensor, share: GradientScale = WHOLE, label: Posterior | None = None) -> Posterior:
        """q(z given x) for each x (n, *shape); `label` is the label tower's part, if known already."""
        if self.label_tower is None:
            return _posterior(_scale_gradient(self.style_tower, x, max(share.label, share.style)))
        label = label or self.label_part(x, share)
        style = _posterior(_scale_gradient(self.style_tower, x, share.style))
        return Posterior.cat([label, style], dim=1)

    def label_part(self, x: Tensor, share: GradientScale = WHOLE) -> Posterior:
        """q of the label latents only; needs two towers."""
        assert self.label_tower is not None
        q = _posterior(_scale_gradient(self.label_tower, x, share.label))
        return q if self.label_scale is None else q.with_scale(self.label_scale)

    @property
    def classifying_tower(self) -> nn.Module:
        """The label tower, or the only tower."""
        return self.style_tower if self.label_tower is None else self.label_tower

    def embed(self, x: Tensor) -> Tensor:
        """x in the numbers in which smoothness is measured: x itself, unless its tower has `embed`."""
        tower = self.classifying_tower
        embedded: Tensor = tower.embed(x) if hasattr(tower, "embed") else x  # type: ignore[operator]
        return embedded

    def with_style_of(self, embedded: Tensor, mean: Tensor) -> Tensor:
        """The means of q with the label latents of `embedded` and the style latents of `mean`. (n, latent_dim).

        It skips the style tower where only the label latents matter; with one tower all of z comes from `embedded`.
        """
        tower = self.classifying_tower
        latents = _posterior(getattr(tower, "forward_embedded", tower)(embedded)).mean
        return latents if self.label_tower is None else torch.cat([latents, mean[:, self.label_latent_dim :]], dim=1)


def _scale_gradient(tower: nn.Module, x: Tensor, share: float) -> Tensor:
    """The tower's output, with its gradient scaled by `share`."""
    if share == 0:
        with torch.no_grad():
            return tower(x)
    output: Tensor = tower(x)
    return output if share == 1 else share * output + (1 - share) * output.detach()


def _posterior(output: Tensor) -> Posterior:
    mean, log_scale = in_float32(output).chunk(2, dim=1)
    low, high = LOG_SCALE_RANGE
    # A soft clamp: a hard one has no gradient outside the range.
    return Posterior(mean, low + (high - low) * torch.sigmoid(log_scale - 1.0))
