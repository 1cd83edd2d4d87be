"""What a model answers on held-out examples, stored so that every metric can be computed later."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.archive import read_arrays
from synthsieve.errors import CheckpointError
from synthsieve.files import json_of, written_atomically

PARTS = ("validation", "test")
FIELDS = ("rows", "y", "probabilities")


@dataclass(frozen=True, eq=False)
class Answers:
    """A model's probabilities on the examples of one part of a split.

    Attributes:
        rows: int64 (n,), which examples of the data set.
        y: int64 (n,), their labels.
        probabilities: float32 (n, num_classes).
    """

    rows: np.ndarray
    y: np.ndarray
    probabilities: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    @property
    def right(self) -> np.ndarray:
        """Which examples get the right class: bool (n,)."""
        return np.asarray(self.probabilities.argmax(axis=1) == self.y)


def concatenate(parts: Iterable[Answers]) -> Answers:
    """Answers of disjoint parts as one, in the order of their rows."""
    each = list(parts)
    rows = np.concatenate([part.rows for part in each])
    order = np.argsort(rows, kind="stable")
    return Answers(
        rows[order],
        np.concatenate([part.y for part in each])[order],
        np.concatenate([part.probabilities for part in each])[order],
    )


def write_answers(path: Path, answers: Mapping[str, Answers], about: Mapping[str, Any] | None = None) -> None:
    """Answers of `validation` and `test` as one .npz, atomically, with facts `about` the model as JSON."""
    arrays: dict[str, Any] = {"about": np.asarray(json.dumps(about or {}))}
    for part, answer in answers.items():
        arrays |= {f"{part}_{name}": getattr(answer, name) for name in FIELDS}
    with written_atomically(path) as partial, partial.open("wb") as file:
        np.savez(file, **arrays)


def read_answers(path: Path) -> tuple[dict[str, Answers], dict[str, Any]]:
    """What `write_answers` wrote: answers by part (a part without examples is absent), and `about`."""
    try:
        stored = read_arrays(path, ("about", *(f"{part}_{name}" for part in PARTS for name in FIELDS)))
        about = json_of(str(stored["about"]))
        found = {}
        for part in PARTS:
            if f"{part}_y" in stored:
                answer = Answers(*(stored[f"{part}_{name}"] for name in FIELDS))
                _check(answer)
                found[part] = answer
        if not isinstance(about, dict):
            raise ValueError("its facts are not a JSON object")
        return found, about
    except (ValueError, KeyError) as error:
        raise CheckpointError(f"{path} is damaged ({error}): remove it, and the same command measures again") from None


def _check(answer: Answers) -> None:
    rows, y, p = answer.rows, answer.y, answer.probabilities
    if p.ndim != 2 or p.dtype.kind != "f" or len(p) != len(y) or rows.shape != y.shape or y.ndim != 1:
        raise ValueError(f"its arrays have shapes {rows.shape}, {y.shape} and {p.shape}")
    if rows.dtype.kind != "i" or y.dtype.kind != "i" or not np.isfinite(p).all():
        raise ValueError("its rows and labels must be whole numbers, its probabilities finite")
    if len(y) and not (y.min() >= 0 and y.max() < p.shape[1]):
        raise ValueError(f"its labels must lie in 0 to {p.shape[1] - 1}")
