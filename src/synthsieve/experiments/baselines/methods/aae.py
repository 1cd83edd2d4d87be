"""Semi-supervised adversarial autoencoder: class and style of x are made to look like draws of their priors.

Alireza Makhzani, Jonathon Shlens, Navdeep Jaitly, Ian Goodfellow and Brendan Frey, "Adversarial Autoencoders",
arXiv 1511.05644, section 4.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from synthsieve.experiments.baselines.protocol import BenchmarkMethod
from synthsieve.training.step import Batch


class AAE(BenchmarkMethod):
    """Three updates a step: reconstruction, regularisation of class and style, and the labels.

    The encoder gives y = softmax F and style z; the decoder p(x given y, z). One discriminator compares y with one-hot
    draws of a class, another z with N(0, I). Each update has its own optimiser, as in the publication; `rate` is a
    factor on the learning rate of the labels.
    """

    name = "aae"
    cites = "Makhzani 2015"
    grid = ({"rate": 1.0}, {"rate": 0.3}, {"rate": 3.0})

    def init(self, rate: float) -> None:
        self.build_classifier(rate)
        latent_dim, width, classes = self.task.model.latent_dim, self.task.model.energy_width, self.task.num_classes
        self.style = self.mlp(latent_dim, width, latent_dim)
        self.decoder = self.generator(latent_dim + classes)
        self.class_critic, self.style_critic = self.mlp(classes, width, 1), self.mlp(latent_dim, width, 1)
        inference = [*self.network.parameters(), *self.style.parameters()]
        self.optimise("reconstruction", [*inference, *self.decoder.parameters()])
        self.optimise("critics", [*self.class_critic.parameters(), *self.style_critic.parameters()], momentum=0.5)
        self.optimise("encoder", inference, rate=0.3, momentum=0.5)

    def step(self, batch: Batch) -> None:
        x = torch.cat([batch.labeled_x, batch.unlabeled_x])
        y, z = self._encode(x)
        self.descend(-self.decoder.log_prob(x, torch.cat([y, z], dim=1)).mean(), "reconstruction")
        y, z = self._encode(batch.unlabeled_x)
        drawn_y, drawn_z = self.one_hot(self.random_classes(len(y))), self.normal(*z.shape)
        fake = self._discriminate(y.detach(), z.detach())
        self.descend(_look_real(self._discriminate(drawn_y, drawn_z)) + _look_real(-fake), "critics")
        self.descend(_look_real(self._discriminate(y, z)), "encoder")
        self.descend(self.cross_entropy(self.network(batch.labeled_x), batch))

    def _encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Class probabilities and style of x."""
        features = self.network.features(x)
        return self.network.energy.class_probabilities(features), self.style(features)

    def _discriminate(self, y: Tensor, z: Tensor) -> Tensor:
        """The logits of both discriminators. (n, 2)."""
        return torch.cat([self.class_critic(y), self.style_critic(z)], dim=1)


def _look_real(logits: Tensor) -> Tensor:
    """-log sigmoid, summed over both: low where the discriminators take them for draws of the priors."""
    return functional.softplus(-logits).mean(dim=0).sum()
