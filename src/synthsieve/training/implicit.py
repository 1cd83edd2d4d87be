"""Implicit augmentation (Section 2.5): y -> z -> x -> z -> F, one chain with a gradient and no pool.

    y ~ uniform; z ~ p(z given y) by `num_steps` Langevin steps at temperature T from p0; x = g(z);
    z_reencoded ~ q(z given x), or its mean; F(z_reencoded)

The caller mixes its cross-entropy with the real labels': real_fraction CE(real) + (1 - real_fraction) CE(this chain).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call

from synthsieve.io.random_streams import draw_rows
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.encoder import WHOLE, GradientScale
from synthsieve.models.generator import Generator
from synthsieve.sampling import langevin
from synthsieve.settings import Classify, GradientThrough, ImplicitSettings
from synthsieve.training import objectives


@dataclass(frozen=True)
class ImplicitChain:
    """One pass through the model and back, with whatever gradient its settings let through."""

    y: Tensor  # the requested classes, int64 (n,)
    z: Tensor  # where the Langevin chains ended, (n, latent_dim)
    x: Tensor  # their decoding g(z), (n, *shape)
    z_reencoded: Tensor  # a draw of q(z given x), or its mean, (n, latent_dim)
    logits: Tensor  # F(z_reencoded), (n, num_classes)


def implicit_cross_entropy(
    model: GenerativeClassifier,
    n: int,
    *,
    settings: ImplicitSettings,
    step_size: float,
    train_on: Classify,
    share: GradientScale = WHOLE,
    rng: torch.Generator,
) -> Tensor:
    """Mean of -log softmax(F(z_reencoded))[y] over n independent chains. A scalar.

    Args:
        train_on: which z of q(z given x) is classified.
        share: the factor on the gradient of each tower. A tower with factor 0 passes none on to x either.
        rng: draws y, then the start, the chains' noise, and the z of q(z given x).
    """
    y = uniform_classes(model, n, rng=rng)
    start = model.prior.reference_sample(n, rng=rng)
    chain = run_chain(model, y, start, settings=settings, step_size=step_size, train_on=train_on, share=share, rng=rng)
    return objectives.cross_entropy(chain.logits, chain.y)


def uniform_classes(model: GenerativeClassifier, n: int, *, rng: torch.Generator) -> Tensor:
    """Classes to request: each y[i] is uniform, and together they hold each class as equally often as n allows.

    y[i] = order[i mod num_classes], order a random permutation of the classes. int64 (n,), where the energy's weights
    are.
    """
    if n < 1:
        raise ValueError(f"the implicit form needs 1 chain or more; got {n}")
    order = torch.randperm(model.num_classes, generator=rng, device=rng.device)
    y = draw_rows(lambda size: order[torch.arange(size[0], device=rng.device) % len(order)], (n,), rng)
    return y.to(next(model.energy.parameters(), y).device)


def run_chain(
    model: GenerativeClassifier,
    y: Tensor,
    start: Tensor,
    *,
    settings: ImplicitSettings,
    step_size: float,
    train_on: Classify,
    share: GradientScale = WHOLE,
    rng: torch.Generator,
) -> ImplicitChain:
    """The chain from given classes, y int64 (n,), and given starts (n, latent_dim). No `.grad` is touched.

    The energy gets the gradient of F(z_reencoded); with `gradient` all or last, that of its part in moving z too.
    """
    z = langevin.run(
        model.prior.conditional(y),
        start,
        settings=langevin.LangevinSettings(settings.num_steps, step_size, settings.temperature),
        rng=rng,
        differentiable=settings.gradient is not GradientThrough.NOTHING,
        gradient_steps=settings.gradient_steps if settings.gradient is GradientThrough.LAST else None,
    ).z
    x = _decode_frozen(model.generator, z) if settings.freeze_generator else model.generator(z)
    q = model.posterior(x, share)
    z_reencoded = q.mean if train_on is Classify.MEAN else q.sample(rng=rng)
    return ImplicitChain(y=y, z=z, x=x, z_reencoded=z_reencoded, logits=model.energy.class_logits(z_reencoded))


def _decode_frozen(generator: Generator, z: Tensor) -> Tensor:
    """x = g(z) with g's weights as constants: only z gets a gradient. (n, latent_dim) -> (n, *shape).

    No graph is recorded when z needs no gradient.
    """
    constants = {name: weight.detach() for name, weight in generator.named_parameters()}
    with torch.set_grad_enabled(z.requires_grad and torch.is_grad_enabled()):
        x: Tensor = functional_call(generator, constants, (z,))
    return x
