"""What a model says of each example, whatever examples stand beside it.

The last bits of a product depend on how many rows it has, so rows go through in blocks of one size, the last filled up.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from synthsieve.data.encoding import Encoding
from synthsieve.errors import DataError
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.progress import Progress, Silent
from synthsieve.randomness import torch_stream

BLOCK = 100
DRAWS = 8  # of q(z given x), for averages over it


def probabilities(
    model: GenerativeClassifier, encoding: Encoding, x: np.ndarray, *, seed: int, progress: Progress | None = None
) -> np.ndarray:
    """p(y given x) of each example as stored: float64 (n, num_classes), rows sum to 1."""
    answers = rowwise(
        lambda batch: model.predict_proba(batch, draws=DRAWS, generator=torch_stream(seed, "prediction")),
        model,
        encoding,
        x,
        progress,
    )
    return answers / answers.sum(axis=1, keepdims=True)


def latents(model: GenerativeClassifier, encoding: Encoding, x: np.ndarray) -> np.ndarray:
    """The mean of q(z given x) of each example: float64 (n, latent_dim)."""
    return rowwise(lambda batch: model.posterior(batch).mean, model, encoding, x)


def elbo_of(model: GenerativeClassifier, encoding: Encoding, x: np.ndarray, *, seed: int) -> np.ndarray:
    """The ELBO of each example, less the constant log Z, in nats: float64 (n,); a mean over draws of q.

    Every row has the same draws of noise.
    """
    noise = torch.randn(DRAWS, model.energy.latent_dim, generator=torch_stream(seed, "elbo"))

    def mean_elbo(batch: Tensor) -> Tensor:
        q = model.posterior(batch)
        z = [q.mean + q.log_scale.exp() * each for each in noise]
        gains = [model.generator.log_prob(batch, each) + model.energy.negative_free_energy(each) for each in z]
        return torch.stack(gains).mean(dim=0) - q.kl_to_reference().sum(dim=1)

    return rowwise(mean_elbo, model, encoding, x)


@torch.no_grad()
def rowwise(
    answer: Callable[[Tensor], Tensor],
    model: GenerativeClassifier,
    encoding: Encoding,
    x: np.ndarray,
    progress: Progress | None = None,
) -> np.ndarray:
    """`answer` of network input (BLOCK, *shape) for each example as stored: float64 (n, ...)."""
    model.eval()
    progress = progress or Silent()
    answers = []
    for start in range(0, len(x), BLOCK):
        rows = np.minimum(np.arange(start, start + BLOCK), len(x) - 1)
        batch = torch.from_numpy(np.ascontiguousarray(encoding.encode(x[rows])))
        if batch.shape[1:] != model.shape:
            raise DataError(f"examples must have shape {model.shape}, but came with {tuple(batch.shape[1:])}")
        answers.append(answer(batch)[: len(x) - start].double().numpy())
        _check(answers[-1], start)
        progress.update(min(start + BLOCK, len(x)), len(x))
    return np.concatenate(answers)


def _check(answers: np.ndarray, start: int) -> None:
    """Refuse NaN and infinity in answers (n, ...) of the rows from `start` on; minus infinity is a log-density too."""
    bad = (np.isnan(answers) | (answers == np.inf)).reshape(len(answers), -1).any(axis=1)
    if bad.any():
        raise DataError(
            f"row {start + int(bad.argmax())} (counted from 0) has no finite answer: its values lie too far from those"
            " learned from; check their units, or leave the row out"
        )
