"""The ways to draw z ~ p(z given y), by name: where chains start, and what they run on.

`langevin` starts at N(0, I) and runs on F(z)[y] + log N(z; 0, I), as in the paper. `mixture` draws from the fitted
reference and takes no step. `mixture+langevin` starts there and runs on log p(y given z) + f(z) + log p_ref(z).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from synthsieve.errors import ConfigError
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.reference import PROPOSALS
from synthsieve.sampling import langevin
from synthsieve.sampling.log_density import LogDensity
from synthsieve.settings import Draw, SamplingSettings

BLOCK = 500  # chains at a time: their noise and images fit in a few megabytes


@dataclass(frozen=True)
class DrawSettings(langevin.LangevinSettings):
    """Options of a draw.

    Attributes:
        draw: the way z is drawn.
    """

    draw: Draw = Draw.LANGEVIN

    @classmethod
    def of(
        cls, sampling: SamplingSettings, *, temperature: float | None = None, num_steps: int | None = None
    ) -> DrawSettings:
        """Those of the settings, with another temperature or number of steps where they are given."""
        return cls(
            num_steps=sampling.num_steps if num_steps is None else num_steps,
            step_size=sampling.step_size,
            temperature=sampling.temperature if temperature is None else temperature,
            draw=sampling.draw,
        )


def resolve(chains: langevin.LangevinSettings, model: GenerativeClassifier) -> DrawSettings:
    """The draw that this model makes of `chains`: `auto` is decided, and `mixture` has no steps."""
    draw = getattr(chains, "draw", Draw.LANGEVIN)
    if draw is Draw.AUTO:
        draw = Draw.LANGEVIN if model.reference is None else Draw.MIXTURE_LANGEVIN
    if draw is not Draw.LANGEVIN and model.reference is None:
        raise ConfigError(
            f"sampling.draw={draw.value} needs a fitted mixture, but this model has none: fit again, or use langevin",
            code="no-mixture",
        )
    num_steps = 0 if draw is Draw.MIXTURE else chains.num_steps
    return DrawSettings(num_steps, chains.step_size, chains.temperature, draw)


@dataclass(frozen=True)
class Chains:
    """Chains before their first step.

    Attributes:
        density: the target, in the coordinates of the chains.
        start: in these coordinates, (n, latent_dim).
        noise: of each step, (num_steps, n, latent_dim).
        settings: of the steps.
        to_z: coordinates -> z, (n, latent_dim) -> (n, latent_dim).
    """

    density: LogDensity
    start: Tensor
    noise: Tensor
    settings: DrawSettings
    to_z: Callable[[Tensor], Tensor]

    def advance(self, position: Tensor, done: int, stop: int) -> Tensor:
        """The position after `stop` steps from that after `done`."""
        leg = replace(self.settings, num_steps=stop - done)
        return langevin.run(self.density, position, settings=leg, noise=self.noise[done:stop]).z


@torch.no_grad()
def start_chains(
    model: GenerativeClassifier,
    y: np.ndarray,
    seeds: np.ndarray,
    *,
    chains: langevin.LangevinSettings,
    pad: bool = True,
) -> Chains:
    """Chains of classes y and `seeds`, (n,) each; with `pad` the last one again until they are BLOCK."""
    settings = resolve(chains, model)
    fill = padded if pad else _as_given
    labels = fill(model.to_tensor(y))
    size = (settings.num_steps, model.energy.latent_dim)
    rngs = [torch.Generator().manual_seed(int(seed)) for seed in seeds]
    if settings.draw is Draw.LANGEVIN:
        drawn = torch.stack([torch.randn((1 + size[0], size[1]), generator=rng) for rng in rngs])
        noise = fill(drawn).transpose(0, 1).contiguous().to(model.device)
        return Chains(model.prior.conditional(labels), noise[0], noise[1:], settings, _as_given)
    uniform = torch.stack([torch.rand((PROPOSALS, 3), generator=rng) for rng in rngs])
    proposal = torch.stack([torch.randn((PROPOSALS, size[1]), generator=rng) for rng in rngs])
    noise = torch.stack([torch.randn(size, generator=rng) for rng in rngs])
    prior = model.fitted_prior
    assert prior is not None
    start = prior.propose(
        labels, fill(uniform).to(model.device), fill(proposal).to(model.device), temperature=settings.temperature
    )
    steps = fill(noise).transpose(0, 1).contiguous().to(model.device)
    return Chains(start.density(), torch.zeros_like(start.origin), steps, settings, start.z)


def padded(rows: Tensor) -> Tensor:
    """The rows, (k, ...), and the last of them again until they are BLOCK."""
    missing = BLOCK - len(rows)
    return torch.cat([rows, rows[-1:].expand(missing, *rows.shape[1:])]) if missing else rows


def _as_given(rows: Tensor) -> Tensor:
    return rows
