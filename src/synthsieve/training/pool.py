"""The synthetic pool: every sample drawn, the model's answers to it, its outcome, and where it came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synthsieve.errors import CheckpointError, ConfigError
from synthsieve.evaluation.predict import NO_ORACLE
from synthsieve.io.files import atomic_write, parse_json
from synthsieve.io.npz import read_arrays
from synthsieve.models.chains import DrawSettings
from synthsieve.selection.entropy import REJECTED, Reason, outcome_codes
from synthsieve.settings import AugmentationSettings, Draw, EntropyAt

if TYPE_CHECKING:
    from synthsieve.selection.curvature import CurvatureState

FORMAT = "synthsieve pool 2"
OLD_FORMAT = "synthsieve pool 1"
# Of each column the kind of number, and its shape: n samples, c classes, d latents.
COLUMNS = {
    **dict.fromkeys(("y", "chain_seed", "oracle_class", "reason", "rank"), ("i", "n")),
    **dict.fromkeys(("entropy", "weight", "log_density"), ("f", "n")),
    **dict.fromkeys(("z", "z_reencoded"), ("f", "nd")),
    **dict.fromkeys(("logits_z", "logits_x"), ("f", "nc")),
}
NUMBER = (int, float)
ORIGIN: dict[str, Any] = {
    "model_hash": str,
    "num_steps": int,
    "step_size": NUMBER,
    "temperature": NUMBER,
    "draw": str,
    "decode_noise": bool,
    "class_offsets": list,
}


class _Rows:
    """What follows from the filter's reasons and the weights of all samples."""

    reason: np.ndarray
    weight: np.ndarray

    @property
    def kept(self) -> np.ndarray:
        """Which samples passed the filter: bool (n,)."""
        return self.reason == Reason.KEPT

    @property
    def selected(self) -> np.ndarray:
        """Rows in the coreset, which training sees: int64 (k,), ascending."""
        return np.flatnonzero(self.weight > 0)

    @property
    def codes(self) -> np.ndarray:
        """The outcome of each sample as the number of a `Reason`: int8 (n,)."""
        return outcome_codes(self.reason, self.weight > 0)

    def describe(self, row: int) -> str:
        """The outcome of one sample in words."""
        return Reason.SELECTED.describe() if self.weight[row] > 0 else Reason(int(self.reason[row])).describe()

    def counts(self) -> dict[str, int]:
        """How many samples have each outcome, in words."""
        counts = np.bincount(self.codes, minlength=len(Reason))
        return {reason.describe(): int(counts[reason]) for reason in (Reason.SELECTED, Reason.KEPT, *REJECTED)}


@dataclass(frozen=True)
class Outcomes(_Rows):
    """The outcome of each of the pool's n samples: as trained, or selected again with other settings."""

    reason: np.ndarray  # int8 (n,), a `Reason`: kept by the filter, or why not
    weight: np.ndarray  # float64 (n,), how many samples a selected one stands for; 0 for the others
    rank: np.ndarray  # int64 (n,), the turn in which it was chosen within its class; -1 for those not selected
    entropy_ceiling: float  # no kept entropy lies above it, nats; infinity without a filter; the highest of all classes
    settings: AugmentationSettings
    figures: dict[str, Any]  # gradient error and bound where measured, and what else `augment` measured; for JSON
    curvature_state: CurvatureState | None = None  # AdaCore's averages, for the next selection


