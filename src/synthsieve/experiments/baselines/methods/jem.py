"""JEM: the logits of a classifier are an energy of x, whose density is learned from samples by Langevin dynamics.

Will Grathwohl, Kuan-Chieh Wang, Joern-Henrik Jacobsen, David Duvenaud, Mohammad Norouzi and Kevin Swersky, "Your
Classifier is Secretly an Energy Based Model and You Should Treat it Like One", ICLR 2020, Algorithm 1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from synthsieve.experiments.baselines.protocol import BenchmarkMethod
from synthsieve.training.step import Batch

CHAIN_STEPS, STEP_SIZE, NOISE = 20, 1.0, 0.01
BUFFER, RESTART = 2000, 0.05


class JEM(BenchmarkMethod):
    """loss = CE(x, y) + weight (f(sample) - f(u)), f = logsumexp of the logits, log p(x) = f(x) + const.

    Samples come from chains x' = x + step/2 grad f(x) + noise that continue from a replay buffer, of which one in
    twenty starts again at uniform noise.
    """

    name = "jem"
    cites = "Grathwohl 2020"
    grid = ({"weight": 0.1}, {"weight": 1.0}, {"weight": 0.01})
    continuous_only = True

    def init(self, weight: float) -> None:
        self.build_classifier()
        self.weight = weight

    def step(self, batch: Batch) -> None:
        sample = self._sample(batch.unlabeled_x)
        labeled, unlabeled, drawn = self.logits(batch.labeled_x, batch.unlabeled_x, sample)
        contrast = drawn.logsumexp(dim=1).mean() - unlabeled.logsumexp(dim=1).mean()
        self.descend(self.cross_entropy(labeled, batch) + self.weight * contrast)

    def _sample(self, like: Tensor) -> Tensor:
        """Chains from the replay buffer, as many as `like` has rows; the buffer is updated."""
        rng, low, high = self.rngs["noise"], like.min(), like.max()

        def uniform(count: int) -> Tensor:
            return low + (high - low) * torch.rand((count, *like.shape[1:]), generator=rng).to(like.device)

        if "buffer" not in self.memory:
            self.memory["buffer"] = uniform(BUFFER)
        rows = torch.randint(BUFFER, (len(like),), generator=rng).to(like.device)
        restart = (torch.rand(len(like), generator=rng) < RESTART).to(like.device)
        x = self.memory["buffer"][rows]
        x[restart] = uniform(len(like))[restart]
        self.network.eval()
        for _ in range(CHAIN_STEPS):
            x = x.detach().requires_grad_()
            (uphill,) = torch.autograd.grad(self.network(x).logsumexp(dim=1).sum(), x)
            x = x + 0.5 * STEP_SIZE * uphill + NOISE * self.normal(*x.shape)
        self.network.train()
        self.memory["buffer"][rows] = x.detach()
        return x.detach()
