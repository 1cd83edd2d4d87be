"""Mean Teacher: the prediction of averaged weights is the target of the weights.

Antti Tarvainen and Harri Valpola, "Mean teachers are better role models: Weight-averaged consistency targets improve
semi-supervised deep learning results", NeurIPS 2017.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from synthsieve.experiments.baselines.protocol import BenchmarkMethod
from synthsieve.experiments.baselines.views import noisy
from synthsieve.training.step import Batch

RAMP = 0.3


class MeanTeacher(BenchmarkMethod):
    """loss = CE(x, y) + w(t) mean |p_student(u + noise) - p_teacher(u + other noise)|^2.

    The teacher is the average of weights that every method here predicts with; it has no dropout. The noise is
    Gaussian; the publication also shifts and flips images.
    """

    name = "mean-teacher"
    cites = "Tarvainen and Valpola 2017"
    grid = ({"weight": 10.0}, {"weight": 30.0}, {"weight": 3.0})

    def init(self, weight: float) -> None:
        self.build_classifier()
        self.weight = weight

    def step(self, batch: Batch) -> None:
        x, u, rng = self.embed(batch.labeled_x), self.embed(batch.unlabeled_x), self.rngs["noise"]
        labeled, student = self.logits(noisy(x, rng=rng), noisy(u, rng=rng))
        with torch.no_grad():
            teacher = self.averaged(noisy(u, rng=rng))
        disagreement = functional.mse_loss(student.softmax(dim=1), teacher.softmax(dim=1))
        w = self.weight * self.sigmoid_ramp(RAMP)
        self.descend(self.cross_entropy(labeled, batch) + w * disagreement)