@dataclass(frozen=True)
class SyntheticPool(_Rows):
    """`pool_size` samples, of which some were selected; only those keep their x, the others can be drawn again."""

    y: np.ndarray  # int64 (n,), the class requested of each
    z: np.ndarray  # float32 (n, latent_dim), the latent it ended at
    chain_seed: np.ndarray  # int64 (n,), the seed of its chain: with the model of `origin` it gives z and x again
    logits_z: np.ndarray  # float32 (n, num_classes), F at z
    logits_x: np.ndarray  # float32 (n, num_classes), F at `z_reencoded`
    z_reencoded: np.ndarray  # float32 (n, latent_dim), the mean of q(z given x)
    oracle_class: np.ndarray  # int64 (n,), the class that an independent classifier gives to x; -1 without one
    entropy: np.ndarray  # float64 (n,), of the classifier's prediction, in nats
    reason: np.ndarray  # its outcome in training, see `Outcomes`
    weight: np.ndarray
    rank: np.ndarray
    x: np.ndarray  # (k, *shape), the selected samples, as the source stores examples, in the order of `selected`
    origin: Mapping[str, Any]  # model_hash, and the settings of the chains: what drawing again needs
    # float64 (n,), log p(z given y) up to a constant of y, under the prior it was drawn from; None: the paper's
    log_density: np.ndarray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.log_density is None:  # a pool of an earlier version, which did not store it
            object.__setattr__(self, "log_density", _paper_log_density(self.y, self.z, self.logits_z))

    def __len__(self) -> int:
        return len(self.y)

    @property
    def survivors(self) -> np.ndarray:
        """Rows that passed the filter: int64, ascending."""
        return np.flatnonzero(self.kept)

    @property
    def loss_weights(self) -> np.ndarray:
        """Weights of the selected, scaled to mean 1: float64 (k,)."""
        weights = self.weight[self.selected]
        return weights / weights.mean()

    @property
    def predicted(self) -> np.ndarray:
        """The class that the classifier gives to x: int64 (n,)."""
        return self.predicted_at(EntropyAt.X)

    def predicted_at(self, place: EntropyAt) -> np.ndarray:
        """The class that the classifier gives to x or z, of classes that are equally frequent: int64 (n,)."""
        return np.asarray((self.logits_at(place) + np.array(self.origin.get("class_offsets", 0.0))).argmax(axis=1))

    @property
    def chains(self) -> DrawSettings:
        """The chains that drew it; a pool that scored the latents of an earlier one is refused."""
        if "latents_of" in self.origin:
            raise ConfigError(
                "this pool's latents came from an earlier model, so its chains cannot be replayed", code="other-model"
            )
        num_steps, step_size, temperature = (self.origin[name] for name in ("num_steps", "step_size", "temperature"))
        return DrawSettings(num_steps, step_size, temperature, Draw(self.origin.get("draw", Draw.LANGEVIN)))

    def logits_at(self, place: EntropyAt) -> np.ndarray:
        """The classifier's logits at x or at z: float32 (n, num_classes)."""
        return self.logits_x if place is EntropyAt.X else self.logits_z

    def purity(self, rows: np.ndarray) -> float | None:
        """The share of `rows` to which the oracle gives the class requested; None without an oracle or rows."""
        if not len(rows) or (self.oracle_class == NO_ORACLE).all():
            return None
        return float((self.oracle_class[rows] == self.y[rows]).mean())

    def as_trained(self, settings: AugmentationSettings, figures: Mapping[str, Any]) -> Outcomes:
        """The outcomes in training; `figures` are those that the selection stored."""
        ceiling = figures.get("entropy_ceiling")
        measured = {name: figures[name] for name in ("gradient_bound", "gradient_error") if name in figures}
        applied = np.inf if ceiling is None else float(ceiling)
        return Outcomes(self.reason, self.weight, self.rank, applied, settings, measured)

    def write(self, path: Path) -> None:
        """One .npz, atomically; it holds no objects and loads without pickle."""
        header = json.dumps({"format": FORMAT, "origin": dict(self.origin)}, allow_nan=False)
        with atomic_write(path) as partial, partial.open("wb") as file:
            np.savez(file, header=np.asarray(header), x=self.x, **{name: getattr(self, name) for name in COLUMNS})

    @classmethod
    def read(cls, path: Path) -> SyntheticPool:
        """The pool that `write` wrote."""
        try:
            arrays = read_arrays(path, ("header", "x", *COLUMNS))
            header = parse_json(str(arrays.pop("header")))
            if header["format"] == OLD_FORMAT:
                raise CheckpointError(
                    f"{path} is a pool of synthsieve 0.1, which this version cannot read: run the same command with "
                    "another output folder",
                    code="old-pool",
                )
            if header["format"] != FORMAT:
                raise ValueError(f"its format is {header['format']!r}, not {FORMAT!r}")
            pool = cls(**arrays, origin=header["origin"])
            _check(pool)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{path} is not a complete pool ({error}): resume from an earlier step, or fit again",
                code="damaged-pool",
            ) from None
        return pool


def _paper_log_density(y: np.ndarray, z: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """F(z)[y] + log N(z; 0, I): float64 (n,)."""
    at_y = np.take_along_axis(logits, y[:, None], axis=1)[:, 0].astype(np.float64)
    squares = np.square(z, dtype=np.float64).sum(axis=1)
    return np.asarray(at_y - 0.5 * squares - 0.5 * z.shape[1] * np.log(2 * np.pi))


def _check(pool: SyntheticPool) -> None:
    """A ValueError where a column is not what `SyntheticPool` says it is."""
    sizes = {"n": len(pool.z), "d": pool.z.shape[-1], "c": pool.logits_z.shape[-1]}
    for name, (kind, shape) in COLUMNS.items():
        column: np.ndarray = getattr(pool, name)
        if column.dtype.kind != kind or column.shape != tuple(sizes[side] for side in shape):
            raise ValueError(f"its column {name} is {column.dtype} {column.shape} for {len(pool.z)} samples")
    if not np.isin(pool.reason, list(Reason)).all() or (pool.reason == Reason.SELECTED).any():
        raise ValueError("unknown reason code")
    if not np.isfinite(pool.weight).all() or min(pool.weight.min(initial=0), pool.y.min(initial=0)) < 0:
        raise ValueError("weights and classes must not be negative")
    if max(pool.y.max(initial=-1), pool.oracle_class.max(initial=-1)) >= sizes["c"]:
        raise ValueError("it has class indices beyond its logits")
    if pool.x.ndim < 1 or len(pool.x) != len(pool.selected):
        raise ValueError(f"it has x {pool.x.shape} for {len(pool.selected)} selected samples")
    if not isinstance(pool.origin, dict):
        raise ValueError("its origin is not a JSON object")
    for name, value in pool.origin.items():
        if not isinstance(value, ORIGIN.get(name, object)):
            raise ValueError(f"its origin has {value!r} as {name}")
    offsets = pool.origin.get("class_offsets", [0.0] * sizes["c"])
    if len(offsets) != sizes["c"] or not all(isinstance(one, NUMBER) for one in offsets):
        raise ValueError(f"its origin has {offsets!r} as class_offsets")
    if "model_hash" not in pool.origin:
        raise ValueError("its origin does not name the model")
