"""The synthetic pool: every sample drawn, what became of it, and where it came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from synthsieve.entropy import Reason
from synthsieve.errors import CheckpointError
from synthsieve.files import written_atomically

FORMAT = "synthsieve pool 1"
COLUMNS = ("y", "z", "chain_seed", "entropy", "reason", "weight", "rank")


@dataclass(frozen=True)
class SyntheticPool:
    """`pool_size` samples, of which some were selected; only those keep their x, the others can be drawn again.

    Attributes:
        y: int64 (n,), the class each was asked for.
        z: float32 (n, latent_dim), the latent it ended at.
        chain_seed: int64 (n,), the seed of its chain: with the model of `origin` it gives z and x again.
        entropy: float64 (n,), of the classifier's answer, in nats.
        reason: int8 (n,), an `entropy.Reason`: kept by the filter, or why not.
        weight: float64 (n,), how many samples a selected one stands for; 0 for the others.
        rank: int64 (n,), the turn in which it was chosen within its class; -1 for those not selected.
        x: (k, *shape), the selected samples, as the source stores examples, in the order of `selected`.
        origin: model_hash, and the settings of the chains: what drawing again needs.
    """

    y: np.ndarray
    z: np.ndarray
    chain_seed: np.ndarray
    entropy: np.ndarray
    reason: np.ndarray
    weight: np.ndarray
    rank: np.ndarray
    x: np.ndarray
    origin: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.y)

    @property
    def selected(self) -> np.ndarray:
        """Rows that training sees: int64 (k,), ascending."""
        return np.flatnonzero(self.weight > 0)

    @property
    def survivors(self) -> np.ndarray:
        """Rows that passed the filter: int64, ascending."""
        return np.flatnonzero(self.reason == Reason.KEPT)

    @property
    def loss_weights(self) -> np.ndarray:
        """Weights of the selected, scaled to mean 1: float64 (k,)."""
        weights = self.weight[self.selected]
        return weights / weights.mean()

    def reason_in_words(self, row: int) -> str:
        """Why a row is where it is."""
        if self.weight[row] > 0:
            return "selected"
        reason = Reason(int(self.reason[row]))
        return "not selected: another stands for it" if reason is Reason.KEPT else reason.in_words()

    def write(self, path: Path) -> None:
        """One .npz, atomically; it holds no objects and loads without pickle."""
        header = json.dumps({"format": FORMAT, "origin": dict(self.origin)}, allow_nan=False)
        with written_atomically(path) as partial, partial.open("wb") as file:
            np.savez(file, header=np.asarray(header), x=self.x, **{name: getattr(self, name) for name in COLUMNS})

    @classmethod
    def read(cls, path: Path) -> SyntheticPool:
        """The pool that `write` wrote."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                header = json.loads(str(stored["header"]))
                if header.get("format") != FORMAT:
                    raise ValueError(f"its format is {header.get('format')!r}, not {FORMAT!r}")
                arrays = {name: stored[name] for name in (*COLUMNS, "x")}
        except (OSError, ValueError, KeyError, EOFError, AttributeError, BadZipFile) as error:
            raise CheckpointError(
                f"{path} is not a whole pool ({error}): resume from an earlier step, or fit again"
            ) from None
        pool = cls(**arrays, origin=header["origin"])
        if any(len(getattr(pool, name)) != len(pool.y) for name in COLUMNS) or len(pool.x) != len(pool.selected):
            raise CheckpointError(f"{path} is damaged (its columns differ in length): fit again")
        return pool
