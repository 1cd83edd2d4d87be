"""What the model that drew a pool says of every sample, and which real example is nearest: worked out once, then kept.

FOLDER/pool-STEP.scores.npz   beside the pool; made again when it is missing or belongs to another pool
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch

from synthsieve import drawing
from synthsieve.archive import read_arrays
from synthsieve.data.encoding import Encoding
from synthsieve.errors import CheckpointError
from synthsieve.evaluation.memorisation import nearest_distances
from synthsieve.evaluation.quality import latents
from synthsieve.files import json_of, remove_stale_partials, written_atomically
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.pool import SyntheticPool
from synthsieve.progress import Progress, Silent

FORMAT = "synthsieve scores 1"
NOBODY = -1  # where no judge was asked
NEIGHBOUR_ROWS = 2000  # of the pool at a time

# Of each column the kind of number and the sides: n of the pool, m real examples, c classes, d latents.
SHAPES = {
    "logits_z": ("f", "nc"),
    "logits_x": ("f", "nc"),
    "log_density": ("f", "n"),
    "features": ("f", "nd"),
    "judged": ("i", "n"),
    "nearest_row": ("i", "n"),
    "nearest_distance": ("f", "n"),
    "real_rows": ("i", "m"),
    "real_features": ("f", "md"),
}

Judge = Callable[[np.ndarray], np.ndarray]  # x as stored -> class indices


@dataclass(frozen=True)
class Scores:
    """A row for each of the pool's n samples, and the real examples they are compared with.

    Attributes:
        logits_z: float32 (n, num_classes), F at the drawn z.
        logits_x: float32 (n, num_classes), F at the mean of q(z given x).
        log_density: float64 (n,), log p(z given y) up to a constant of each y: F(z)[y] + log p0(z).
        features: float32 (n, latent_dim), the mean of q(z given x).
        judged: int64 (n,), the class an independent judge gives; -1 without a judge.
        nearest_row: int64 (n,), the nearest training example (labelled or unlabelled), a row of `dataset.train`.
        nearest_distance: float64 (n,), how far it is, in the space of `features`.
        real_rows: int64 (m,), the training examples, rows of `dataset.train`; the labelled ones first.
        real_features: float32 (m, latent_dim), theirs.
    """

    logits_z: np.ndarray
    logits_x: np.ndarray
    log_density: np.ndarray
    features: np.ndarray
    judged: np.ndarray
    nearest_row: np.ndarray
    nearest_distance: np.ndarray
    real_rows: np.ndarray
    real_features: np.ndarray

    @property
    def predicted(self) -> np.ndarray:
        """The class that the classifier gives to x: int64 (n,)."""
        return self.logits_x.argmax(axis=1)

    def write(self, path: Path, pool: SyntheticPool) -> None:
        """One .npz, atomically."""
        header = json.dumps({"format": FORMAT, "pool": pool_hash(pool)})
        remove_stale_partials(path.parent, of=path.name)
        with written_atomically(path) as partial, partial.open("wb") as file:
            np.savez(file, header=np.asarray(header), **{f.name: getattr(self, f.name) for f in fields(self)})

    @classmethod
    def read(cls, path: Path, pool: SyntheticPool) -> Scores | None:
        """The scores of `pool` that `write` wrote; None where there are none, or they are another pool's."""
        if not path.is_file():
            return None
        try:
            stored = read_arrays(path, ("header", *SHAPES))
            if json_of(str(stored.pop("header"))) != {"format": FORMAT, "pool": pool_hash(pool)}:
                return None
            found = cls(**stored)
            _check(found, len(pool))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path} is damaged ({error}): remove it, and it is worked out again") from None
        return found


def _check(scores: Scores, pool_size: int) -> None:
    """A ValueError where a column is not what `Scores` says it is."""
    sizes = {
        "n": pool_size,
        "c": scores.logits_z.shape[-1],
        "d": scores.features.shape[-1],
        "m": len(np.atleast_1d(scores.real_rows)),
    }
    for name, (kind, sides) in SHAPES.items():
        column: np.ndarray = getattr(scores, name)
        if column.dtype.kind != kind or column.shape != tuple(sizes[side] for side in sides):
            raise ValueError(f"its column {name} came as {column.dtype} {column.shape}")


@torch.no_grad()
def score(
    model: GenerativeClassifier,
    encoding: Encoding,
    pool: SyntheticPool,
    *,
    train_x: np.ndarray,
    real_rows: np.ndarray,
    judge: Judge | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Decode, encode and judge every sample of a pool, a block at a time; x is never held whole.

    `model` drew the pool; `train_x` (rows, *shape) and `real_rows` (m,) are the real examples.
    """
    progress = progress or Silent()
    n, classes, width = len(pool), model.num_classes, model.energy.latent_dim
    logits_z, logits_x = (np.empty((n, classes), dtype=np.float32) for _ in range(2))
    features, log_density = np.empty((n, width), dtype=np.float32), np.empty(n)
    judged, row, distance = np.full(n, NOBODY), np.empty(n, dtype=np.int64), np.empty(n)
    with closing(progress):
        progress.update(0, 2 * n, "looking at the real examples")
        real = latents(model, encoding, train_x[real_rows]).astype(np.float32)
        for rows in drawing.blocks(n):
            z = torch.from_numpy(pool.z[rows])
            x = drawing.decode(model, encoding, pool.z[rows], pool.chain_seed[rows], noise=pool.origin["decode_noise"])
            mean = model.posterior(torch.from_numpy(encoding.encode(x))).mean
            logits_z[rows] = model.energy.class_logits(z).numpy()
            logits_x[rows] = model.energy.class_logits(mean).numpy()
            features[rows] = mean.numpy()
            log_density[rows] = model.prior.conditional_log_density(z, torch.from_numpy(pool.y[rows])).numpy()
            if judge is not None:
                judged[rows] = judge(x)
            progress.update(rows.stop, 2 * n, "looking at the pool again")
        for first in range(0, n, NEIGHBOUR_ROWS):
            rows = slice(first, min(first + NEIGHBOUR_ROWS, n))
            found = nearest_distances(features[rows], real)
            row[rows], distance[rows] = real_rows[found.indices], found.distances
            progress.update(n + rows.stop, 2 * n, "finding the nearest real examples")
    return Scores(logits_z, logits_x, log_density, features, judged, row, distance, real_rows, real)


def pool_hash(pool: SyntheticPool) -> str:
    """The first 16 hex digits of a SHA-256 of who drew the pool, from which seeds and for which classes."""
    digest = hashlib.sha256(str(pool.origin["model_hash"]).encode())
    for column in (pool.chain_seed, pool.y, pool.z):
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()[:16]
