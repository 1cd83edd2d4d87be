"""Our own model, by its own training step, and its variants with synthetic samples; the budget is turned into steps.

Omead Pooladzandi, Pasha Khosravi, Erik Nijkamp and Baharan Mirzasoleiman, "Generating High Fidelity Synthetic Data via
Coreset selection and Entropic Regularization", NeurIPS 2022 workshop.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from synthsieve.experiments.arms import POOLED, Arm, TableEntry, settings_of
from synthsieve.experiments.baselines.protocol import BenchmarkMethod
from synthsieve.settings import Settings
from synthsieve.training.extra_data import choose_extra_data, is_due
from synthsieve.training.step import Batch, Examples, take_step

FIRST_SHARE = 2 / 3  # of the steps come before the samples, as in `run`


class Ours(BenchmarkMethod):
    """The latent energy-based model on labelled and unlabelled data, without synthetic samples.

    `radius` is a factor on the radius of smoothness, as for VAT.
    """

    name = "ours"
    cites = "Pooladzandi 2022"
    grid = ({"radius": 1.0}, {"radius": 0.5}, {"radius": 2.0})
    arm: ClassVar[Arm] = Arm.PRETRAINED

    def init(self, radius: float) -> None:
        settings = self._settings(radius)
        self.state = self.task.data.init_state(settings, device=self.task.device)
        self.task.data.start_generator(self.state)
        self.model, self.averaged = self.state.model, self.state.averaged
        self.rngs |= self.state.rngs
        self.optimisers = self.state.optimisers

    def _settings(self, radius: float) -> Settings:
        settings, task = self.task.settings, self.task
        factor = {"smoothness_radius": radius * settings.training.smoothness_radius}
        settings = settings.changed("training", **factor)
        steps = max(1, round(task.share * settings.training.steps))
        if not self.arm.branches_off:
            return settings_of(TableEntry(self.arm, 0), settings.over(steps))
        first = max(1, round(FIRST_SHARE * steps))
        settings = settings.over(first).changed("augmentation", steps=max(1, steps - first), augment_from_step=None)
        pool_size = settings.comparison.pool_sizes[0] if self.arm in POOLED else 0
        return settings_of(TableEntry(self.arm, pool_size), settings)

    @property
    def phase(self) -> str:
        if not self.ready:
            return ""
        due = is_due(self.steps, self.state.settings)
        return "choice of extra data" if due else "extra data" if self.memory else ""

    @property
    def ready(self) -> bool:
        """A variant counts from its extra data on: before, it is the model without them."""
        return not self.arm.branches_off or self.steps >= self.state.settings.training.steps

    def step(self, batch: Batch) -> None:
        self.state.step = self.steps
        if is_due(self.steps, self.state.settings):
            self._choose()
        sizes = {name: size for name, size in self._sizes().items() if f"{name}_x" in self.memory}
        extra: dict[str, Any] = {name: self._draw(name, size) for name, size in sizes.items()}
        take_step(self.state, replace(batch, **extra))

    def without_unlabeled(self, batch: Batch) -> Batch:
        """`take_step` has its own way."""
        return batch

    def average(self) -> None:
        """`take_step` has done it."""

    def predict_logits(self, x: Tensor) -> Tensor:
        logits: Tensor = self.averaged.predict_logits(x)
        return logits

    def _sizes(self) -> dict[str, int]:
        settings = self.state.settings
        return {"synthetic": settings.augmentation.batch_synthetic, "pseudo": settings.pseudo_labels.batch}

    def _choose(self) -> None:
        """Step 7 of Algorithm 1: the selected samples and pseudo-labels become part of the batches."""
        data = self.task.data
        chosen = choose_extra_data(self.state, data, None)
        if (pool := chosen.pool) is not None:
            self._keep("synthetic", pool.x, pool.y[pool.selected], pool.loss_weights)
        if (pseudo := chosen.pseudo) is not None and len(pseudo.y):
            self._keep("pseudo", data.dataset.train.x[pseudo.rows], pseudo.y, np.ones(len(pseudo.y)))

    def _keep(self, name: str, x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
        self.memory[f"{name}_x"] = self.to_tensor(self.task.data.encoding.encode(x))
        self.memory[f"{name}_y"] = self.to_tensor(y)
        self.memory[f"{name}_weights"] = self.to_tensor(weights.astype(np.float32))

    def _draw(self, name: str, size: int) -> Examples:
        """A random batch of the chosen extra data."""
        x, y, weights = (self.memory[f"{name}_{column}"] for column in ("x", "y", "weights"))
        rows = torch.randint(len(y), (size,), generator=self.rngs["noise"]).to(y.device)
        return x[rows], y[rows], weights[rows]


class Dapper(Ours):
    """Generated samples of our model as they come, without filter or coreset, as data augmentation methods use them."""

    name = "dapper-like"
    cites = "samples without filter or coreset"
    arm = Arm.ALL


class OursEntropy(Ours):
    """Our model with samples that pass the entropy filter."""

    name = "ours-entropy"
    arm = Arm.ENTROPY


class OursCraig(Ours):
    """Our model with the coreset of the samples that pass the entropy filter."""

    name = "ours-craig"
    arm = Arm.CRAIG


class OursPseudoLabels(Ours):
    """Our model with pseudo-labels of low entropy."""

    name = "ours-pseudo-labels"
    arm = Arm.PSEUDO


class OursAll(Ours):
    """Our model with all parts: entropy filter, coreset and pseudo-labels."""

    name = "ours-all-parts"
    arm = Arm.CRAIG_PSEUDO
