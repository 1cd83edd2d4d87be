"""What a model predicts for each example: the only loop of the package that passes examples through the networks.

Examples go through in blocks of one size, the last one filled up: the last bits of a matrix product depend on its
number of rows, so a prediction would otherwise depend on which examples are predicted together. The size is a power of
two, so that vector units leave no remainder, which they would round differently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from synthsieve.data.dataset import Dataset
from synthsieve.data.modalities.encoding import Encoding
from synthsieve.data.splits import Split
from synthsieve.errors import DataError
from synthsieve.evaluation.metrics import Metrics, measure
from synthsieve.io.progress import NullProgress, Progress
from synthsieve.io.random_streams import torch_stream
from synthsieve.models import generate
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.sampling.langevin import LangevinSettings

Oracle = Callable[[np.ndarray], np.ndarray]
"""A classifier that training never sees: x (n, *shape) as stored -> class indices (n,)."""

NO_ORACLE = -1
BLOCK = 128
DRAWS = 16  # of q(z given x), where predictions average over it
ELBO_DRAWS = 8


class Predictor(Protocol):
    """What `predict_rows` needs of a model."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def eval(self) -> Any: ...

    def to_tensor(self, array: np.ndarray) -> Tensor: ...


def probabilities(
    model: GenerativeClassifier,
    encoding: Encoding,
    x: np.ndarray,
    *,
    check: bool = True,
    calibrated: bool = True,
    progress: Progress | None = None,
) -> np.ndarray:
    """p(y given x) of each example as stored: float64 (n, num_classes), rows sum to 1.

    With `model.classify = "draw"` every example, in every call, has the same draws of noise. `check` refuses examples
    whose prediction is not finite. Without `calibrated` they are softmax F, whatever `model.calibration` is.
    """
    answer = partial(model.predict_proba, noise=prediction_noise(model))
    found = predict_rows(answer, model, encoding, x, model.num_classes, check=check, progress=progress)
    found /= found.sum(axis=1, keepdims=True)
    return model.calibration.apply(found) if calibrated else found


def prediction_noise(model: GenerativeClassifier) -> Tensor:
    """The draws of noise that every prediction with `model.classify = "draw"` averages over. (draws, latent_dim)."""
    return torch.randn(DRAWS, model.energy.latent_dim, generator=torch_stream(0, "prediction")).to(model.device)


def latents(model: GenerativeClassifier, encoding: Encoding, x: np.ndarray, *, check: bool = True) -> np.ndarray:
    """The mean of q(z given x) of each example: float64 (n, latent_dim)."""
    width = model.energy.latent_dim
    return predict_rows(lambda batch: model.posterior(batch).mean, model, encoding, x, width, check=check)


