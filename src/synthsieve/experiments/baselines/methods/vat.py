"""Virtual adversarial training, with entropy minimisation.

Takeru Miyato, Shin-ichi Maeda, Masanori Koyama and Shin Ishii, "Virtual Adversarial Training: A Regularization Method
for Supervised and Semi-Supervised Learning", TPAMI 2018.
"""

from __future__ import annotations

from synthsieve.experiments.baselines.protocol import BenchmarkMethod, entropy
from synthsieve.models.networks.layers import fixed_statistics
from synthsieve.training import objectives
from synthsieve.training.step import Batch


class VAT(BenchmarkMethod):
    """loss = CE(x, y) + KL(p(u) || p(u + r)) + H(p(u)), r the direction of length `radius` in which p turns most.

    The radius, which the publication calls the only one to tune, is a multiple of `training.smoothness_radius`.
    """

    name = "vat"
    cites = "Miyato 2018"
    grid = ({"radius": 1.0}, {"radius": 0.5}, {"radius": 2.0})

    def init(self, radius: float) -> None:
        self.build_classifier()
        self.radius = radius * self.task.settings.training.smoothness_radius

    def step(self, batch: Batch) -> None:
        labeled, unlabeled = self.logits(batch.labeled_x, batch.unlabeled_x)
        log_p = unlabeled.detach().log_softmax(dim=1)
        u, rng = self.network.encoder.embed(batch.unlabeled_x), self.rngs["noise"]
        with fixed_statistics(self.network):
            roughness = objectives.roughness(self.network.of_embedded, u, log_p, radius=self.radius, rng=rng)
        self.descend(self.cross_entropy(labeled, batch) + roughness + entropy(unlabeled))
