"""Drawing labelled samples: z ~ p(z given y), then x = g(z); `models.chains` has the ways to draw z.

Every chain has a seed of its own, from which its start, its noise and its observation noise come: any sample can be
drawn again alone. Chains run and decode in blocks of one size, the last one filled up, because the last bits of a
product depend on how many rows it has.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from synthsieve.data.modalities.encoding import Encoding
from synthsieve.errors import ConfigError
from synthsieve.io.files import atomic_write
from synthsieve.io.printable import listed
from synthsieve.io.progress import NullProgress, Progress
from synthsieve.io.random_streams import derive_seed, torch_stream
from synthsieve.models.chains import BLOCK, padded, start_chains
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.sampling import langevin


@dataclass(frozen=True)
class Samples:
    """Labelled samples."""

    x: np.ndarray  # (n, *shape), as the source stores examples, see `data.dataset.Examples`
    y: np.ndarray  # int64 (n,), class indices, sorted
    z: np.ndarray  # float32 (n, latent_dim), the latents they were decoded from
    chain_seed: np.ndarray  # int64 (n,), each chain's own seed

    def write(self, path: Path, classes: tuple[str, ...]) -> None:
        """An .npz with x, y, classes (text), latent and chain_seed, atomically."""
        with atomic_write(path) as partial, partial.open("wb") as file:
            names = np.asarray(classes)
            np.savez_compressed(file, x=self.x, y=self.y, classes=names, latent=self.z, chain_seed=self.chain_seed)


def draw_samples(
    model: GenerativeClassifier,
    encoding: Encoding,
    *,
    per_class: int,
    chains: langevin.LangevinSettings,
    classes: Sequence[int] | None = None,
    noise: bool = False,
    seed: int,
    progress: Progress | None = None,
) -> Samples:
    """`per_class` samples of every class, or of the indices `classes` alone.

    The samples of a class are the same, bit for bit, whichever other classes are drawn.
    """
    labels = np.arange(model.num_classes) if classes is None else np.unique(classes)
    _check_memory(per_class * len(labels), model)
    y = labels.repeat(per_class)
    seeds = chain_seeds(seed, y)
    drawn = []
    with closing(progress or NullProgress()) as bar:
        for rows, *z_and_x in sample_blocks(model, encoding, y, seeds, chains=chains, noise=noise):
            drawn.append(z_and_x)
            bar.update(rows.stop, len(y))
    z, x = map(np.concatenate, zip(*drawn, strict=True))
    return Samples(x, y, z, seeds)


def sample_blocks(
    model: GenerativeClassifier,
    encoding: Encoding,
    y: np.ndarray,
    seeds: np.ndarray,
    *,
    chains: langevin.LangevinSettings,
    noise: bool = False,
    z: np.ndarray | None = None,
    parts: Iterable[slice] | None = None,
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Rows, z and x of the chains of classes y and `seeds`, (n,) each, a block at a time.

    With `z` (n, latent_dim) these latents are decoded instead of drawing; `parts` are the blocks wanted, all if None.
    """
    for rows in blocks(len(y)) if parts is None else parts:
        latents = draw_latents(model, y[rows], seeds[rows], chains=chains) if z is None else z[rows]
        yield rows, latents, decode(model, encoding, latents, seeds[rows], noise=noise)


def class_indices(names: Sequence[Any], classes: Sequence[Any]) -> tuple[int, ...]:
    """The index in `classes` of each of `names`, ascending; an unknown name is refused with the nearest known one."""
    if not len(names):
        raise ConfigError("expected at least one class to draw, got none: name one, or leave it out", code="no-classes")
    indices, known = set(), list(map(str, classes))
    for name in names:
        index = next((i for i, label in enumerate(classes) if label == name or known[i] == str(name)), None)
        if index is None:
            close = get_close_matches(str(name), known, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}" if close else f"the classes are {listed(known)}"
            raise ConfigError(f"there is no class {str(name)!r} to draw: {hint}?", code="unknown-class")
        indices.add(index)
    return tuple(sorted(indices))


