"""A mixture of isotropic Gaussians: a target with known density, gradient and weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class GaussianMixture:
    """log p(z) = log sum_k weight_k N(z; mean_k, scale_k^2 I), normalized: a `LogDensity` to test samplers against.

    Attributes:
        weights: of each component, (k,), summing to 1.
        means: of each, (k, d).
        scales: the standard deviation of each, (k,).
    """

    weights: Tensor
    means: Tensor
    scales: Tensor

    def __post_init__(self) -> None:
        shapes = tuple(self.weights.shape), tuple(self.scales.shape), tuple(self.means.shape)
        k = len(self.weights)
        if shapes[:2] != ((k,), (k,)) or self.means.ndim != 2 or len(self.means) != k:
            raise ValueError(f"weights and scales must be (k,) and means (k, d); got {', '.join(map(str, shapes))}")
        if bool((self.scales <= 0).any()) or bool((self.weights < 0).any()):
            raise ValueError("scales must be above 0 and weights 0 or more")
        if abs(float(self.weights.sum()) - 1) > 1e-5:
            raise ValueError(f"weights must sum to 1; got {float(self.weights.sum())}")

    def value(self, z: Tensor) -> Tensor:
        """log p(z), differentiable. (n, d) -> (n,)."""
        return self._joint(z).logsumexp(dim=1)

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """log p(z) and its gradient in z: sum_k p(k given z) (mean_k - z) / scale_k^2. (n, d) -> (n,), (n, d)."""
        with torch.no_grad():
            joint = self._joint(z)
            pull = joint.softmax(dim=1) / self.scales.square()  # (n, k)
            return joint.logsumexp(dim=1), pull @ self.means - pull.sum(dim=1, keepdim=True) * z

    def responsibilities(self, z: Tensor) -> Tensor:
        """p(k given z), the posterior over components. (n, d) -> (n, k), rows sum to 1."""
        return self._joint(z).softmax(dim=1)

    def sample(self, n: int, *, rng: torch.Generator) -> Tensor:
        """Independent samples, (n, d)."""
        component = torch.multinomial(self.weights, n, replacement=True, generator=rng)
        noise = torch.randn(n, self.means.shape[1], dtype=self.means.dtype, generator=rng)
        return self.means[component] + self.scales[component, None] * noise

    def _joint(self, z: Tensor) -> Tensor:
        """log (weight_k N(z; mean_k, scale_k^2 I)). (n, d) -> (n, k)."""
        squared = (z[:, None, :] - self.means).square().sum(dim=2)  # (n, k)
        normaliser = z.shape[1] * (self.scales.log() + 0.5 * torch.log(torch.tensor(2 * torch.pi, dtype=z.dtype)))
        return self.weights.log() - 0.5 * squared / self.scales.square() - normaliser
