"""What chains did on their way: log-density and displacement at each step."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

QUANTILES = (0.05, 0.95)


@dataclass
class Diagnostics:
    """Measurements of a run of chains, collected step by step.

    The unadjusted sampler accepts every move, so there is no acceptance rate; `drift_ratio` replaces it.

    Attributes:
        noise_displacement: the part of the squared displacement that comes from the noise, 2 T s.
    """

    noise_displacement: float
    _log_density: list[Tensor] = field(default_factory=list)
    _displacement: list[Tensor] = field(default_factory=list)

    def record(self, log_density: Tensor, moved: Tensor | None = None) -> None:
        """The log-density of each chain (n,), and the move (n, d) that led there; None at the start."""
        self._log_density.append(log_density.detach().double())
        if moved is not None:
            self._displacement.append(moved.detach().double().square().mean())

    @property
    def log_density(self) -> Tensor:
        """Mean log p, up to the density's constant, at the start and after each step. (num_steps + 1,), float64."""
        return torch.stack(self._log_density).mean(dim=1).cpu()

    @property
    def log_density_range(self) -> Tensor:
        """Its 5 % and 95 % quantiles over the chains there. (num_steps + 1, 2), float64."""
        each = torch.stack(self._log_density)
        return torch.quantile(each, torch.tensor(QUANTILES).to(each), dim=1).T.cpu()

    @property
    def squared_displacement(self) -> Tensor:
        """Mean of (z' - z)^2 over chains and coordinates, at each step. (num_steps,), float64."""
        return torch.stack(self._displacement).cpu() if self._displacement else torch.empty(0, dtype=torch.float64)

    @property
    def drift_ratio(self) -> Tensor:
        """Squared displacement over its noise part, at each step: mean (z' - z)^2 / (2 T s). (num_steps,).

        1 + s mean(grad^2) / (2 T) on average: near 1 for small steps; 1 / (1 - s/2) for a converged chain on N(0, I);
        far above 1 if the gradient dominates (not converged, or s too large). Infinite at T = 0.
        """
        return self.squared_displacement / torch.tensor(self.noise_displacement, dtype=torch.float64)

    @property
    def late_climb(self) -> float:
        """Change of the mean log-density over the last quarter of the steps. About 0 for a converged chain."""
        num_steps = len(self._displacement)
        return float(self.log_density[num_steps] - self.log_density[num_steps - math.ceil(num_steps / 4)])
