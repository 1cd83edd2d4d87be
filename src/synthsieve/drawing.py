"""Drawing labelled samples: z ~ p(z given y) by Langevin from p0, then x = g(z)."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from synthsieve.data.encoding import Encoding
from synthsieve.files import written_atomically
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.progress import Progress, Silent
from synthsieve.randomness import torch_stream
from synthsieve.sampling import langevin

BLOCK = 1000  # chains at a time: their states and images fit in a few megabytes


@dataclass(frozen=True)
class Drawn:
    """Labelled samples.

    Attributes:
        x: as the source stores examples: images uint8 (n, channels, height, width), vectors float32 (n, features).
        y: int64 (n,), class indices, sorted.
        z: float32 (n, latent_dim), the latents they were decoded from.
    """

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray

    @property
    def is_image(self) -> bool:
        return self.x.ndim == 4

    def write(self, path: Path, classes: tuple[str, ...]) -> None:
        """An .npz with x, y, classes (text) and latent, atomically."""
        with written_atomically(path) as partial, partial.open("wb") as file:
            np.savez_compressed(file, x=self.x, y=self.y, classes=np.asarray(classes), latent=self.z)

    def write_grid(self, path: Path, columns: int = 20) -> None:
        """A PNG: a row a class, the first `columns` samples of each."""
        rows = [self.x[self.y == c][:columns] for c in np.unique(self.y)]
        write_image_grid(path, rows)


@torch.no_grad()
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
    """`per_class` samples of every class. Each block of chains has its own stream, so a part can be drawn alone."""
    progress = progress or Silent()
    model.eval()
    y = torch.arange(model.num_classes).repeat_interleave(per_class)
    x, z = [], []
    with closing(progress):
        for start in range(0, len(y), BLOCK):
            generator = torch_stream(seed, f"draw/{start}")
            labels = y[start : start + BLOCK]
            first = model.prior.reference_sample(len(labels), generator=generator)
            latents = langevin.run(model.prior.conditional(labels), first, settings=chains, generator=generator).z
            images = model.generator.sample(latents, generator=generator) if noise else model.generator(latents)
            x.append(encoding.decode(images.numpy()))
            z.append(latents.numpy())
            progress.update(min(start + BLOCK, len(y)), len(y))
    return Drawn(np.concatenate(x), y.numpy(), np.concatenate(z))


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
