"""Supervised learning from the labels alone, with the network of all other methods."""

from __future__ import annotations

from synthsieve.experiments.baselines.protocol import BenchmarkMethod
from synthsieve.training.step import Batch


class Supervised(BenchmarkMethod):
    """The cross-entropy of the labelled examples, and nothing else; the learning rate is tried."""

    name = "supervised"
    cites = "the labels alone"
    grid = ({"rate": 1.0}, {"rate": 0.3}, {"rate": 3.0})

    def init(self, rate: float) -> None:
        self.build_classifier(rate)

    def step(self, batch: Batch) -> None:
        self.descend(self.cross_entropy(self.network(batch.labeled_x), batch))
