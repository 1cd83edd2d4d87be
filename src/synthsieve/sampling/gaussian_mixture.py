"""A mixture of round Gaussians: a target whose density, gradient and shares are all known."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class GaussianMixture:
    """log p(z) = log sum_k weight_k N(z; mean_k, scale_k^2 I), normalised.

    It is a `LogDensity` with its gradient in closed form: what samplers are tested against.

    Attributes:
        weights: the share of each component, (k,), summing to 1.
        means: where each sits, (k, d).
        scales: the standard deviation of each, (k,).
    """

    weights: Tensor
    means: Tensor
    scales: Tensor

    def __post_init__(self) -> None:
        components = len(self.weights)
        if self.weights.shape != (components,) or self.scales.shape != (components,) or self.means.ndim != 2:
            raise ValueError(
                f"weights and scales must be (k,) and means (k, d); got {tuple(self.weights.shape)}, "
                f"{tuple(self.scales.shape)} and {tuple(self.means.shape)}"
            )
        if len(self.means) != components or bool((self.scales <= 0).any()) or bool((self.weights < 0).any()):
            raise ValueError("a mixture needs a mean, a scale above 0 and a weight of 0 or more for each component")
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
        """p(k given z): which component a z likely came from. (n, d) -> (n, k), rows sum to 1."""
        return self._joint(z).softmax(dim=1)

    def sample(self, n: int, *, generator: torch.Generator) -> Tensor:
        """Independent draws, (n, d)."""
        component = torch.multinomial(self.weights, n, replacement=True, generator=generator)
        noise = torch.randn(n, self.means.shape[1], dtype=self.means.dtype, generator=generator)
        return self.means[component] + self.scales[component, None] * noise

    def _joint(self, z: Tensor) -> Tensor:
        """log (weight_k N(z; mean_k, scale_k^2 I)). (n, d) -> (n, k)."""
        squared = (z[:, None, :] - self.means).square().sum(dim=2)  # (n, k)
        normaliser = z.shape[1] * (self.scales.log() + 0.5 * torch.log(torch.tensor(2 * torch.pi, dtype=z.dtype)))
        return self.weights.log() - 0.5 * squared / self.scales.square() - normaliser
