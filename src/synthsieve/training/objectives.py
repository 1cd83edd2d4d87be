"""The terms of the objective. Every function returns a number to be maximised or minimised as its name says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from synthsieve.io.random_streams import randn
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.encoder import Posterior
from synthsieve.models.energy import Energy


def contrast(energy: Energy, z_posterior: Tensor, z_prior: Tensor) -> Tensor:
    """What the prior's update raises: f where the data are, minus f where the model's samples are.

    E_q f(z) - E_p f(z) (Algorithm 1, step 4). Both z (n, latent_dim), without a gradient.
    """
    return energy.negative_free_energy(z_posterior).mean() - energy.negative_free_energy(z_prior).mean()


@dataclass(frozen=True)
class Elbo:
    """The three parts of the ELBO of each x, less the constant log Z, in nats. Each (n,)."""

    reconstruction: Tensor
    kl: Tensor
    negative_free_energy: Tensor

    @property
    def total(self) -> Tensor:
        """E_q log p(x given z) - KL(q(z given x) || p0) + E_q f(z). (n,)."""
        return self.reconstruction - self.kl + self.negative_free_energy

    def means(self) -> dict[str, Tensor]:
        """Each part's mean over x, by name."""
        return {name: part.mean() for name, part in vars(self).items()}


def elbo(model: GenerativeClassifier, x: Tensor, q: Posterior, z_posterior: Tensor) -> Elbo:
    """What the encoder's and generator's update raises, by one draw of q for each x (Algorithm 1, step 5)."""
    return Elbo(
        reconstruction=model.generator.log_prob(x, z_posterior),
        kl=q.kl_to_reference().sum(dim=1),
        negative_free_energy=model.energy.negative_free_energy(z_posterior),
    )


def feature_distance(features: Callable[[Tensor], Tensor], x: Tensor, reconstruction: Tensor) -> Tensor:
    """How far a reconstruction is from x in `features` h, (n, *shape) -> (n, k): mean of 0.5 |h(x) - h(g(z))|^2.

    The gradient reaches the reconstruction. In features that classify, errors at the strokes of a digit cost more than
    errors elsewhere.
    """
    with torch.no_grad():
        wanted = features(x)
    return 0.5 * (features(reconstruction) - wanted).square().sum(dim=1).mean()


def cross_entropy(logits: Tensor, y: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean of -log softmax(logits)[y], weighted where there are weights (Algorithm 1, steps 6 and 8).

    y: classes (n,), or soft targets (n, num_classes), for which it is -sum_y p(y) log softmax(logits)[y].
    """
    each = torch.nn.functional.cross_entropy(logits, y, reduction="none")
    return each.mean() if weights is None else (weights * each).mean()


def mutual_information(
    logits: Tensor, over_all: Callable[[Tensor], Tensor] | None = None, *, class_shares: Tensor | None = None
) -> Tensor:
    """How much predictions say about examples: H(mean p) - mean H(p), in nats, at most log num_classes.

    H(mean p) is largest where all classes are predicted equally often. With `class_shares` (num_classes,) the first
    term is -KL(mean p || class_shares) instead, which is largest where classes are predicted in these proportions; for
    equal shares the two differ by the constant log num_classes.
    `over_all` gives the mean of a tensor over all processes, where each sees a part of the batch: mean p is then that
    of the whole batch, and its gradient this process's part of the whole one.
    """
    log_p = logits.log_softmax(dim=1)
    mean_p = log_p.exp().mean(dim=0)
    if over_all is not None:
        mean_p = mean_p + (over_all(mean_p) - mean_p).detach()
    log_mean = mean_p.clamp_min(1e-12).log()
    if class_shares is not None:
        log_mean = log_mean - class_shares.log()
    marginal = -(mean_p * log_mean).sum()
    conditional = -(log_p.exp() * log_p).sum(dim=1).mean()
    return marginal - conditional


def logit_size(logits: Tensor) -> Tensor:
    """Mean square of the class logits and of f: what keeps energies from running away."""
    return logits.square().mean() + logits.logsumexp(dim=1).square().mean()


def divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Mean KL(p || q) over rows of log-probabilities (n, num_classes), in nats."""
    return (log_p.exp() * (log_p - log_q)).sum(dim=1).mean()


CERTAIN = 0.98  # the probability of its class in a confident target: the rest limits the size of the logits


def confident_target(log_p: Tensor, above: float) -> Tensor:
    """log_p (n, num_classes), with the rows whose largest probability is over `above` replaced by (almost) that class.

    Where predictions are nearly always right, this spreads their class nearby (as in FixMatch, Sohn 2020).
    """
    highest, predicted = log_p.max(dim=1, keepdim=True)
    rest = (1 - CERTAIN) / log_p.shape[1]
    certain = torch.full_like(log_p, rest).scatter(1, predicted, CERTAIN + rest).log()
    return torch.where(highest.exp() > above, certain, log_p)


def roughness(
    classify: Callable[[Tensor], Tensor],
    x: Tensor,
    log_p: Tensor,
    *,
    radius: float,
    rng: torch.Generator,
    move: Callable[[Tensor], Tensor] | None = None,
    target: Tensor | None = None,
    probing: Callable[[], AbstractContextManager[None]] = nullcontext,
    transform: Callable[[Tensor], Tensor] = lambda x: x,
) -> Tensor:
    """How far the prediction turns within `radius` of x, in the direction in which it turns most.

    KL(p(y given x) || p(y given x + r)), r = radius g / |g|, g = grad_d KL at a small random d
    (virtual adversarial training, Miyato 2018, one power step). It needs no hand-made transformation of x.

    With `move`, r (n, *) -> x' (n, *shape), differentiable in r, the prediction is that of x' = move(r) instead of
    x + r, and x is any tensor shaped like r. With latents and x' = x + g(z + r) - g(z), x moves as the generator does:
    along the data (TNAR, Yu 2019; LVAT, Osada 2020). Only `classify` gets a gradient.

    Args:
        classify: x (n, *shape) -> logits (n, num_classes), differentiable in what is to be trained.
        log_p: log p(y given x) (n, num_classes), held fixed.
        target: what the prediction at x + r is compared with instead of `log_p`.
        probing: the context in which the direction is found, for example one without dropout.
        transform: what else is done to x + r before the prediction there, for example a shift.
    """
    move = move or (lambda r: x + r)
    probe = _rescale(randn(x.shape, rng=rng).to(x), PROBE).requires_grad_()
    with probing():
        (uphill,) = torch.autograd.grad(divergence(log_p, classify(move(probe)).log_softmax(dim=1)), probe)
    with torch.no_grad():
        moved = transform(move(_rescale(uphill, radius)))
    return divergence(log_p if target is None else target, classify(moved).log_softmax(dim=1))


PROBE = 0.1  # length of the random probe: large enough for float32 differences, small against an image's own norm


def _rescale(direction: Tensor, length: float) -> Tensor:
    """Each example's direction (n, *shape), rescaled to a Euclidean norm of `length`."""
    norms = direction.flatten(1).norm(dim=1).clamp_min(1e-12)
    return direction * (length / norms).view(-1, *[1] * (direction.dim() - 1))
