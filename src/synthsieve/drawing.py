"""Drawing labelled samples: z ~ p(z given y) by Langevin from p0, then x = g(z).

Every chain has a seed of its own, from which its start, its noise and its observation noise come: any sample can be
drawn again alone. Chains run and decode in blocks of one size, the last one filled up, for the last bits of a product
depend on how many rows it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from synthsieve.data.encoding import Encoding
from synthsieve.files import written_atomically
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.progress import Progress, Silent
from synthsieve.randomness import derive_seed, torch_stream
from synthsieve.sampling import langevin

BLOCK = 500  # chains at a time: their noise and images fit in a few megabytes


@dataclass(frozen=True)
class Drawn:
    """Labelled samples.

    Attributes:
        x: as the source stores examples: images uint8 (n, channels, height, width), vectors float32 (n, features).
        y: int64 (n,), class indices, sorted.
        z: float32 (n, latent_dim), the latents they were decoded from.
        chain_seed: int64 (n,), each chain's own seed.
    """

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    chain_seed: np.ndarray

    @property
    def is_image(self) -> bool:
        return self.x.ndim == 4

    def write(self, path: Path, classes: tuple[str, ...]) -> None:
        """An .npz with x, y, classes (text), latent and chain_seed, atomically."""
        with written_atomically(path) as partial, partial.open("wb") as file:
            names = np.asarray(classes)
            np.savez_compressed(file, x=self.x, y=self.y, classes=names, latent=self.z, chain_seed=self.chain_seed)

    def write_grid(self, path: Path, columns: int = 20) -> None:
        """A PNG: a row a class, the first `columns` samples of each."""
        rows = [self.x[self.y == c][:columns] for c in np.unique(self.y)]
        write_image_grid(path, rows)


def draw_samples(
    model: GenerativeClassifier,
    encoding: Encoding,
    *,
    per_class: int,
    chains: langevin.LangevinSettings,
    noise: bool = False,
    seed: int,
    progress: Progress | None = None,
) -> Drawn:
    """`per_class` samples of every class."""
    progress = progress or Silent()
    y = np.arange(model.num_classes).repeat(per_class)
    seeds = chain_seeds(seed, y)
    x, z = [], []
    with closing(progress):
        for rows in blocks(len(y)):
            latents = draw_latents(model, y[rows], seeds[rows], chains=chains)
            x.append(decode(model, encoding, latents, noise_seeds=seeds[rows] if noise else None))
            z.append(latents)
            progress.update(rows.stop, len(y))
    return Drawn(np.concatenate(x), y, np.concatenate(z), seeds)


def chain_seeds(seed: int, y: np.ndarray) -> np.ndarray:
    """A seed for each chain, from its class and its number within the class: int64 (n,) for y (n,).

    So the chains of a small pool are among those of a larger one.
    """
    seeds = np.empty(len(y), dtype=np.int64)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        seeds[rows] = [derive_seed(seed, f"chain/{label}/{number}") for number in range(len(rows))]
    return seeds


@torch.no_grad()
def draw_latents(
    model: GenerativeClassifier, y: np.ndarray, seeds: np.ndarray, *, chains: langevin.LangevinSettings
) -> np.ndarray:
    """z ~ p(z given y), each from its own seed: float32 (n, latent_dim) for y (n,) and seeds (n,)."""
    latents = []
    for rows in blocks(len(y)):
        size = (chains.num_steps + 1, model.energy.latent_dim)
        drawn = _filled(torch.stack([torch.randn(size, generator=_generator(seed)) for seed in seeds[rows]]))
        start, *_ = noise = drawn.transpose(0, 1).contiguous()  # (num_steps + 1, BLOCK, latent_dim)
        labels = _filled(torch.from_numpy(y[rows]))
        run = langevin.run(model.prior.conditional(labels), start, settings=chains, noise=noise[1:])
        latents.append(run.z[: rows.stop - rows.start].numpy())
    return np.concatenate(latents)


@torch.no_grad()
def decode(
    model: GenerativeClassifier, encoding: Encoding, z: np.ndarray, *, noise_seeds: np.ndarray | None = None
) -> np.ndarray:
    """x = g(z), or g(z) + sigma noise where there are `noise_seeds` (n,), as the source stores examples."""
    model.eval()
    decoded = np.empty(0)
    for rows in blocks(len(z)):
        x = model.generator(_filled(torch.from_numpy(z[rows])))[: rows.stop - rows.start]
        if noise_seeds is not None:
            streams = [torch_stream(int(seed), "observation") for seed in noise_seeds[rows]]
            noise = torch.stack([torch.randn(x.shape[1:], generator=stream) for stream in streams])
            x = x + model.generator.observation_noise * noise
        block = encoding.decode(x.numpy())
        if not rows.start:
            decoded = np.empty((len(z), *block.shape[1:]), dtype=block.dtype)  # a large pool is never held twice
        decoded[rows] = block
    return decoded


def blocks(count: int) -> Iterator[slice]:
    """0 to `count`, BLOCK at a time."""
    return (slice(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK))


def _filled(rows: torch.Tensor) -> torch.Tensor:
    """The rows, (k, ...), and the last of them again until they are BLOCK."""
    missing = BLOCK - len(rows)
    return torch.cat([rows, rows[-1:].expand(missing, *rows.shape[1:])]) if missing else rows


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(int(seed))


def write_image_grid(path: Path, rows: list[np.ndarray], scale: int | None = None) -> None:
    """Images uint8 (n, channels, height, width), a list of them a row, as one PNG with a pixel between them."""
    from PIL import Image

    channels, height, width = rows[0].shape[1:]
    scale = scale or max(1, 32 // height)
    columns = max(len(row) for row in rows)
    sheet = np.full((channels, len(rows) * (height + 1) + 1, columns * (width + 1) + 1), 255, dtype=np.uint8)
    for i, row in enumerate(rows):
        for j, image in enumerate(row):
            top, left = 1 + i * (height + 1), 1 + j * (width + 1)
            sheet[:, top : top + height, left : left + width] = image
    picture = Image.fromarray(sheet[0] if channels == 1 else sheet.transpose(1, 2, 0))
    picture = picture.resize((picture.width * scale, picture.height * scale), Image.Resampling.NEAREST)
    with written_atomically(path) as partial:
        picture.save(partial, format="PNG")
