"""After the last step of pretraining, the generator is trained on alone: Algorithm 1, step 5 without the others.

The label tower takes most of the time of a training step, and changes until the last one. Once it is fixed, q of its
latents is computed once for each example, and a step costs only the generator and the style tower.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from synthsieve.evaluation.predict import predict_rows
from synthsieve.io.progress import NullProgress, Progress
from synthsieve.io.random_streams import numpy_stream, torch_stream
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.encoder import GradientScale, Posterior
from synthsieve.settings import Objective, Settings
from synthsieve.training.data import TrainingData
from synthsieve.training.step import learn_inference_and_generator

BATCH = 256
MAX_ROWS = 60_000  # examples that it is trained on
TIMED_STEPS = 3
COST = 0.4  # of such a step, in training steps, roughly: 0.2 to 0.5 by data set; progress counts with it
STYLE_ONLY = GradientScale(label=0.0, style=1.0)


def wants_finishing(settings: Settings) -> bool:
    """Whether the settings have such steps, and a generator."""
    training = settings.training
    return training.objective is Objective.JOINT and training.elbo_weight > 0 and training.generator_steps > 0


def finishing_work(settings: Settings) -> int:
    """What the generator steps of the settings take, in training steps; 0 without any."""
    return round(COST * settings.training.generator_steps) if wants_finishing(settings) else 0


def trains_style(model: GenerativeClassifier) -> bool:
    """Whether the style tower is trained too: where predictions do not depend on it."""
    return model.encoder.label_tower is not None and not model.settings.style_in_energy


class GeneratorTraining:
    """Training of the generator of a copy of `model`, whose predictions stay as they are.

    Attributes:
        averaged: the networks with the averaged weights.
    """

    def __init__(
        self, model: GenerativeClassifier, data: TrainingData, settings: Settings, *, steps: int | None = None
    ) -> None:
        self.steps = steps = settings.training.generator_steps if steps is None else steps
        settings = settings.pretrained().changed("training", steps=settings.training.generator_steps)
        self._state = data.init_state(settings, device=model.device)
        for copied in (self._state.model, self._state.averaged):
            copied.load_state_dict(model.state_dict())
        split, count = data.split, min(MAX_ROWS, steps * BATCH)
        rows = np.concatenate([split.labeled, split.unlabeled])
        if len(rows) > count:
            rows = np.sort(numpy_stream(settings.seed, "rows of the generator").choice(rows, count, replace=False))
        self._x, self._encoding = data.dataset.train.x[rows], data.encoding
        self._rng = torch_stream(settings.seed, "generator steps")
        encoder = self._state.averaged.encoder
        self._style = trains_style(model)
        width = encoder.label_latent_dim if self._style else model.energy.latent_dim

        def fixed_part(x: Tensor) -> Tensor:
            q = encoder.label_part(x) if self._style else encoder(x)
            return torch.cat([q.mean, q.log_scale], dim=1)

        found = predict_rows(fixed_part, self._state.averaged, self._encoding, self._x, 2 * width)
        self._fixed = torch.from_numpy(found.astype(np.float32)).to(model.device)
        self._state.model.train()

    @property
    def averaged(self) -> GenerativeClassifier:
        return self._state.averaged

    def step(self) -> None:
        """One update of the generator, and of the style tower where it is trained."""
        state, count = self._state, len(self._x)
        rows = torch.randint(count, (min(BATCH, count),), generator=self._rng)
        x = state.model.to_tensor(self._encoding.encode(self._x[rows.numpy()]))
        fixed = self._fixed[rows.to(self._fixed.device)]
        with state.autocast():
            q = Posterior(*fixed.chunk(2, dim=1))
            if self._style:
                q = state.model.posterior(x, STYLE_ONLY, q)
            z = q.sample(rng=self._rng)
        learn_inference_and_generator(state, x, q, z)
        state.step += 1
        state.average()


def finish_generator(
    model: GenerativeClassifier,
    data: TrainingData,
    settings: Settings,
    *,
    progress: Progress | None = None,
    stop: Callable[[], str | None] | None = None,
) -> GenerativeClassifier | str:
    """`model` with a generator that was trained on, or the reason that `stop` returned before the last step."""
    training, progress = GeneratorTraining(model, data, settings), progress or NullProgress()
    for step in range(training.steps):
        training.step()
        if stop is not None and (reason := stop()) is not None:
            return reason
        progress.update(step + 1, training.steps, "generator")
    training.averaged.calibration = model.calibration
    return training.averaged


def copy_generator(source: GenerativeClassifier, *to: GenerativeClassifier) -> None:
    """Give other networks what `finish_generator` trained."""
    for model in to:
        model.generator.load_state_dict(source.generator.state_dict())
        if trains_style(model):
            model.encoder.style_tower.load_state_dict(source.encoder.style_tower.state_dict())


def seconds_of_finishing(
    model: GenerativeClassifier, data: TrainingData, settings: Settings, *, clock: Callable[[], float] = time.monotonic
) -> float:
    """Wall time of the settings' generator steps, measured on a few of them; 0 without any."""
    if not wants_finishing(settings):
        return 0.0
    training, times = GeneratorTraining(model, data, settings, steps=TIMED_STEPS), []
    for _ in range(TIMED_STEPS):
        training.step()  # the first one also sets things up
        times.append(clock())
    return (times[-1] - times[0]) / (TIMED_STEPS - 1) * settings.training.generator_steps
