"""FixMatch: the confident prediction on a weak view is the label of a strong view.

Kihyuk Sohn, David Berthelot, Chun-Liang Li and others, "FixMatch: Simplifying Semi-Supervised Learning with Consistency
and Confidence", NeurIPS 2020, Algorithm 1.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from synthsieve.experiments.baselines.protocol import BenchmarkMethod
from synthsieve.experiments.baselines.views import noisy, strong
from synthsieve.models.networks.layers import fixed_statistics
from synthsieve.training.step import Batch


class FixMatch(BenchmarkMethod):
    """loss = CE(x, y) + mean 1[max p(weak u) > threshold] CE(strong u, argmax p(weak u)).

    A weak view has Gaussian noise; a strong one has more noise, and a quarter of its positions from another example.
    The publication's views are shifts and flips, and RandAugment with Cutout, which exist for images only. It takes
    seven unlabelled examples for each labelled one; here every method has the same batches.
    """

    name = "fixmatch"
    cites = "Sohn 2020"
    grid = ({"threshold": 0.95}, {"threshold": 0.8}, {"threshold": 0.99})

    def init(self, threshold: float) -> None:
        self.build_classifier()
        self.threshold = threshold

    def step(self, batch: Batch) -> None:
        x, u, rng = self.embed(batch.labeled_x), self.embed(batch.unlabeled_x), self.rngs["noise"]
        with torch.no_grad(), fixed_statistics(self.network):
            confidence, guess = self.network(noisy(u, rng=rng)).softmax(dim=1).max(dim=1)
        labeled, unlabeled = self.logits(noisy(x, rng=rng), strong(u, rng=rng))
        each = functional.cross_entropy(unlabeled, guess, reduction="none")
        self.descend(self.cross_entropy(labeled, batch) + ((confidence > self.threshold) * each).mean())