def latents_and_logits(model: GenerativeClassifier, encoding: Encoding, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of q(z given x) and F there: float32 (n, latent_dim) and (n, num_classes)."""

    def answer(batch: Tensor) -> Tensor:
        mean = model.posterior(batch).mean
        return torch.cat([mean, model.energy.class_logits(mean)], dim=1)

    width = model.energy.latent_dim
    both = predict_rows(answer, model, encoding, x, width + model.num_classes).astype(np.float32)
    return both[:, :width], both[:, width:]


def elbo_of(model: GenerativeClassifier, encoding: Encoding, x: np.ndarray, *, seed: int) -> np.ndarray:
    """The ELBO of each example, less the constant log Z, in nats: float64 (n,); a mean over draws of q.

    Every example has the same draws of noise.
    """
    noise = torch.randn(ELBO_DRAWS, model.energy.latent_dim, generator=torch_stream(seed, "elbo")).to(model.device)

    def answer(batch: Tensor) -> Tensor:
        q = model.posterior(batch)
        z = [q.mean + q.log_scale.exp() * each for each in noise]
        gains = [model.generator.log_prob(batch, each) + model.energy.negative_free_energy(each) for each in z]
        return (torch.stack(gains).mean(dim=0) - q.kl_to_reference().sum(dim=1))[:, None]

    return predict_rows(answer, model, encoding, x, 1, check=True)[:, 0]


@torch.no_grad()
def predict_rows(
    answer: Callable[[Tensor], Tensor],
    model: Predictor,
    encoding: Encoding,
    x: np.ndarray,
    width: int,
    *,
    check: bool = False,
    progress: Progress | None = None,
) -> np.ndarray:
    """`answer`, network input (BLOCK, *shape) -> (BLOCK, width), of each example as stored: float64 (n, width)."""
    model.eval()
    progress = progress or NullProgress()
    answers = np.empty((len(x), width))
    for start in range(0, len(x), BLOCK):
        rows = np.minimum(np.arange(start, start + BLOCK), len(x) - 1)
        batch = model.to_tensor(encoding.encode(x[rows]))
        if batch.shape[1:] != model.shape:
            message = f"expected examples of shape {model.shape}, got {tuple(batch.shape[1:])}"
            raise DataError(message, code="example-shape")
        answers[start : start + BLOCK] = answer(batch)[: len(x) - start].cpu().double().numpy()
        progress.update(min(start + BLOCK, len(x)), len(x))
    bad = (np.isnan(answers) | (answers == np.inf)).any(axis=1)  # minus infinity can be a log-density
    if check and bad.any():
        raise DataError(
            f"row {int(bad.argmax())} (counted from 0) has no finite prediction: its values lie too far from the "
            "training data; check their units, or leave the row out",
            code="non-finite-prediction",
        )
    return answers


def part_of(dataset: Dataset, split: Split, part: str) -> tuple[np.ndarray, np.ndarray]:
    """x (n, *shape), as stored, and y (n,) of the split's `test` or `validation` rows."""
    if part == "test":
        rows, separate = split.test, dataset.test if split.test_is_own else None
    else:
        rows, separate = split.validation, dataset.validation if split.validation_is_own else None
    examples = dataset.train if separate is None else separate
    return examples.x[rows], examples.y[rows]


def score_part(
    model: GenerativeClassifier, encoding: Encoding, dataset: Dataset, split: Split, part: str
) -> Metrics | None:
    """The model's metrics on the split's `test` or `validation` rows; None where there are none."""
    x, y = part_of(dataset, split, part)
    return score(model, encoding, x, y, check=False) if len(y) else None


def score(
    model: GenerativeClassifier, encoding: Encoding, x: np.ndarray, y: np.ndarray, *, check: bool = True
) -> Metrics:
    """The model's metrics on x, as stored, with labels y (n,), and its calibration error before calibration."""
    before = probabilities(model, encoding, x, check=check, calibrated=False)
    return measure(y, model.calibration.apply(before), before)


@torch.no_grad()
def draw_and_score(
    model: GenerativeClassifier,
    encoding: Encoding,
    y: np.ndarray,
    seeds: np.ndarray,
    *,
    chains: LangevinSettings,
    noise: bool = False,
    z: np.ndarray | None = None,
    oracle: Oracle | None = None,
    keep_x: bool = False,
    parts: Sequence[slice] | None = None,
    progress: Progress | None = None,
) -> dict[str, np.ndarray]:
    """Draw z and decode x for chains of classes y and `seeds`, (n,) each, and classify both.

    Returns z, logits_z, z_reencoded, logits_x and oracle_class as in `training.pool.SyntheticPool`, and x, which is
    empty without `keep_x`.

    `noise`, `z` and `parts` are those of `generate.sample_blocks`; rows outside `parts` stay zero. Without `keep_x` the
    samples may take more memory than there is.
    """
    model.eval()
    progress = progress or NullProgress()
    # Whole columns at once: many small arrays that outlive large temporary ones would fragment the heap.
    widths = {"z": model.energy.latent_dim, "logits_z": model.num_classes}
    widths |= {"z_reencoded": model.energy.latent_dim, "logits_x": model.num_classes}
    found: dict[str, np.ndarray] = {name: np.zeros((len(y), width), dtype=np.float32) for name, width in widths.items()}
    found["oracle_class"] = np.zeros(len(y), dtype=np.int64)
    kept: list[np.ndarray] = []
    drawn = generate.sample_blocks(model, encoding, y, seeds, chains=chains, noise=noise, z=z, parts=parts)
    for rows, block_z, x in drawn:
        found["z"][rows] = block_z
        found["logits_z"][rows] = model.energy.class_logits(model.to_tensor(block_z)).cpu().numpy()
        found["z_reencoded"][rows], found["logits_x"][rows] = latents_and_logits(model, encoding, x)
        found["oracle_class"][rows] = NO_ORACLE if oracle is None else oracle(x)
        if keep_x:
            kept.append(x)
        progress.update(rows.stop, len(y), "drawing")
    found["x"] = np.concatenate(kept) if kept else np.empty((0, *model.shape), dtype=np.float32)
    return found
