"""How good a pool is: close to real data, not copied from it, and enough to train on by itself.

All in the encoder's feature space, the mean of q(z given x).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from synthsieve.data.dataset import Dataset
from synthsieve.data.modalities.encoding import Encoding
from synthsieve.data.splits import Split
from synthsieve.errors import DataError
from synthsieve.evaluation.fidelity import frechet_distance, manifold, train_on_synthetic, two_sample_accuracy
from synthsieve.evaluation.memorization import memorization
from synthsieve.evaluation.predict import latents, part_of
from synthsieve.io.random_streams import numpy_stream
from synthsieve.models.classifier import GenerativeClassifier

MAX_ROWS = 5000  # that a figure is measured on; neighbours are searched among all training rows


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

    Real examples are the labelled and unlabelled rows; held-out ones are test. A figure that needs more rows is
    None, and `notes` says why.
    """
    stream = numpy_stream(seed, "pool quality")
    chosen = _sample(len(x), stream)
    x, y = x[chosen], y[chosen]
    train_rows = np.concatenate([split.labeled, split.unlabeled])
    train = latents(model, encoding, dataset.train.x[train_rows], check=False)
    test_x, test_y = part_of(dataset, split, "test")
    held = _sample(len(test_x), stream)
    held_out, held_y = latents(model, encoding, test_x[held], check=False), test_y[held]
    synthetic = latents(model, encoding, x, check=False)
    real = train[_sample(len(train), stream)]
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
        "two_sample": measured("two_sample", lambda: two_sample_accuracy(real, synthetic, rng=stream).as_dict()),
        "train_on_synthetic": measured(
            "train_on_synthetic",
            lambda: train_on_synthetic(
                synthetic, y, held_out, held_y, real=labeled, real_labels=labels, seed=seed
            ).as_dict(),
        ),
        "memorisation": measured("memorisation", lambda: memorization(synthetic, train, held_out).as_dict()),
        "same_law": {
            "manifold": measured("same_law.manifold", lambda: manifold(real, held_out).as_dict()),
            "frechet_distance": measured("same_law.frechet_distance", lambda: frechet_distance(real, held_out)),
        },
        "notes": notes,
    }


def _sample(count: int, stream: np.random.Generator) -> np.ndarray:
    """All rows, or a random `MAX_ROWS` of them: int64, ascending."""
    return np.arange(count) if count <= MAX_ROWS else np.sort(stream.choice(count, MAX_ROWS, replace=False))
