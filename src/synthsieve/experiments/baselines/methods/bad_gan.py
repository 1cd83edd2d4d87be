"""BadGAN: a generator of examples between the classes, which a classifier of K + 1 classes tells from the data.

Zihang Dai, Zhilin Yang, Fan Yang, William Cohen and Ruslan Salakhutdinov, "Good Semi-supervised Learning that Requires
a Bad GAN", NeurIPS 2017.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from synthsieve.experiments.baselines.protocol import BenchmarkMethod, entropy
from synthsieve.models.networks.layers import fixed_statistics
from synthsieve.training.step import Batch

LATENTS = 32
PULL_AWAY = 0.8
ENTROPY = 0.1


class BadGAN(BenchmarkMethod):
    """Classifier: CE(x, y) + weight (u is real + fake is not) + 0.1 H(p(u)); real and fake by f = logsumexp of logits.

    p(real given x) = sigmoid f(x): the logit of the class K + 1 is 0. The generator matches the mean features of the
    data and spreads its samples by the pull-away term. Its low-density term, for which the publication trains a
    density model (PixelCNN++) on images, is left out.
    """

    name = "bad-gan"
    cites = "Dai 2017"
    grid = ({"weight": 1.0}, {"weight": 0.5}, {"weight": 0.1})
    continuous_only = True

    def init(self, weight: float) -> None:
        self.build_classifier()
        self.weight = weight
        self.maker = self.generator(LATENTS)
        self.optimise("generator", self.maker.parameters(), momentum=0.5)

    def step(self, batch: Batch) -> None:
        x, u = batch.labeled_x, batch.unlabeled_x
        fake = self.maker(self.normal(len(u), LATENTS))
        labeled, unlabeled = self.logits(x, u)
        with fixed_statistics(self.network):
            drawn = self.network(fake.detach())
        real = functional.softplus(-unlabeled.logsumexp(dim=1)).mean()
        unreal = functional.softplus(drawn.logsumexp(dim=1)).mean()
        loss = self.cross_entropy(labeled, batch) + self.weight * (real + unreal) + ENTROPY * entropy(unlabeled)
        self.descend(loss)

        with fixed_statistics(self.network):
            features = self.network.features(fake)
            with torch.no_grad():
                wanted = self.network.features(u).mean(dim=0)
        matching = (features.mean(dim=0) - wanted).abs().mean()
        self.descend(matching + PULL_AWAY * pull_away(features), "generator")


def pull_away(features: Tensor) -> Tensor:
    """Mean squared cosine between different rows (n, dim): low where samples differ (Zhao 2017)."""
    unit = functional.normalize(features, dim=1)
    n = len(unit)
    return ((unit @ unit.T).square().sum() - n) / (n * (n - 1))
