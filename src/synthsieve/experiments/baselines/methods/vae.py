"""M1+M2: a variational autoencoder gives features, a semi-supervised one on top of them classifies.

Diederik Kingma, Danilo Rezende, Shakir Mohamed and Max Welling, "Semi-supervised Learning with Deep Generative Models",
NeurIPS 2014.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from synthsieve.experiments.baselines.protocol import BenchmarkMethod
from synthsieve.models.encoder import Posterior
from synthsieve.training.step import Batch

M1_SHARE = 0.5  # of the budget
RANGE = (-2.0, 1.0)  # of log scales
RAMP = 0.75  # of the budget: until then the unlabelled term of M2 rises, so that labels name the classes first


class M1M2(BenchmarkMethod):
    """First M1, an autoencoder of x with latents z1; then M2 on draws of z1, with the class y and latents z2.

    M1 raises E_q log p(x given z1) - KL(q(z1 given x) || N(0, I)).
    M2 lowers L(z1, y) on labelled and U(z1) = sum_y q(y given z1) L(z1, y) - H(q(y given z1)) on unlabelled
    examples, and `alpha` CE(q(y given z1), y) on the labelled, where
    -L(z1, y) = E_q log p(z1 given y, z2) + log p(y) - KL(q(z2 given z1, y) || N(0, I)).
    """

    name = "vae-m1m2"
    cites = "Kingma 2014"
    grid = ({"alpha": 100.0}, {"alpha": 10.0}, {"alpha": 1000.0})

    def init(self, alpha: float) -> None:
        self.build_classifier()  # the encoder is that of M1, F is q(y given z1)
        self.alpha = alpha
        self.latent_dim, width = self.task.model.latent_dim, self.task.model.energy_width
        classes = self.task.num_classes
        self.decoder = self.generator(self.latent_dim)
        self.inference = self.mlp(self.latent_dim + classes, width, 2 * self.latent_dim)
        self.generation = self.mlp(self.latent_dim + classes, width, 2 * self.latent_dim)
        self.optimise("m1", [*self.network.encoder.parameters(), *self.decoder.parameters()])
        of_m2 = (self.network.energy, self.inference, self.generation)
        self.optimise("m2", [weight for part in of_m2 for weight in part.parameters()])

    @property
    def phase(self) -> str:
        return "M1" if self.done < M1_SHARE else "M2"

    @property
    def ready(self) -> bool:
        return self.phase == "M2"

    def rate_at(self, done: float) -> float:
        """Each of the two has its own schedule."""
        return super().rate_at(done / M1_SHARE if done < M1_SHARE else (done - M1_SHARE) / (1 - M1_SHARE))

    def step(self, batch: Batch) -> None:
        if self.phase == "M1":
            self._learn_m1(torch.cat([batch.labeled_x, batch.unlabeled_x]))
        else:
            self._learn_m2(batch)

    def _learn_m1(self, x: Tensor) -> None:
        q = self.network.encoder(x)
        z = q.sample(rng=self.rngs["noise"])
        elbo = self.decoder.log_prob(x, z) - q.kl_to_reference().sum(dim=1)
        self.descend(-elbo.mean(), "m1")

    def _learn_m2(self, batch: Batch) -> None:
        n, m, classes = len(batch.labeled_x), len(batch.unlabeled_x), self.task.num_classes
        self.network.encoder.eval()
        with torch.no_grad():
            q1 = self.network.encoder(torch.cat([batch.labeled_x, batch.unlabeled_x]))
            z1 = q1.sample(rng=self.rngs["noise"])
        logits = self.network.energy.class_logits(z1)
        labeled = self._bound(z1[:n], self.one_hot(batch.labeled_y)).mean()
        every_class = torch.eye(classes, device=z1.device).repeat(m, 1)
        each = self._bound(z1[n:].repeat_interleave(classes, dim=0), every_class).view(m, classes)
        log_q = logits[n:].log_softmax(dim=1)
        unlabeled = (log_q.exp() * (each + log_q)).sum(dim=1).mean()  # U; the entropy is -sum q log q
        loss = labeled + self.ramp(RAMP, M1_SHARE) * unlabeled + self.alpha * self.cross_entropy(logits[:n], batch)
        self.descend(loss, "m2")

    def _bound(self, z1: Tensor, y: Tensor) -> Tensor:
        """L(z1, y) of each row; y one-hot. (n,)."""
        q2 = _gaussian(self.inference(torch.cat([z1, y], dim=1)))
        p1 = _gaussian(self.generation(torch.cat([q2.sample(rng=self.rngs["noise"]), y], dim=1)))
        normalized = (z1 - p1.mean) * (-p1.log_scale).exp()
        log_p = -(0.5 * normalized.square() + p1.log_scale + 0.5 * math.log(2 * math.pi)).sum(dim=1)
        return q2.kl_to_reference().sum(dim=1) - log_p + math.log(self.task.num_classes)


def _gaussian(output: Tensor) -> Posterior:
    mean, log_scale = output.chunk(2, dim=1)
    low, high = RANGE
    return Posterior(mean, low + (high - low) * nn.functional.sigmoid(log_scale))
