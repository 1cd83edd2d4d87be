"""Samples around labelled x, drawn again at each step: their class is a true label, not a requested one.

With z_i the mean of q(z given x_i), of labelled pairs (x_i, y_i):

    labeled:      z' = a Langevin chain on p(z given y_i) from z_i, a few steps long
    within-class: z' = z_i + a (z_j - z_i), x_j a labelled x of the same class, a ~ U(-1/2, 1/2)
    style-swap:   z' = (label latents of z_i, style latents of z_j), x_j an unlabelled x

and x' = g(z'), or x' = x_i + g(z') - g(z_i), which keeps what the generator cannot draw of x_i.
"""

from __future__ import annotations

import torch
from torch import Tensor

from synthsieve.io.random_streams import draw_rows
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.generator import Generator
from synthsieve.sampling import langevin
from synthsieve.settings import AugmentationSettings, DrawFrom


@torch.no_grad()
def draw(
    model: GenerativeClassifier,
    real: tuple[Tensor, Tensor, Tensor],
    n: int,
    *,
    settings: AugmentationSettings,
    step_size: float,
    rng: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """n samples and their classes: x (n, *shape) as networks see it, y int64 (n,).

    Args:
        model: is in evaluation mode.
        real: labelled x, their classes, and unlabelled x. Labelled ones are taken in turn.
        step_size: of the chains.
    """
    x, y, unlabeled = real
    turns = torch.arange(n, device=y.device) % len(y)
    x, y = x[turns], y[turns]
    z = model.posterior(x).mean
    if settings.draw_from is DrawFrom.LABELED:
        chains = langevin.LangevinSettings(settings.anchored_steps, step_size, settings.temperature)
        moved = langevin.run(model.prior.conditional(y), z, settings=chains, rng=rng).z
    elif settings.draw_from is DrawFrom.WITHIN_CLASS:
        moved = z + (_uniform(n, rng).to(z)[:, None] - 0.5) * (z[_partners(y, rng)] - z)
    else:
        others = unlabeled if len(unlabeled) else x
        style = model.posterior(others[(_uniform(n, rng) * len(others)).long().to(y.device)]).mean
        label = model.encoder.label_latent_dim
        moved = torch.cat([z[:, :label], style[:, label:]], dim=1)
    if settings.residual:
        return x + (model.generator(moved) - model.generator(z)), y
    return _decode(model.generator, moved, rng), y


def _uniform(n: int, rng: torch.Generator) -> Tensor:
    """Numbers in [0, 1). (n,)."""
    return draw_rows(lambda size: torch.rand(size, generator=rng, device=rng.device), (n,), rng)


def _partners(y: Tensor, rng: torch.Generator) -> Tensor:
    """For each example a random one of its class, perhaps itself. int64 (n,)."""
    chances = _uniform(len(y), rng).to(y.device)
    same = y[:, None] == y[None, :]
    place = (chances * same.sum(dim=1)).long()  # which of its class, counted from 0
    return ((same.cumsum(dim=1) == place[:, None] + 1) & same).int().argmax(dim=1)


def _decode(generator: Generator, z: Tensor, rng: torch.Generator) -> Tensor:
    """x = g(z), or a draw of p(x given z) where its mean is not an example."""
    if not generator.always_draws:
        x: Tensor = generator(z)
        return x
    noise = draw_rows(lambda size: torch.stack([generator.noise(rng=rng) for _ in range(size[0])]), (len(z),), rng)
    return generator.sample(z, noise.to(z.device))
