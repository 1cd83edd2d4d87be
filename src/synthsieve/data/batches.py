"""Endless batches: one shuffled epoch after another, cut into pieces of equal size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from synthsieve.data.checks import check
from synthsieve.errors import CheckpointError


class Batches:
    """Row indices, `batch_size` at a time; between two shuffles every row comes exactly once.

    A batch at the end of an epoch is filled from the next one, so that every batch is full: 50 rows in batches of 100
    come exactly twice in each. `rng` belongs to this object; nothing else may draw from it.

    The state is small: that of `rng` before the current epoch was shuffled, and the position in the epoch.
    """

    def __init__(self, num_rows: int, batch_size: int, *, rng: np.random.Generator) -> None:
        check(num_rows >= 1, "batches need at least one row to draw from, but there is none", "no-rows")
        check(batch_size >= 1, f"batch_size must be at least 1, got {batch_size}", "batch-size")
        self.num_rows = num_rows
        self.batch_size = batch_size
        self._rng = rng
        self._shuffle()

    def _shuffle(self) -> None:
        self._before = self._rng.bit_generator.state
        self._order = self._rng.permutation(self.num_rows)
        self._position = 0

    def __iter__(self) -> Iterator[np.ndarray]:
        return self

    def __next__(self) -> np.ndarray:
        """The next batch: int64 (batch_size,)."""
        pieces: list[np.ndarray] = []
        missing = self.batch_size
        while missing:
            if self._position == self.num_rows:
                self._shuffle()
            piece = self._order[self._position : self._position + missing]
            self._position += len(piece)
            missing -= len(piece)
            pieces.append(piece)
        return np.concatenate(pieces).astype(np.int64, copy=False)

    def state(self) -> dict[str, Any]:
        """What `restore` needs to continue with the next batch; plain numbers and text, ready for JSON."""
        sizes = {"num_rows": self.num_rows, "batch_size": self.batch_size}
        return {**sizes, "position": self._position, "generator": self._before}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue where `state` was taken, bit for bit."""
        expected = {"num_rows": self.num_rows, "batch_size": self.batch_size}
        stored = {name: state.get(name) for name in expected}
        if expected != stored:
            problem = f"the stored batches have {stored}, but these {expected}: use the same data"
            raise CheckpointError(problem, code="other-batches")
        try:
            self._rng.bit_generator.state = state["generator"]
            position = int(state["position"])
            if not 0 <= position <= self.num_rows:
                raise ValueError(f"position {position} lies outside 0..{self.num_rows}")
        except (KeyError, TypeError, ValueError) as error:
            problem = f"the stored position in the batches is damaged ({error!r}): start a new run"
            raise CheckpointError(problem, code="damaged-batches") from None
        self._shuffle()
        self._position = position
