"""Step 1 of Algorithm 1: mini-batches of labelled pairs, of unlabelled x, and of extra data."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from synthsieve.data.batches import Batches
from synthsieve.io.random_streams import numpy_stream
from synthsieve.settings import Objective, Settings
from synthsieve.training.data import TrainingData
from synthsieve.training.extra_data import ExtraData
from synthsieve.training.parallel import SINGLE_PROCESS, ProcessGroup
from synthsieve.training.state import CPU
from synthsieve.training.step import Batch, Examples


class BatchSource:
    """Endless encoded batches in a seeded order; in data-parallel training, this process's rows of each."""

    def __init__(
        self,
        data: TrainingData,
        settings: Settings,
        group: ProcessGroup = SINGLE_PROCESS,
        device: torch.device = CPU,
    ) -> None:
        dataset, split = data.dataset, data.split
        self.x, self.y, self.weights = dataset.train.x, split.visible_labels(dataset), dataset.train.weights
        self.settings, self.encoding = settings, data.encoding
        self.group, self.device = group, device
        shares = data.class_shares(settings)
        self.class_shares = None if shares is None else torch.from_numpy(shares).float()
        self.batches: dict[str, Batches] = {}
        self._extra: dict[str, tuple[np.ndarray, ...]] = {}  # x, rows of x, and a label and a weight for each row
        self.rows = {"labeled": split.labeled}
        self._order("labeled", "labeled", len(split.labeled), settings.training.batch_labeled)
        if len(split.unlabeled) and settings.training.objective is Objective.JOINT:
            self.rows["unlabeled"] = split.unlabeled
            self._order("unlabeled", "unlabeled", len(split.unlabeled), settings.training.batch_unlabeled)
        self.graph_labels = data.graph_labels(settings) if "unlabeled" in self.rows else None

    def add(self, extra_data: ExtraData) -> None:
        """Include these in the batches from now on."""
        pool, pseudo = extra_data.pool, extra_data.pseudo
        if pool is not None:
            self._extra["synthetic"] = (pool.x, np.arange(len(pool.x)), pool.y[pool.selected], pool.loss_weights)
            size = self.settings.augmentation.batch_synthetic
            self._order("synthetic", f"synthetic/{extra_data.step}", len(pool.x), size)
        self._extra.pop("pseudo", None)
        self.batches.pop("pseudo", None)
        if pseudo is not None and len(pseudo.y):
            self._extra["pseudo"] = (self.x, pseudo.rows, pseudo.y, np.ones(len(pseudo.y)))
            self._order("pseudo", f"pseudo/{extra_data.step}", len(pseudo.y), self.settings.pseudo_labels.batch)

    def __next__(self) -> Batch:
        picks = {name: self.group.take(next(batches)) for name, batches in self.batches.items()}
        rows = {name: self.rows[name][picks[name]] for name in self.rows}
        batch = Batch(
            labeled_x=self._encoded(self.x[rows["labeled"]]),
            labeled_y=torch.from_numpy(self.y[rows["labeled"]]),
            labeled_weights=None if self.weights is None else torch.from_numpy(self.weights[rows["labeled"]]).float(),
            class_shares=self.class_shares,
            graph_labels=None if self.graph_labels is None else torch.from_numpy(self.graph_labels[picks["unlabeled"]]),
            unlabeled_x=self._encoded(self.x[rows.get("unlabeled", np.empty(0, dtype=np.int64))]),
            **{name: self._take(name, picks[name]) for name in self._extra},
        )
        return batch.to(self.device)

    def state(self) -> dict[str, Any]:
        return {name: batches.state() for name, batches in self.batches.items()}

    def restore(self, state: dict[str, Any]) -> None:
        for name, batches in self.batches.items():
            batches.restore(state[name])

    def _order(self, name: str, stream: str, count: int, size: int) -> None:
        self.batches[name] = Batches(count, size, rng=numpy_stream(self.settings.seed, f"batches/{stream}"))

    def _take(self, name: str, picks: np.ndarray) -> Examples:
        x, rows, y, weights = self._extra[name]
        return self._encoded(x[rows[picks]]), torch.from_numpy(y[picks]), torch.from_numpy(weights[picks]).float()

    def _encoded(self, x: np.ndarray) -> torch.Tensor:
        """Examples as the networks see them, (n, *shape)."""
        return torch.from_numpy(np.ascontiguousarray(self.encoding.encode(x)))
