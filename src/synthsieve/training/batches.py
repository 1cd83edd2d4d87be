"""Step 1 of Algorithm 1: mini-batches of labelled pairs, of unlabelled x, and of extra data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import chisquare

from synthsieve.data.batches import Batches
from synthsieve.data.modalities.encoding import Encoding
from synthsieve.io.random_streams import numpy_stream
from synthsieve.settings import Objective, Settings
from synthsieve.training.data import TrainingData
from synthsieve.training.extra_data import ExtraData
from synthsieve.training.parallel import RankShard
from synthsieve.training.state import CPU
from synthsieve.training.step import Batch, Weighted


class BatchSource:
    """Endless encoded batches in a seeded order; in data-parallel training, this process's rows of each."""

    def __init__(
        self, data: TrainingData, settings: Settings, shard: RankShard | None = None, device: torch.device = CPU
    ) -> None:
        dataset, split = data.dataset, data.split
        self.x, self.y = dataset.train.x, split.visible_labels(dataset)
        self.weights = dataset.train.weights
        self.settings, self.encoding = settings, data.encoding
        self.shard, self.device = shard or RankShard(), device
        self._extra: dict[str, _WeightedRows] = {}
        self.rows = {"labeled": split.labeled}
        balanced = self.settings.data.balanced
        self.class_shares = None if balanced else _class_shares(self.y[split.labeled], len(split.classes))
        if len(split.unlabeled) and self.settings.training.objective is Objective.JOINT:
            self.rows["unlabeled"] = split.unlabeled
        sizes = {"labeled": self.settings.training.batch_labeled, "unlabeled": self.settings.training.batch_unlabeled}
        self.batches = {name: self._batches(name, len(rows), sizes[name]) for name, rows in self.rows.items()}

    def add(self, extra_data: ExtraData) -> None:
        """Include these in the batches from now on."""
        pool, pseudo = extra_data.pool, extra_data.pseudo
        if pool is not None:
            self._extra["synthetic"] = _WeightedRows(
                pool.x, pool.y[pool.selected], pool.loss_weights, np.arange(len(pool.x))
            )
            size = self.settings.augmentation.batch_synthetic
            self.batches["synthetic"] = self._batches(f"synthetic/{extra_data.step}", len(pool.x), size)
        self._extra.pop("pseudo", None)
        self.batches.pop("pseudo", None)
        if pseudo is not None and len(pseudo.y):
            self._extra["pseudo"] = _WeightedRows(self.x, pseudo.y, np.ones(len(pseudo.y)), pseudo.rows)
            size = self.settings.pseudo_labels.batch
            self.batches["pseudo"] = self._batches(f"pseudo/{extra_data.step}", len(pseudo.y), size)

    def __next__(self) -> Batch:
        picks = {name: self.shard.take(next(batches)) for name, batches in self.batches.items()}
        rows = {name: self.rows[name][picks[name]] for name in self.rows}
        batch = Batch(
            labeled_x=encoded(self.encoding, self.x[rows["labeled"]]),
            labeled_y=torch.from_numpy(self.y[rows["labeled"]]),
            labeled_weights=None if self.weights is None else torch.from_numpy(self.weights[rows["labeled"]]).float(),
            class_shares=self.class_shares,
            unlabeled_x=encoded(self.encoding, self.x[rows.get("unlabeled", np.empty(0, dtype=np.int64))]),
            synthetic=self._take("synthetic", picks),
            pseudo=self._take("pseudo", picks),
        )
        return batch.to(self.device)

    def state(self) -> dict[str, Any]:
        return {name: batches.state() for name, batches in self.batches.items()}

    def restore(self, state: dict[str, Any]) -> None:
        for name, batches in self.batches.items():
            batches.restore(state[name])

    def _take(self, name: str, picks: dict[str, np.ndarray]) -> Weighted | None:
        return self._extra[name].take(picks[name], self.encoding) if name in self._extra else None

    def _batches(self, name: str, count: int, size: int) -> Batches:
        return Batches(count, size, rng=numpy_stream(self.settings.seed, f"batches/{name}"))


@dataclass(frozen=True)
class _WeightedRows:
    """Extra examples: the i-th is x[rows[i]], with label y[i] and weight weights[i]."""

    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    rows: np.ndarray

    def take(self, picks: np.ndarray, encoding: Encoding) -> Weighted:
        return Weighted(
            x=encoded(encoding, self.x[self.rows[picks]]),
            y=torch.from_numpy(self.y[picks]),
            weights=torch.from_numpy(self.weights[picks]).float(),
        )


def _class_shares(y: np.ndarray, num_classes: int) -> torch.Tensor | None:
    """The share of each class among the labels, (labels of it + 1) / (labels + num_classes).

    None where the labels may well come from classes of equal size (chi-squared test at 5 %): few labels drawn at random
    differ by chance, and shares estimated from them would do harm.
    """
    counts = np.bincount(y, minlength=num_classes)
    if chisquare(counts).pvalue > 0.05:
        return None
    return torch.from_numpy((counts + 1) / (len(y) + num_classes)).float()


def encoded(encoding: Encoding, x: np.ndarray) -> torch.Tensor:
    """Examples as the networks see them, (n, *shape)."""
    return torch.from_numpy(np.ascontiguousarray(encoding.encode(x)))
