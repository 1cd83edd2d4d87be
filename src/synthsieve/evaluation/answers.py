"""A model's predictions on held-out examples, stored so that every metric can be computed later."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.errors import CheckpointError
from synthsieve.evaluation.metrics import weighted_metric
from synthsieve.io.files import atomic_write, parse_json
from synthsieve.io.npz import read_arrays
from synthsieve.settings import Metric

PARTS = ("validation", "test")
FIELDS = ("rows", "y", "probabilities")
UNCALIBRATED = "uncalibrated"


@dataclass(frozen=True, eq=False)
class Answers:
    """A model's probabilities on the examples of one part of a split."""

    rows: np.ndarray  # int64 (n,), which examples of the data set
    y: np.ndarray  # int64 (n,), their labels
    probabilities: np.ndarray  # float32 (n, num_classes)
    uncalibrated: np.ndarray | None = None  # the same before calibration; None where there was none

    def __len__(self) -> int:
        return len(self.y)

    @property
    def right(self) -> np.ndarray:
        """Which examples are predicted correctly: bool (n,)."""
        return np.asarray(self.probabilities.argmax(axis=1) == self.y)

    def score(self, metric: Metric) -> float:
        """A metric of these answers; log-loss is negated, so that higher is better."""
        return weighted_metric(metric, self.y, self.probabilities, np.ones(len(self)))


def concatenate(parts: Iterable[Answers]) -> Answers:
    """Answers of disjoint parts as one, in the order of their rows."""
    parts = list(parts)
    names = [*FIELDS, *(() if any(part.uncalibrated is None for part in parts) else (UNCALIBRATED,))]
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in names]
    order = np.argsort(columns[0], kind="stable")
    return Answers(*(column[order] for column in columns))


def write_answers(path: Path, answers: Mapping[str, Answers], metadata: Mapping[str, Any] | None = None) -> None:
    """Answers of `validation` and `test` as one .npz, atomically, with `metadata` on the model as JSON."""
    arrays: dict[str, Any] = {"about": np.asarray(json.dumps(metadata or {}))}
    for part, answer in answers.items():
        arrays |= {f"{part}_{name}": getattr(answer, name) for name in FIELDS}
        if answer.uncalibrated is not None:
            arrays[f"{part}_{UNCALIBRATED}"] = answer.uncalibrated
    with atomic_write(path) as partial, partial.open("wb") as file:
        np.savez(file, **arrays)


def read_answers(path: Path) -> tuple[dict[str, Answers], dict[str, Any]]:
    """What `write_answers` wrote: answers by part (a part without examples is absent), and `metadata`."""
    try:
        stored = read_arrays(path, ("about", *(f"{part}_{name}" for part in PARTS for name in (*FIELDS, UNCALIBRATED))))
        metadata = parse_json(str(stored["about"]))
        if not isinstance(metadata, dict):
            raise ValueError("its metadata are not a JSON object")
        answers = {
            part: Answers(
                **{name: stored[f"{part}_{name}"] for name in FIELDS},
                uncalibrated=stored.get(f"{part}_{UNCALIBRATED}"),
            )
            for part in PARTS
            if f"{part}_y" in stored
        }
        for answer in answers.values():
            _check(answer)
        return answers, metadata
    except (ValueError, KeyError) as error:
        message = f"{path} is damaged ({error}): remove it, and the same command measures again"
        raise CheckpointError(message, code="damaged-answers") from None


def _check(answer: Answers) -> None:
    rows, y, p = answer.rows, answer.y, answer.probabilities
    if p.ndim != 2 or p.dtype.kind != "f" or len(p) != len(y) or rows.shape != y.shape or y.ndim != 1:
        raise ValueError(f"its arrays have shapes {rows.shape}, {y.shape} and {p.shape}")
    if rows.dtype.kind != "i" or y.dtype.kind != "i" or not np.isfinite(p).all():
        raise ValueError("its rows and labels must be integers, its probabilities finite")
    before = answer.uncalibrated
    if before is not None and (before.shape != p.shape or before.dtype.kind != "f" or not np.isfinite(before).all()):
        raise ValueError(f"its uncalibrated probabilities are {before.dtype} {before.shape}")
    if len(y) and not (y.min() >= 0 and y.max() < p.shape[1]):
        raise ValueError(f"its labels must be 0 to {p.shape[1] - 1}")