def _check_memory(count: int, model: GenerativeClassifier) -> None:
    """Refuse more samples at once than the memory of this machine can hold, before any is drawn."""
    needed = count * (4 * (math.prod(model.shape) + model.energy.latent_dim) + 16)  # float32 x and z, int64 y and seed
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not every system says
        memory = 16 * 10**9
    if needed > memory:
        raise ConfigError(
            f"{count:,} samples would take about {needed / 1e9:,.0f} GB, but this machine has {memory / 1e9:,.0f} GB:"
            " draw fewer at a time, each time with another seed",
            code="too-many-samples",
        )


def chain_seeds(seed: int, y: np.ndarray) -> np.ndarray:
    """A seed for each chain, from its class and its number within the class: int64 (n,) for y (n,).

    So the chains of a small pool are among those of a larger one.
    """
    numbers = {label: itertools.count() for label in set(y.tolist())}
    return np.array([chain_seed(seed, label, next(numbers[label])) for label in y.tolist()], dtype=np.int64)


def chain_seed(seed: int, label: int, number: int) -> int:
    """The seed of one chain, from its class and its number within the class."""
    return derive_seed(seed, f"chain/{label}/{number}")


@torch.no_grad()
def draw_latents(
    model: GenerativeClassifier, y: np.ndarray, seeds: np.ndarray, *, chains: langevin.LangevinSettings
) -> np.ndarray:
    """z ~ p(z given y), each from its own seed: float32 (n, latent_dim) for y (n,) and seeds (n,)."""
    latents = []
    for rows in blocks(len(y)):
        ready = start_chains(model, y[rows], seeds[rows], chains=chains)
        z = ready.to_z(ready.advance(ready.start, 0, ready.settings.num_steps))
        latents.append(z[: rows.stop - rows.start].cpu().numpy())
    return np.concatenate(latents)


@torch.no_grad()
def replay_chain(
    model: GenerativeClassifier, y: int, seed: int, *, chains: langevin.LangevinSettings, at: Sequence[int]
) -> np.ndarray:
    """Where one chain stood after each number of steps of `at`, ascending: float32 (len(at), latent_dim).

    At 0 it stands at its start, a draw of the reference; at `chains.num_steps` at the z that `draw_latents` gives.
    """
    ready = start_chains(model, np.array([y]), np.array([seed]), chains=chains)
    position, stops = ready.start, []
    for done, stop in pairwise((0, *at)):
        position = ready.advance(position, done, stop)
        stops.append(ready.to_z(position)[0].cpu().numpy().copy())
    return np.stack(stops)


@torch.no_grad()
def replay_diagnostics(
    model: GenerativeClassifier, y: np.ndarray, seeds: np.ndarray, *, chains: langevin.LangevinSettings
) -> langevin.Diagnostics:
    """Diagnostics of the chains of those classes and seeds, (n,) each; n of a few hundred, as they run at once."""
    ready = start_chains(model, y, seeds, chains=chains, pad=False)
    measured = langevin.run(
        ready.density, ready.start, settings=ready.settings, noise=ready.noise, diagnostics=True
    ).diagnostics
    assert measured is not None
    return measured


@torch.no_grad()
def decode(
    model: GenerativeClassifier, encoding: Encoding, z: np.ndarray, seeds: np.ndarray, *, noise: bool = False
) -> np.ndarray:
    """x = g(z) for z (n, latent_dim), as the source stores examples; with `noise` a draw of p(x given z).

    The noise of a sample comes from its own seed, of `seeds` (n,). A generator may always draw, noise or not.
    """
    model.eval()
    decoded = np.empty(0)
    for rows in blocks(len(z)):
        latents = padded(model.to_tensor(z[rows]))
        if noise or model.generator.always_draws:
            streams = (torch_stream(int(seed), "observation") for seed in seeds[rows])
            drawn = torch.stack([model.generator.noise(rng=stream) for stream in streams])
            x = model.generator.sample(latents, padded(drawn).to(model.device))
        else:
            x = model.generator(latents)
        block = encoding.decode(x[: rows.stop - rows.start].cpu().numpy())
        if not rows.start:
            decoded = np.empty((len(z), *block.shape[1:]), dtype=block.dtype)  # a large pool is never held twice
        decoded[rows] = block
    return decoded


def blocks(count: int) -> Iterator[slice]:
    """0 to `count`, BLOCK at a time."""
    return (slice(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK))
