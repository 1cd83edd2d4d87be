"""Views of an example that need no knowledge of what it is: noise, masking and mixing of its encoded numbers.

Dropout of the network, where the settings have it, adds to every view.
"""

from __future__ import annotations

import torch
from torch import Tensor

WEAK_NOISE = 0.15  # standard deviation of noise, in standard deviations of the batch
STRONG_NOISE = 0.3
MASKED = 0.25  # share of positions that a strong view takes from another example


def noisy(x: Tensor, *, rng: torch.Generator, scale: float = WEAK_NOISE) -> Tensor:
    """x + scale std(x) noise. (n, ...), embedded."""
    return x + scale * x.std() * torch.randn(x.shape, generator=rng).to(x.device)


def masked(x: Tensor, *, rng: torch.Generator, share: float = MASKED) -> Tensor:
    """x with a share of its positions taken from another example of the batch: pixels, columns, words. (n, ...)."""
    positions = {2: x.shape, 3: (*x.shape[:2], 1), 4: (len(x), 1, *x.shape[2:])}.get(x.dim(), x.shape)
    mask = (torch.rand(positions, generator=rng) < share).to(x.device)
    return torch.where(mask, x[torch.randperm(len(x), generator=rng).to(x.device)], x)


def strong(x: Tensor, *, rng: torch.Generator) -> Tensor:
    """Masked, then noisy."""
    return noisy(masked(x, rng=rng), rng=rng, scale=STRONG_NOISE)


def mixed(x: Tensor, p: Tensor, *, alpha: float, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """mixup (Zhang 2018) of each example and its targets (n, num_classes) with another one's; more of its own.

    lambda ~ Beta(alpha, alpha), lambda' = max(lambda, 1 - lambda).
    """
    shares = torch._sample_dirichlet(torch.full((len(x), 2), alpha), generator=rng).amax(dim=1).to(x.device)
    other = torch.randperm(len(x), generator=rng).to(x.device)
    share_x, share_p = shares.view(-1, *[1] * (x.dim() - 1)), shares[:, None]
    return share_x * x + (1 - share_x) * x[other], share_p * p + (1 - share_p) * p[other]
