"""Fitting the reference to the encoded examples: a Gaussian mixture per class, and its correction f.

f is learned by noise-contrastive estimation (Gutmann 2010): a logistic regression of encoded z against draws of the
mixture has f(z) = log q(z) - log p_ref(z) as its optimum. The encoder does not change meanwhile, so a step is cheap.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from synthsieve.data.modalities.encoding import Encoding
from synthsieve.evaluation.predict import predict_rows
from synthsieve.io.random_streams import derive_seed, numpy_stream, torch_stream
from synthsieve.models.calibration import SMALLEST, softmax
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.networks.mlp import MLP
from synthsieve.models.reference import FittedReference, new_correction
from synthsieve.sampling.mixture import ClassMixture, fit_class_mixture
from synthsieve.settings import Draw, Objective, Settings
from synthsieve.training.data import TrainingData

MAX_ROWS = 60_000  # examples that are encoded
DRAWS, MAX_DRAWS = 20_000, 4  # of q(z given x), together and for each example
STEPS, BATCH, LEARNING_RATE, WEIGHT_DECAY = 3000, 256, 1e-3, 1e-2
EVALUATE_EVERY, PATIENCE = 50, 6
HELD_OUT = 0.2
MIN_ROWS = 100  # fewer rows are not split to learn f
CLASS_TEMPERATURE = 0.25  # of p(y given z) in draws; see docs/results/prior.md


@dataclass(frozen=True)
class Encoded:
    """The aggregate posterior: q(z given x) and p(y given x) of some examples.

    Attributes:
        mean: (n, latent_dim).
        scale: (n, latent_dim), standard deviations.
        probabilities: (n, num_classes), rows sum to 1; certain where the label is known.
    """

    mean: np.ndarray
    scale: np.ndarray
    probabilities: np.ndarray

    def draw(self, draws: int, *, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """`draws` z of each example and the example of each: (draws n, latent_dim), int64 (draws n,)."""
        rows = np.tile(np.arange(len(self.mean)), draws)
        return self.mean[rows] + self.scale[rows] * rng.standard_normal((len(rows), self.mean.shape[1])), rows


def fit_to(model: GenerativeClassifier, data: TrainingData, settings: Settings, *, seed: int) -> Encoded:
    """Give `model` the reference that is fitted to the training rows, as `model` encodes them; returns the latter.

    Where classes are unbalanced, rows are given classes in the shares of the labels, and draws are those of equally
    frequent classes: a rare class can be requested like any other.
    """
    split, train = data.split, data.dataset.train
    encoded = encode_rows(
        model, data.encoding, train.x, train.y, labeled=split.labeled, unlabeled=split.unlabeled, seed=seed
    )
    # Without f: held-out rows chose f = 0 on every model tried (decision 0304), and learning it takes seconds.
    offsets = data.offsets(model, settings)
    if offsets is not None:
        adjusted = softmax(np.log(np.maximum(encoded.probabilities, SMALLEST)) + offsets.to_labels)
        encoded = replace(encoded, probabilities=adjusted)
    reference = fit_reference(encoded, seed=derive_seed(seed, "reference"), correct=False)
    if offsets is not None:
        equal = torch.full_like(reference.mixture.log_shares, -math.log(model.num_classes))
        mixture = replace(reference.mixture, log_shares=equal)
        reference = replace(reference, mixture=mixture, class_offsets=torch.from_numpy(offsets.to_uniform).float())
    model.reference = reference.to(model.device)
    return encoded


def wants_reference(settings: Settings) -> bool:
    """Whether samples of such a model are drawn from a fitted reference."""
    return settings.sampling.draw is not Draw.LANGEVIN and settings.training.objective is Objective.JOINT


def encode_rows(
    model: GenerativeClassifier,
    encoding: Encoding,
    x: np.ndarray,
    y: np.ndarray,
    *,
    labeled: np.ndarray,
    unlabeled: np.ndarray,
    seed: int,
) -> Encoded:
    """q and p(y given x) of the labelled rows and of unlabelled rows, MAX_ROWS at most.

    x (n, *shape) and y (n,) are those of the data set, `labeled` and `unlabeled` rows of it.
    """
    room = max(0, MAX_ROWS - len(labeled))
    if len(unlabeled) > room:
        unlabeled = np.sort(numpy_stream(seed, "rows of the reference").choice(unlabeled, room, replace=False))
    rows = np.concatenate([labeled[:MAX_ROWS], unlabeled])
    width = model.energy.latent_dim

    def answer(batch: Tensor) -> Tensor:
        q = model.posterior(batch)
        return torch.cat([q.mean, q.log_scale.exp(), model.energy.class_probabilities(q.mean)], dim=1)

    found = predict_rows(answer, model, encoding, x[rows], 2 * width + model.num_classes)
    probabilities = found[:, 2 * width :]
    known = np.arange(min(len(labeled), MAX_ROWS))
    probabilities[known] = np.eye(model.num_classes)[y[rows[known]]]
    return Encoded(found[:, :width], found[:, width : 2 * width], probabilities)


def fit_reference(encoded: Encoded, *, seed: int, correct: bool = True) -> FittedReference:
    """The mixture of each class, and f where held-out rows say that the mixture needs a correction.

    A row belongs to its most probable class alone.
    """
    draws = int(np.clip(DRAWS // max(1, len(encoded.mean)), 1, MAX_DRAWS))
    z, rows = encoded.draw(draws, rng=numpy_stream(seed, "draws of the reference"))
    rng = numpy_stream(seed, "mixture")
    classes = np.eye(encoded.probabilities.shape[1])[encoded.probabilities.argmax(axis=1)]
    mixture = fit_class_mixture(z, classes[rows], groups=rows, rng=rng)
    correction = None
    if correct and len(encoded.mean) >= MIN_ROWS:
        correction = learn_correction(encoded, mixture, seed=derive_seed(seed, "correction"))
    return FittedReference(mixture, correction, CLASS_TEMPERATURE)


def learn_correction(encoded: Encoded, mixture: ClassMixture, *, seed: int) -> MLP | None:
    """f of the logistic regression of encoded z against draws of the mixture; None where f = 0 is better.

    Training stops when the loss on held-out rows does not fall any more, and the best f there is kept.
    """
    rng = torch_stream(seed, "noise")
    mean, scale = (torch.from_numpy(each.astype(np.float32)) for each in (encoded.mean, encoded.scale))
    order = torch.randperm(len(mean), generator=rng)
    held_out, training = order[: int(HELD_OUT * len(mean))], order[int(HELD_OUT * len(mean)) :]
    weights = (mixture.log_weights + mixture.log_shares[mixture.labels]).exp()

    def data(rows: Tensor) -> Tensor:
        return mean[rows] + scale[rows] * torch.randn(len(rows), mean.shape[1], generator=rng)

    def noise(count: int) -> Tensor:
        components = torch.multinomial(weights, count, replacement=True, generator=rng)
        return mixture.place(components, torch.randn(count, mean.shape[1], generator=rng))

    network = new_correction(mean.shape[1], rng=torch_stream(seed, "weights"))
    optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    repeats = max(1, math.ceil(2000 / len(held_out)))
    held_data = torch.cat([data(held_out) for _ in range(repeats)])
    held_noise = noise(len(held_data))

    def loss(z: Tensor, other: Tensor) -> Tensor:
        return nn.functional.softplus(-network(z)).mean() + nn.functional.softplus(network(other)).mean()

    best, best_loss, since = None, 2 * math.log(2), 0  # that of f = 0
    for step in range(1, STEPS + 1):
        rows = training[torch.randint(len(training), (BATCH,), generator=rng)]
        optimiser.zero_grad(set_to_none=True)
        loss(data(rows), noise(BATCH)).backward()
        optimiser.step()
        if step % EVALUATE_EVERY == 0:
            with torch.no_grad():
                now = float(loss(held_data, held_noise))
            since += 1
            if now < best_loss:
                best, best_loss, since = copy.deepcopy(network), now, 0
            if since == PATIENCE:
                break
    return None if best is None else best.requires_grad_(False)
