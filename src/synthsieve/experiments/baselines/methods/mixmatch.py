"""MixMatch: guessed and sharpened labels of unlabelled examples, then mixup of everything with everything.

David Berthelot, Nicholas Carlini, Ian Goodfellow, Avital Oliver, Nicolas Papernot and Colin Raffel, "MixMatch: A
Holistic Approach to Semi-Supervised Learning", NeurIPS 2019, Algorithm 1.
"""

from __future__ import annotations

import torch

from synthsieve.experiments.baselines.protocol import BenchmarkMethod
from synthsieve.experiments.baselines.views import mixed, noisy
from synthsieve.models.networks.layers import fixed_statistics
from synthsieve.training.step import Batch

VIEWS, TEMPERATURE, ALPHA = 2, 0.5, 0.75
RAMP = 0.3


class MixMatch(BenchmarkMethod):
    """Two views of each u; q = sharpened mean of their predictions; mixup; CE on x', |q - p|^2 on u'.

    Views are Gaussian noise and the dropout of the network, where the publication shifts and flips images.
    """

    name = "mixmatch"
    cites = "Berthelot 2019"
    grid = ({"weight": 10.0}, {"weight": 75.0}, {"weight": 1.0})

    def init(self, weight: float) -> None:
        self.build_classifier()
        self.weight = weight

    def step(self, batch: Batch) -> None:
        rng, n = self.rngs["noise"], len(batch.labeled_x)
        x = noisy(self.embed(batch.labeled_x), rng=rng)
        u = self.embed(batch.unlabeled_x)
        views = torch.cat([noisy(u, rng=rng) for _ in range(VIEWS)])
        with torch.no_grad(), fixed_statistics(self.network):
            guess = self.network(views).softmax(dim=1).unflatten(0, (VIEWS, -1)).mean(dim=0)
        sharp = guess ** (1 / TEMPERATURE)
        sharp = sharp / sharp.sum(dim=1, keepdim=True)
        targets = torch.cat([self.one_hot(batch.labeled_y), sharp.repeat(VIEWS, 1)])
        inputs, targets = mixed(torch.cat([x, views]), targets, alpha=ALPHA, rng=rng)
        log_p = self.network(inputs).log_softmax(dim=1)
        weights = 1.0 if batch.labeled_weights is None else batch.labeled_weights
        labeled = -(weights * (targets[:n] * log_p[:n]).sum(dim=1)).mean()
        unlabeled = (targets[n:] - log_p[n:].exp()).square().mean()
        self.descend(labeled + self.weight * self.ramp(RAMP) * unlabeled)
