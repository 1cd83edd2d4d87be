"""Pi-model: two passes of an unlabelled example, each with its own noise, should agree.

Samuli Laine and Timo Aila, "Temporal Ensembling for Semi-Supervised Learning", ICLR 2017, Algorithm 1.
"""

from __future__ import annotations

from torch.nn import functional

from synthsieve.experiments.baselines.protocol import BenchmarkMethod
from synthsieve.experiments.baselines.views import noisy
from synthsieve.training.step import Batch

RAMP = 0.3  # of the budget: as 80 of 300 epochs


class PiModel(BenchmarkMethod):
    """loss = CE(x, y) + w(t) mean |p(u + noise) - p(u + other noise)|^2.

    The noise is Gaussian, with the dropout of the network; the publication also shifts and flips images.
    """

    name = "pi-model"
    cites = "Laine and Aila 2017"
    grid = ({"weight": 10.0}, {"weight": 30.0}, {"weight": 3.0})

    def init(self, weight: float) -> None:
        self.build_classifier()
        self.weight = weight

    def step(self, batch: Batch) -> None:
        x, u = self.embed(batch.labeled_x), self.embed(batch.unlabeled_x)
        labeled, first, second = self.logits(*(noisy(part, rng=self.rngs["noise"]) for part in (x, u, u)))
        disagreement = functional.mse_loss(first.softmax(dim=1), second.softmax(dim=1))
        w = self.weight * self.sigmoid_ramp(RAMP)
        self.descend(self.cross_entropy(labeled, batch) + w * disagreement)
