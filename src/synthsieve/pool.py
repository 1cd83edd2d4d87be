"""The synthetic pool: every sample drawn, what became of it, and where it came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.archive import read_arrays
from synthsieve.entropy import Reason
from synthsieve.errors import CheckpointError
from synthsieve.files import json_of, written_atomically

FORMAT = "synthsieve pool 1"
# Of each column the kinds of number and the dimensions.
COLUMNS = {
    "y": ("i", 1),
    "z": ("f", 2),
    "chain_seed": ("i", 1),
    "entropy": ("f", 1),
    "reason": ("i", 1),
    "weight": ("f", 1),
    "rank": ("i", 1),
}
ORIGIN: dict[str, type | tuple[type, ...]] = {
    "model_hash": str,
    "num_steps": int,
    "step_size": (int, float),
    "temperature": (int, float),
    "decode_noise": bool,
}


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
            arrays = read_arrays(path, ("header", "x", *COLUMNS))
            header = json_of(str(arrays.pop("header")))
            if header["format"] != FORMAT:
                raise ValueError(f"its format is {header['format']!r}, not {FORMAT!r}")
            pool = cls(**arrays, origin=header["origin"])
            _check(pool)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{path} is not a whole pool ({error}): resume from an earlier step, or fit again"
            ) from None
        return pool


def _check(pool: SyntheticPool) -> None:
    """A ValueError where a column is not what `SyntheticPool` says it is."""
    for name, (kinds, sides) in COLUMNS.items():
        column: np.ndarray = getattr(pool, name)
        if column.dtype.kind not in kinds or column.ndim != sides or len(column) != len(pool.z):
            raise ValueError(f"its column {name} came as {column.dtype} {column.shape} for {len(pool.z)} samples")
    if not np.isin(pool.reason, list(Reason)).all():
        raise ValueError("it gives reasons that there are not")
    if not np.isfinite(pool.weight).all() or min(pool.weight.min(initial=0), pool.y.min(initial=0)) < 0:
        raise ValueError("weights and classes must not be negative")
    if pool.x.ndim < 1 or len(pool.x) != len(pool.selected):
        raise ValueError(f"it keeps {pool.x.shape} of {len(pool.selected)} selected samples")
    for name, value in dict(pool.origin).items():
        if not isinstance(value, ORIGIN.get(name, object)):
            raise ValueError(f"its origin names {value!r} as {name}")
    if "model_hash" not in pool.origin:
        raise ValueError("it does not say who drew it")
