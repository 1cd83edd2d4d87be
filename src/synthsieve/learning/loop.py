"""The loop around the step: batches in, checkpoints and history out, the best on validation kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from synthsieve.config import Objective
from synthsieve.data.batches import Batches
from synthsieve.data.dataset import Dataset
from synthsieve.data.encoding import Encoding
from synthsieve.evaluation.accuracy import Scores, score_part
from synthsieve.learning import checkpoint
from synthsieve.learning.history import History, Row
from synthsieve.learning.learner import Learner, non_finite
from synthsieve.learning.run_folder import RunFolder
from synthsieve.learning.step import Batch, take_step
from synthsieve.progress import Progress, Silent
from synthsieve.randomness import numpy_stream


@dataclass(frozen=True)
class FitResult:
    """How a fit ended.

    Attributes:
        steps: steps done in all.
        best_step: the step whose weights were kept as the best.
        validation_accuracy: the accuracy they had there; None without validation rows.
        seconds: wall time of this process's part.
    """

    steps: int
    best_step: int
    validation_accuracy: float | None
    seconds: float


class BatchSource:
    """Step 1 of Algorithm 1: mini-batches of labelled pairs and unlabelled x, encoded, in a seeded order."""

    def __init__(self, run: RunFolder, dataset: Dataset) -> None:
        settings, split = run.settings.learning, run.split
        self.x, self.y, self.encoding = dataset.train.x, split.visible_labels(dataset), run.encoding
        self.rows = {"labeled": split.labeled}
        sizes = {"labeled": settings.batch_labeled, "unlabeled": settings.batch_unlabeled}
        if len(split.unlabeled) and settings.objective is Objective.JOINT:
            self.rows["unlabeled"] = split.unlabeled
        self.batches = {
            name: Batches(len(rows), sizes[name], generator=numpy_stream(run.settings.seed, f"batches/{name}"))
            for name, rows in self.rows.items()
        }

    def __next__(self) -> Batch:
        rows = {name: self.rows[name][next(batches)] for name, batches in self.batches.items()}
        unlabeled = rows.get("unlabeled", np.empty(0, dtype=np.int64))
        return Batch(
            labeled_x=encoded(self.encoding, self.x[rows["labeled"]]),
            labeled_y=torch.from_numpy(self.y[rows["labeled"]]),
            unlabeled_x=encoded(self.encoding, self.x[unlabeled]),
        )

    def state(self) -> dict[str, Any]:
        return {name: batches.state() for name, batches in self.batches.items()}

    def restore(self, state: dict[str, Any]) -> None:
        for name, batches in self.batches.items():
            batches.restore(state[name])


def fit(
    run: RunFolder, dataset: Dataset, *, progress: Progress | None = None, on_row: Callable[[Row], None] | None = None
) -> FitResult:
    """Train to the last step, from the last checkpoint when there is one; a resumed run equals an unbroken one.

    `on_row` is called with each new row of the history.
    """
    progress = progress or Silent()
    settings = run.settings.learning
    learner, source, history = run.new_learner(), BatchSource(run, dataset), History(run.path)
    best: Row | None = None
    if run.last.is_file():
        notes = checkpoint.load(run.last, learner)
        source.restore(notes["batches"])
        history.restore(notes["history"], learner.step)
        best = notes["best"]
    started = time.monotonic()
    with closing(progress):
        while learner.step < settings.steps:
            take_step(learner, next(source))
            history.add(learner.terms)
            at_end = learner.step == settings.steps
            if learner.step % settings.evaluate_every == 0 or at_end:
                scores = score_part(learner.averaged, run.encoding, dataset, run.split, "validation")
                if scores is not None and not math.isfinite(scores.cross_entropy):
                    raise non_finite(learner.step, "validation cross-entropy", scores.cross_entropy)
                row = history.close_row(step=learner.step, **_figures(scores))
                if on_row is not None:
                    on_row(row)
                if best is None or _better(row, best):
                    best = row
                    checkpoint.save_weights(run.best, learner, {"best": best})
            if learner.step % settings.checkpoint_every == 0 or at_end:
                notes = {"batches": source.state(), "history": history.state(), "best": best}
                checkpoint.save(run.last, learner, notes)
            progress.update(learner.step, settings.steps, _message(learner, history))
    best = best or {"step": learner.step}
    return FitResult(learner.step, int(best["step"]), best.get("validation_accuracy"), time.monotonic() - started)


def encoded(encoding: Encoding, x: np.ndarray) -> torch.Tensor:
    """Examples as the networks see them, float32 (n, *shape)."""
    return torch.from_numpy(np.ascontiguousarray(encoding.encode(x)))


def _figures(scores: Scores | None) -> dict[str, float]:
    return {} if scores is None else scores.as_row("validation")


def _better(row: dict[str, float], best: dict[str, float]) -> bool:
    """Higher accuracy on validation; at a tie the lower cross-entropy; without validation the later step."""
    if "validation_accuracy" not in row:
        return True
    rank = [(r["validation_accuracy"], -r["validation_cross_entropy"]) for r in (row, best)]
    return rank[0] > rank[1]


def _message(learner: Learner, history: History) -> str:
    words = [f"cross-entropy {learner.terms['cross_entropy']:.3f}"]
    if history.rows and "validation_accuracy" in history.rows[-1]:
        words.append(f"validation {100 * history.rows[-1]['validation_accuracy']:.1f} %")
    return ", ".join(words)
