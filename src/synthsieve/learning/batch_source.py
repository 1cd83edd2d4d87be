"""Step 1 of Algorithm 1: mini-batches of labelled pairs, of unlabelled x, and of what augmentation added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import chisquare

from synthsieve.config import Objective
from synthsieve.data.batches import Batches
from synthsieve.data.dataset import Dataset
from synthsieve.data.encoding import Encoding
from synthsieve.learning.additions import Additions
from synthsieve.learning.learner import CPU
from synthsieve.learning.run_folder import RunFolder
from synthsieve.learning.step import Batch, Weighted
from synthsieve.randomness import numpy_stream
from synthsieve.sharing import Share


class BatchSource:
    """Batches without end, encoded, in a seeded order; of several processes each gets its share of every batch."""

    def __init__(
        self, run: RunFolder, dataset: Dataset, share: Share | None = None, device: torch.device = CPU
    ) -> None:
        split = run.split
        self.x, self.y = dataset.train.x, split.visible_labels(dataset)
        self.weights = dataset.train.weights
        self.settings, self.encoding = run.settings, run.encoding
        self.share, self.device = share or Share(), device
        self.added: dict[str, _Column] = {}
        self.rows = {"labeled": split.labeled}
        balanced = self.settings.data.balanced
        self.class_shares = None if balanced else _class_shares(self.y[split.labeled], len(split.classes))
        if len(split.unlabeled) and self.settings.learning.objective is Objective.JOINT:
            self.rows["unlabeled"] = split.unlabeled
        sizes = {"labeled": self.settings.learning.batch_labeled, "unlabeled": self.settings.learning.batch_unlabeled}
        self.batches = {name: self._batches(name, len(rows), sizes[name]) for name, rows in self.rows.items()}

    def add(self, additions: Additions) -> None:
        """From now on batches also hold these."""
        pool, pseudo = additions.pool, additions.pseudo
        if pool is not None:
            self.added["synthetic"] = _Column(pool.x, pool.y[pool.selected], pool.loss_weights, np.arange(len(pool.x)))
            size = self.settings.augmentation.batch_synthetic
            self.batches["synthetic"] = self._batches(f"synthetic/{additions.step}", len(pool.x), size)
        self.added.pop("pseudo", None)
        self.batches.pop("pseudo", None)
        if pseudo is not None and len(pseudo.y):
            self.added["pseudo"] = _Column(self.x, pseudo.y, np.ones(len(pseudo.y)), pseudo.rows)
            size = self.settings.pseudo_labels.batch
            self.batches["pseudo"] = self._batches(f"pseudo/{additions.step}", len(pseudo.y), size)

    def __next__(self) -> Batch:
        picks = {name: self.share.of(next(batches)) for name, batches in self.batches.items()}
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
        return self.added[name].take(picks[name], self.encoding) if name in self.added else None

    def _batches(self, name: str, count: int, size: int) -> Batches:
        return Batches(count, size, generator=numpy_stream(self.settings.seed, f"batches/{name}"))


@dataclass(frozen=True)
class _Column:
    """Additional examples: the i-th is x[rows[i]], with label y[i] and weight weights[i]."""

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
    differ by chance, and shares estimated from them do harm.
    """
    counts = np.bincount(y, minlength=num_classes)
    if chisquare(counts).pvalue > 0.05:
        return None
    return torch.from_numpy((counts + 1) / (len(y) + num_classes)).float()


def encoded(encoding: Encoding, x: np.ndarray) -> torch.Tensor:
    """Examples as the networks see them, (n, *shape)."""
    return torch.from_numpy(np.ascontiguousarray(encoding.encode(x)))
