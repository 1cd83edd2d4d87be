"""Batches without end: one shuffled epoch after another, cut into pieces of equal size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from synthsieve.errors import CheckpointError, DataError


class Batches:
    """Row indices, `batch_size` at a time; between two shuffles every row comes exactly once.

    A batch that an epoch's end falls into takes its remainder from the next epoch, so that every batch is full: 50 rows
    in batches of 100 come exactly twice in each. The generator belongs to this object; nothing else may draw from it.

    The state is small: the generator as it was before the current epoch was shuffled, and the place within the epoch.
    """

    def __init__(self, num_rows: int, batch_size: int, *, generator: np.random.Generator) -> None:
        if num_rows < 1:
            raise DataError("batches need at least one row to draw from, but there is none")
        if batch_size < 1:
            raise DataError(f"batch_size must be at least 1, but {batch_size} came")
        self.num_rows = num_rows
        self.batch_size = batch_size
        self._generator = generator
        self._shuffle()

    def _shuffle(self) -> None:
        self._before = self._generator.bit_generator.state
        self._order = self._generator.permutation(self.num_rows)
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
        """What `restore` needs to go on with the very next batch; plain numbers and text, ready for JSON."""
        return {
            "num_rows": self.num_rows,
            "batch_size": self.batch_size,
            "position": self._position,
            "generator": self._before,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue where `state` was taken, bit for bit."""
        mine = {"num_rows": self.num_rows, "batch_size": self.batch_size}
        theirs = {name: state.get(name) for name in mine}
        if mine != theirs:
            raise CheckpointError(
                f"the batches were stored for {theirs}, but these have {mine}: use the same data and size"
            )
        try:
            self._generator.bit_generator.state = state["generator"]
            position = int(state["position"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"the stored place within the batches is damaged ({error!r}): start afresh") from None
        if not 0 <= position <= self.num_rows:
            raise CheckpointError(f"the stored place {position} lies outside 0..{self.num_rows}: start afresh")
        self._shuffle()
        self._position = position
