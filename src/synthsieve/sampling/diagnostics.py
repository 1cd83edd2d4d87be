"""Diagnostics of a finished run of chains."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

QUANTILES = (0.05, 0.95)


@dataclass(frozen=True)
class Diagnostics:
    """Measurements of a run, averaged over its chains.

    The unadjusted sampler accepts every move, so there is no acceptance rate; `drift_ratio` replaces it.

    Attributes:
        log_density: mean log p (up to the density's constant) at the start and after each step. (num_steps + 1,),
            float64, on the CPU.
        log_density_range: its 5 % and 95 % quantiles over the chains there. (num_steps + 1, 2), float64.
        squared_displacement: mean of (z' - z)^2 over chains and coordinates, at each step. (num_steps,), float64.
        noise_displacement: the part of it that comes from the noise, 2 T s.
    """

    log_density: Tensor
    log_density_range: Tensor
    squared_displacement: Tensor
    noise_displacement: float

    @property
    def drift_ratio(self) -> Tensor:
        """Squared displacement over its noise part, at each step: mean (z' - z)^2 / (2 T s). (num_steps,).

        1 + s mean(grad^2) / (2 T) on average: near 1 for small steps; 1 / (1 - s/2) for a converged chain on N(0, I);
        far above 1 if the gradient dominates (not converged, or s too large). Infinite at T = 0.
        """
        return self.squared_displacement / torch.tensor(self.noise_displacement, dtype=torch.float64)

    @property
    def final_log_density(self) -> float:
        """Mean log-density at the final positions."""
        return float(self.log_density[-1])

    @property
    def late_climb(self) -> float:
        """Change of the mean log-density over the last quarter of the steps. About 0 for a converged chain."""
        num_steps = len(self.squared_displacement)
        return float(self.log_density[num_steps] - self.log_density[num_steps - math.ceil(num_steps / 4)])


class Recorder:
    """Collects the `Diagnostics` of a run step by step."""

    def __init__(self) -> None:
        self._log_density: list[Tensor] = []
        self._range: list[Tensor] = []
        self._squared_displacement: list[Tensor] = []

    def start(self, log_density: Tensor) -> None:
        """Record the log-density of each chain at its start. (n,)."""
        self._record(log_density)

    def step(self, before: Tensor, after: Tensor, log_density: Tensor) -> None:
        """Record one step: positions before and after, (n, d), and the log-density after, (n,)."""
        self._squared_displacement.append((after.detach() - before.detach()).double().square().mean())
        self._record(log_density)

    def finish(self, noise_displacement: float) -> Diagnostics:
        """The measurements of the whole run."""
        empty = torch.empty(0, dtype=torch.float64)
        return Diagnostics(
            log_density=torch.stack(self._log_density).cpu(),
            log_density_range=torch.stack(self._range).cpu(),
            squared_displacement=torch.stack(self._squared_displacement).cpu() if self._squared_displacement else empty,
            noise_displacement=noise_displacement,
        )

    def _record(self, log_density: Tensor) -> None:
        each = log_density.detach().double()
        self._log_density.append(each.mean())
        self._range.append(torch.quantile(each, torch.tensor(QUANTILES, dtype=each.dtype, device=each.device)))
