"""FlowGMM: an invertible network maps x to a mixture of Gaussians, one for each class.

Pavel Izmailov, Polina Kirichenko, Marc Finzi and Andrew Gordon Wilson, "Semi-Supervised Learning with Normalizing
Flows", ICML 2020.
"""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn

from synthsieve.data.dataset import InputSpec
from synthsieve.experiments.baselines.protocol import BenchmarkMethod
from synthsieve.experiments.baselines.views import noisy
from synthsieve.training.step import Batch

LAYERS, WIDTH = 6, 128
RADIUS = 6.0  # of the means, in standard deviations of a component
DEQUANTIZE = 0.1  # standard deviation of noise on x, in standard deviations of x: constant pixels have no density


class Flow(nn.Module):
    """RealNVP (Dinh 2017): z = f(x) by affine couplings, each of which changes the half that the one before kept."""

    order: Tensor

    def __init__(self, scale_and_shift: list[nn.Module], order: Tensor) -> None:
        super().__init__()
        self.couplings = nn.ModuleList(scale_and_shift)
        self.register_buffer("order", order)  # (layers, dim): a permutation of the dimensions for each layer

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """z (n, dim) and log |det dz/dx| (n,)."""
        z, log_det = x.flatten(1), x.new_zeros(len(x))
        for order, coupling in zip(self.order, self.couplings, strict=True):
            kept, changed = z[:, order].tensor_split([(z.shape[1] + 1) // 2], dim=1)
            scale, shift = coupling(kept).chunk(2, dim=1)
            scale = 2 * torch.tanh(scale / 2)
            z = torch.cat([kept, changed * scale.exp() + shift], dim=1)[:, order.argsort()]
            log_det = log_det + scale.sum(dim=1)
        return z, log_det


class FlowGMM(BenchmarkMethod):
    """loss = -log p(x, y) - log p(u); p(x given y) = N(f(x); mean_y, I) |det df/dx|, p(x) = mean over y.

    The means are drawn once in random directions, `spread` times 6 from zero, and stay. The network cannot be the
    encoder of the other methods, which is not invertible.
    """

    name = "flow-gmm"
    cites = "Izmailov 2020"
    grid = ({"spread": 1.0}, {"spread": 0.5}, {"spread": 2.0})
    continuous_only = True

    @classmethod
    def refuses(cls, input_spec: InputSpec) -> str | None:
        if math.prod(input_spec.shape) < 2:
            return "a flow needs two or more numbers for each x"
        return super().refuses(input_spec)

    def init(self, spread: float) -> None:
        dim, rng = math.prod(self.task.input_spec.shape), self.rngs["weights"]
        kept = (dim + 1) // 2
        couplings = [self.mlp(kept, WIDTH, WIDTH, 2 * (dim - kept)) for _ in range(LAYERS)]
        for coupling in couplings:  # the flow starts as the identity
            nn.init.zeros_(coupling.linears()[-1].weight)
        orders = []
        for _ in range((LAYERS + 1) // 2):
            orders.append(torch.randperm(dim, generator=rng))
            orders.append(orders[-1].flip(0))
        self.network = Flow(list(couplings), torch.stack(orders[:LAYERS])).to(self.task.device)
        self.averaged = copy.deepcopy(self.network).requires_grad_(False).eval()
        directions = torch.randn(self.task.num_classes, dim, generator=rng)
        if self.task.num_classes <= dim:  # at equal distances
            directions = torch.linalg.qr(directions.T)[0].T
        means = spread * RADIUS * nn.functional.normalize(directions, dim=1)
        self.memory["means"] = means.to(self.task.device)
        self.optimise("classifier", self.network.parameters())

    def step(self, batch: Batch) -> None:
        n, rng = len(batch.labeled_x), self.rngs["noise"]
        x = noisy(torch.cat([batch.labeled_x, batch.unlabeled_x]), rng=rng, scale=DEQUANTIZE)
        z, log_det = self.network(x)
        each = self._log_normal(z)  # (n, num_classes)
        labeled = each[:n].gather(1, batch.labeled_y[:, None])[:, 0] + log_det[:n]
        weights = 1.0 if batch.labeled_weights is None else batch.labeled_weights
        unlabeled = each[n:].logsumexp(dim=1) + log_det[n:]
        loss = -(weights * labeled).mean() - (unlabeled.mean() if len(unlabeled) else 0.0)
        self.descend(loss / z.shape[1])

    def predict_logits(self, x: Tensor) -> Tensor:
        return self._log_normal(self.averaged(x)[0])

    def _log_normal(self, z: Tensor) -> Tensor:
        """log N(z; mean_y, I) of each class, less the constant. (n, dim) -> (n, num_classes)."""
        means = self.memory["means"]
        return z @ means.T - 0.5 * means.square().sum(dim=1) - 0.5 * z.square().sum(dim=1, keepdim=True)
