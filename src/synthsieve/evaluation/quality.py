"""How good a pool is: near to real data, not copied from it, and enough to train on by itself.

All in the encoder's feature space, the mean of q(z given x).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from synthsieve.data.dataset import Dataset
from synthsieve.data.encoding import Encoding
from synthsieve.data.splits import Split
from synthsieve.errors import DataError
from synthsieve.evaluation.accuracy import part_of
from synthsieve.evaluation.fidelity import frechet_distance, manifold, train_on_synthetic, two_sample_accuracy
from synthsieve.evaluation.memorisation import memorisation
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.randomness import numpy_stream

BATCH = 1000
MOST = 5000  # rows a figure is measured on; neighbours are looked for among all training rows


@torch.no_grad()
def latents(model: GenerativeClassifier, encoding: Encoding, x: np.ndarray) -> np.ndarray:
    """The mean of q(z given x) of each example: float64 (n, latent_dim)."""
    model.eval()
    parts = [
        model.posterior(torch.from_numpy(np.ascontiguousarray(encoding.encode(x[i : i + BATCH])))).mean
        for i in range(0, len(x), BATCH)
    ]
    return torch.cat(parts).double().numpy() if parts else np.empty((0, model.energy.latent_dim))


def pool_quality(
    model: GenerativeClassifier,
    encoding: Encoding,
    dataset: Dataset,
    split: Split,
    *,
    x: np.ndarray,
    y: np.ndarray,
    seed: int,
) -> dict[str, Any]:
    """Fidelity, memorisation and training on synthetic samples x (n, *shape), y (n,) alone; plain numbers for JSON.

    Real examples are the labelled and unlabelled rows; held-out ones are test. A figure that so few rows cannot give is
    None, and `notes` says why.
    """
    stream = numpy_stream(seed, "pool quality")
    chosen = _some(len(x), stream)
    x, y = x[chosen], y[chosen]
    train_rows = np.concatenate([split.labeled, split.unlabeled])
    train = latents(model, encoding, dataset.train.x[train_rows])
    test_x, test_y = part_of(dataset, split, "test")
    held = _some(len(test_x), stream)
    held_out, held_y = latents(model, encoding, test_x[held]), test_y[held]
    synthetic = latents(model, encoding, x)
    real = train[_some(len(train), stream)]
    labeled = train[: len(split.labeled)]
    labels = dataset.train.y[split.labeled]
    notes: list[str] = []

    def measured(name: str, figure: Callable[[], Any]) -> Any:
        try:
            return figure()
        except DataError as error:
            notes.append(f"{name}: {error}")
            return None

    return {
        "synthetic": len(synthetic),
        "manifold": measured("manifold", lambda: manifold(real, synthetic).as_dict()),
        "frechet_distance": measured("frechet_distance", lambda: frechet_distance(real, synthetic)),
        "two_sample": measured("two_sample", lambda: two_sample_accuracy(real, synthetic, generator=stream).as_dict()),
        "train_on_synthetic": measured(
            "train_on_synthetic",
            lambda: train_on_synthetic(
                synthetic, y, held_out, held_y, real=labeled, real_labels=labels, seed=seed
            ).as_dict(),
        ),
        "memorisation": measured("memorisation", lambda: memorisation(synthetic, train, held_out).as_dict()),
        "same_law": {
            "manifold": measured("same_law.manifold", lambda: manifold(real, held_out).as_dict()),
            "frechet_distance": measured("same_law.frechet_distance", lambda: frechet_distance(real, held_out)),
        },
        "notes": notes,
    }


def _some(count: int, stream: np.random.Generator) -> np.ndarray:
    """All rows, or `MOST` of them: int64, ascending."""
    return np.arange(count) if count <= MOST else np.sort(stream.choice(count, MOST, replace=False))
