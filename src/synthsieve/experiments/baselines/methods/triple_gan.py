"""Triple-GAN: a classifier and a generator of labelled examples, against a discriminator of pairs (x, y).

Chongxuan Li, Kun Xu, Jun Zhu and Bo Zhang, "Triple Generative Adversarial Nets", NeurIPS 2017, Algorithm 1.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from synthsieve.experiments.baselines.protocol import BenchmarkMethod, Classifier
from synthsieve.models.networks.layers import attach_rng, fixed_statistics
from synthsieve.training.step import Batch

LATENTS = 32
ADVERSARIAL = 0.1  # weight of the classifier's adversarial loss (alpha_C)
START, END = 0.2, 0.4  # of the budget: when the generated examples begin to train the classifier


class TripleGAN(BenchmarkMethod):
    """Pairs (x, y) of the data, (G(z, y), y) of the generator and (u, argmax C(u)) of the classifier.

    D tells the first from the others. G and C try to fool it, C by E over y ~ p(y given u) of -log D(u, y); C also
    learns the labels, and the generated pairs with weight `generated` (alpha_P). The discriminator has the network of
    the classifier and sees y with its features. The publication also adds a consistency loss on some data; there is
    none here.
    """

    name = "triple-gan"
    cites = "Li 2017"
    grid = ({"generated": 0.1}, {"generated": 0.03}, {"generated": 0.5})
    continuous_only = True

    def init(self, generated: float) -> None:
        self.build_classifier()
        self.generated = generated
        classes, latent_dim = self.task.num_classes, self.task.model.latent_dim
        self.maker = self.generator(LATENTS + classes)
        # The eye and the head of D.
        self.eye = Classifier(self.task, rng=self.rngs["weights"]).encoder.to(self.task.device)
        attach_rng(self.eye, self.rngs["dropout"])
        self.head = self.mlp(latent_dim + classes, self.task.model.energy_width, 1)
        self.optimise("generator", self.maker.parameters(), momentum=0.5)
        self.optimise("discriminator", [*self.eye.parameters(), *self.head.parameters()], momentum=0.5)

    def step(self, batch: Batch) -> None:
        x, u = batch.labeled_x, batch.unlabeled_x
        y = self.random_classes(len(u))
        fake = self.maker(torch.cat([self.normal(len(u), LATENTS), self.one_hot(y)], dim=1))
        labeled, unlabeled = self.logits(x, u)
        guess = unlabeled.argmax(dim=1)

        real = functional.softplus(-self._discriminate(x, batch.labeled_y)).mean()
        wrong = functional.softplus(self._discriminate(torch.cat([fake.detach(), u]), torch.cat([y, guess]))).mean()
        self.descend(real + wrong, "discriminator")

        self.descend(functional.softplus(-self._discriminate(fake, y)).mean(), "generator")

        with torch.no_grad():
            classes = torch.arange(self.task.num_classes, device=u.device).expand(len(u), -1)
            fooled = functional.softplus(-self._discriminate_classes(u, classes))
        adversarial = (unlabeled.softmax(dim=1) * fooled).sum(dim=1).mean()
        loss = self.cross_entropy(labeled, batch) + ADVERSARIAL * adversarial
        with fixed_statistics(self.network):
            generated = functional.cross_entropy(self.network(fake.detach()), y)
        self.descend(loss + self.generated * self.ramp(END, START) * generated)

    def _discriminate(self, x: Tensor, y: Tensor) -> Tensor:
        """The discriminator's logits: high for pairs of the data. (n,)."""
        return self._discriminate_classes(x, y[:, None])[:, 0]

    def _discriminate_classes(self, x: Tensor, y: Tensor) -> Tensor:
        """The same for several classes of each x. (n, *shape), int64 (n, k) -> (n, k)."""
        seen = self.eye(x).mean[:, None].expand(-1, y.shape[1], -1)
        logits: Tensor = self.head(torch.cat([seen, self.one_hot(y)], dim=2))
        return logits[:, :, 0]
