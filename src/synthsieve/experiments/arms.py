"""The arms of the proof: ways to go on from one and the same first phase, and the twin, which has labels alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from synthsieve.config import Coreset, ProofSettings, Settings, VariantSet
from synthsieve.experiments.supervised import twin_settings

NO_FILTER: dict[str, Any] = {"entropy_ceiling": None, "keep_fraction": None, "require_asked_class": False}


class Group(StrEnum):
    """What kind of thing stands in a row of the proof: another way to learn, ours on real data, ours with additions."""

    BASELINE = "baseline"
    REAL = "real"
    SYNTHETIC = "synthetic"


class Arm(StrEnum):
    """What the second phase learns from beside the labelled and unlabelled examples; or no second phase at all."""

    SUPERVISED = "supervised only"
    FIRST_PHASE = "first phase alone"
    REAL_ONLY = "real only"
    ALL = "all synthetic"
    RANDOM = "random tenth"
    ENTROPY = "entropy"
    ENTROPY_RANDOM = "entropy + random tenth"
    CRAIG = "entropy + CRAIG"
    ADACORE = "entropy + AdaCore"
    PSEUDO = "pseudo-labels"
    CRAIG_PSEUDO = "entropy + CRAIG + PL"
    IMPLICIT = "implicit"

    @property
    def group(self) -> Group:
        if self is Arm.SUPERVISED:
            return Group.BASELINE
        return Group.REAL if self in (Arm.FIRST_PHASE, Arm.REAL_ONLY) else Group.SYNTHETIC

    @property
    def branches_off(self) -> bool:
        """Whether it goes on from the first phase of its seed."""
        return self not in (Arm.SUPERVISED, Arm.FIRST_PHASE)


# Which arms draw a pool, and how they treat it.
POOLED: dict[Arm, dict[str, Any]] = {
    Arm.ALL: {**NO_FILTER, "coreset": Coreset.EVERYTHING},
    Arm.RANDOM: {**NO_FILTER, "coreset": Coreset.RANDOM},
    Arm.ENTROPY: {"coreset": Coreset.EVERYTHING},
    Arm.ENTROPY_RANDOM: {"coreset": Coreset.RANDOM},
    Arm.CRAIG: {"coreset": Coreset.CRAIG},
    Arm.ADACORE: {"coreset": Coreset.ADACORE},
    Arm.CRAIG_PSEUDO: {"coreset": Coreset.CRAIG},
}


@dataclass(frozen=True)
class Cell:
    """A cell of the table: an arm at a pool size; 0 for arms without a pool."""

    arm: Arm
    pool_size: int

    @property
    def name(self) -> str:
        return f"{self.arm}, L={self.pool_size:,}" if self.pool_size else str(self.arm)

    @property
    def slug(self) -> str:
        """The name of its folder."""
        words = str(self.arm).replace(" + ", "-").replace(" ", "-").lower()
        return f"{words}-{self.pool_size}" if self.pool_size else words


BASELINE = Cell(Arm.REAL_ONLY, 0)


# Which arms are compared: the standard ones answer whether samples, the filter and the coreset help, each beside a
# control; the quick ones only whether the samples that the sieve keeps help.
VARIANTS = {
    VariantSet.STANDARD: (
        Arm.SUPERVISED,
        Arm.FIRST_PHASE,
        Arm.REAL_ONLY,
        Arm.ALL,
        Arm.ENTROPY,
        Arm.ENTROPY_RANDOM,
        Arm.CRAIG,
        Arm.PSEUDO,
    ),
    VariantSet.QUICK: (Arm.SUPERVISED, Arm.FIRST_PHASE, Arm.REAL_ONLY, Arm.ENTROPY_RANDOM, Arm.CRAIG),
}


def cells_for(settings: ProofSettings) -> tuple[Cell, ...]:
    """The arms that the settings ask for: all of the paper's table, or the standard or quick ones at the smallest L."""
    if settings.variants is VariantSet.ALL:
        return tuple(cells(settings.pool_sizes, baselines=settings.baselines))
    chosen = [arm for arm in VARIANTS[settings.variants] if settings.baselines or arm.group is not Group.BASELINE]
    return tuple(Cell(arm, settings.pool_sizes[0] if arm in POOLED else 0) for arm in chosen)


def cells(pool_sizes: tuple[int, ...], *, baselines: bool = True) -> list[Cell]:
    """The paper's table for these L, with the arms it lacks: filters alone at the small L, CRAIG at every one.

    With `baselines` the twin stands first.
    """
    small, main = pool_sizes[0], pool_sizes[min(1, len(pool_sizes) - 1)]
    sizes = {
        Arm.SUPERVISED: [0] if baselines else [],
        Arm.FIRST_PHASE: [0],
        Arm.REAL_ONLY: [0],
        Arm.ALL: [small],
        Arm.RANDOM: [small],
        Arm.ENTROPY: sorted({small, main}),
        Arm.ENTROPY_RANDOM: [main],
        Arm.CRAIG: list(pool_sizes),
        Arm.ADACORE: [main],
        Arm.PSEUDO: [0],
        Arm.CRAIG_PSEUDO: [main],
        Arm.IMPLICIT: [0],
    }
    return [Cell(arm, size) for arm in Arm for size in sizes[arm]]


def settings_of(cell: Cell, settings: Settings) -> Settings:
    """The settings of one arm: those of all arms, with its own additions switched on and the others off."""
    if cell.arm is Arm.SUPERVISED:
        return twin_settings(settings)
    augmentation = {"enabled": cell.arm in POOLED, **POOLED.get(cell.arm, {})}
    if cell.pool_size:
        augmentation["pool_size"] = cell.pool_size
    pseudo = {"enabled": cell.arm in (Arm.PSEUDO, Arm.CRAIG_PSEUDO)}
    return settings.model_copy(
        update={
            "augmentation": settings.augmentation.model_copy(update=augmentation),
            "pseudo_labels": settings.pseudo_labels.model_copy(update=pseudo),
            "implicit": settings.implicit.model_copy(update={"enabled": cell.arm is Arm.IMPLICIT}),
            "proof": ProofSettings(),  # no arm depends on what stands beside it
        }
    )
