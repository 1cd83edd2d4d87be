"""Pseudo-labels: the predicted class of an unlabelled example is its label, with a weight that rises slowly.

Dong-Hyun Lee, "Pseudo-Label: The Simple and Efficient Semi-Supervised Learning Method for Deep Neural Networks",
ICML 2013 workshop on challenges in representation learning.
"""

from __future__ import annotations

from torch.nn import functional

from synthsieve.experiments.baselines.protocol import BenchmarkMethod
from synthsieve.training.step import Batch

START, END = 0.1, 0.6  # of the budget: as epochs 100 and 600 of the publication's 1,000 or so


class PseudoLabeling(BenchmarkMethod):
    """loss = CE(x, y) + alpha(t) CE(u, argmax p(u)), alpha from 0 to `weight` (3 in the publication)."""

    name = "pseudo-labels"
    cites = "Lee 2013"
    grid = ({"weight": 3.0}, {"weight": 1.0}, {"weight": 0.3})

    def init(self, weight: float) -> None:
        self.build_classifier()
        self.weight = weight

    def step(self, batch: Batch) -> None:
        labeled, unlabeled = self.logits(batch.labeled_x, batch.unlabeled_x)
        alpha = self.weight * self.ramp(END, START)
        guessed = functional.cross_entropy(unlabeled, unlabeled.detach().argmax(dim=1))
        self.descend(self.cross_entropy(labeled, batch) + alpha * guessed)
