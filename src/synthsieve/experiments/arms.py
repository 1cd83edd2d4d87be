"""The variants that are compared: ways to continue from one pretrained model, and a supervised baseline."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from synthsieve.settings import (
    ComparisonSettings,
    Coreset,
    DrawFrom,
    ModelSettings,
    NetworkKind,
    Objective,
    Settings,
    Targets,
    Validation,
    VariantSet,
)

EVALUATIONS = 5  # the supervised baseline is best early in training, so it is evaluated this many times as often
ORACLE_STEPS = 2500
NO_FILTER: dict[str, Any] = {"entropy_ceiling": None, "keep_fraction": None, "require_label": False}


class Group(StrEnum):
    """The kind of a row of the comparison: another method, our model on real data, our model with extra data."""

    BASELINE = "baseline"
    REAL = "real"
    SYNTHETIC = "synthetic"


class Arm(StrEnum):
    """The extra data of augmented training besides labelled and unlabelled examples; or no augmented training."""

    SUPERVISED = "supervised only"
    PRETRAINED = "pretrained"
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
    BORN_AGAIN = "born again"
    BORN_AGAIN_ALL = "born again + all synthetic"
    ANCHORED = "anchored draws"
    WITHIN_CLASS = "within-class draws"
    STYLE_SWAP = "style swaps"
    FRESH = "fresh draws"
    FRESH_SOFT = "fresh draws, soft targets"

    @property
    def group(self) -> Group:
        if self is Arm.SUPERVISED:
            return Group.BASELINE
        return Group.REAL if self in (Arm.PRETRAINED, Arm.REAL_ONLY) else Group.SYNTHETIC

    @property
    def branches_off(self) -> bool:
        """Whether it continues from the pretrained model of its seed."""
        return self not in (Arm.SUPERVISED, Arm.PRETRAINED)


# What each variant is compared with: the best of those that see no samples, by validation. A variant that is better
# than one of them alone may only undo harm.
WITHOUT_SAMPLES = (Arm.PRETRAINED, Arm.REAL_ONLY, Arm.PSEUDO, Arm.BORN_AGAIN)
WITH_PSEUDO_LABELS = (Arm.PSEUDO, Arm.CRAIG_PSEUDO, Arm.BORN_AGAIN, Arm.BORN_AGAIN_ALL)
ONCE = 10**9  # steps between selections: a new label tower keeps the pseudo-labels of the one before it
FRESH_STEPS = 100  # a pool for so many steps, of which each sample is seen once

# Which variants draw a pool, and how they select from it.
POOLED: dict[Arm, dict[str, Any]] = {
    Arm.ALL: {**NO_FILTER, "coreset": Coreset.EVERYTHING},
    Arm.RANDOM: {**NO_FILTER, "coreset": Coreset.RANDOM},
    Arm.ENTROPY: {"coreset": Coreset.EVERYTHING},
    Arm.ENTROPY_RANDOM: {"coreset": Coreset.RANDOM},
    Arm.CRAIG: {"coreset": Coreset.CRAIG},
    Arm.ADACORE: {"coreset": Coreset.ADACORE},
    Arm.CRAIG_PSEUDO: {"coreset": Coreset.CRAIG},
    Arm.BORN_AGAIN_ALL: {**NO_FILTER, "coreset": Coreset.EVERYTHING},
}
# Variants that draw samples as they need them.
FRESH: dict[str, Any] = {**POOLED[Arm.ALL], "temperature": 0.25, "reselect_every": FRESH_STEPS}
DRAWN: dict[Arm, dict[str, Any]] = {
    Arm.ANCHORED: {"draw_from": DrawFrom.LABELED, "residual": True},
    Arm.WITHIN_CLASS: {"draw_from": DrawFrom.WITHIN_CLASS, "residual": True},
    Arm.STYLE_SWAP: {"draw_from": DrawFrom.STYLE_SWAP},
    Arm.FRESH: FRESH,
    Arm.FRESH_SOFT: {**FRESH, "targets": Targets.SOFT},
}


@dataclass(frozen=True)
class TableEntry:
    """A variant at a pool size; 0 for variants without a pool."""

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


BASELINE = TableEntry(Arm.REAL_ONLY, 0)
PRETRAINED = TableEntry(Arm.PRETRAINED, 0)
ORACLE = "oracle"  # the folder of the classifier that measures how pure pools are


REAL = (Arm.SUPERVISED, Arm.PRETRAINED, Arm.REAL_ONLY)
# The standard variants answer whether samples, the filter and the coreset help, each with a control; the quick ones
# only whether the selected samples help.
VARIANTS = {
    VariantSet.STANDARD: (*REAL, Arm.ALL, Arm.ENTROPY, Arm.ENTROPY_RANDOM, Arm.CRAIG, Arm.PSEUDO),
    VariantSet.QUICK: (*REAL, Arm.ENTROPY_RANDOM, Arm.CRAIG),
}


def entries_for(settings: Settings) -> tuple[TableEntry, ...]:
    """The variants of the settings: all of the paper's table, or the standard or quick ones at the smallest L.

    The extended ones are those of the table and further ways to use samples; style swaps need two towers.
    """
    given, table = settings.comparison, []
    if given.variants in VARIANTS:
        arms = [arm for arm in VARIANTS[given.variants] if given.baselines or arm.group is not Group.BASELINE]
    else:
        table = table_entries(given.pool_sizes, baselines=given.baselines)
        left_out = Arm.WITHIN_CLASS if settings.model.label_latent_dim else Arm.STYLE_SWAP
        further = given.variants is VariantSet.EXTENDED
        arms = [arm for arm in (Arm.BORN_AGAIN_ALL, *DRAWN) if further and arm is not left_out]
    return (*table, *(TableEntry(arm, given.pool_sizes[0] if arm in POOLED else 0) for arm in arms))


def table_entries(pool_sizes: tuple[int, ...], *, baselines: bool = True) -> list[TableEntry]:
    """The paper's table for these L, with further variants: filters alone at the small L, CRAIG at every one, and a new
    label tower trained with pseudo-labels.

    With `baselines` the supervised baseline comes first.
    """
    small, main = pool_sizes[0], pool_sizes[min(1, len(pool_sizes) - 1)]
    sizes = {
        Arm.SUPERVISED: [0] if baselines else [],
        Arm.PRETRAINED: [0],
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
        Arm.BORN_AGAIN: [0],
    }
    return [TableEntry(arm, size) for arm in Arm for size in sizes.get(arm, [])]


def settings_of(entry: TableEntry, settings: Settings) -> Settings:
    """The settings of one variant: those of all, with its own extra data switched on and others off."""
    if entry.arm is Arm.SUPERVISED:
        return supervised_settings(settings)
    if entry.arm is Arm.PRETRAINED:
        return settings.pretrained()
    own = POOLED.get(entry.arm, {}) | DRAWN.get(entry.arm, {})
    augmentation = {"enabled": bool(own), **own}
    if entry.pool_size:
        augmentation["pool_size"] = entry.pool_size
    if entry.arm in (Arm.FRESH, Arm.FRESH_SOFT):
        augmentation["pool_size"] = FRESH_STEPS * settings.augmentation.batch_synthetic
    pseudo_labels: dict[str, Any] = {"enabled": entry.arm in WITH_PSEUDO_LABELS}
    if entry.arm in (Arm.BORN_AGAIN, Arm.BORN_AGAIN_ALL):
        augmentation |= {"reinitialise": True, "learning_rate": 1.0, "reselect_every": ONCE}
        pseudo_labels["reselect_every"] = ONCE
    settings = settings.changed("augmentation", **augmentation)
    settings = settings.changed("pseudo_labels", **pseudo_labels)
    settings = settings.changed("implicit", enabled=entry.arm is Arm.IMPLICIT)
    return settings.model_copy(update={"comparison": ComparisonSettings()})  # no variant depends on the others


def supervised_settings(settings: Settings) -> Settings:
    """The same labels, network and steps without unlabelled rows, generator and augmented training.

    Of two towers it has only the label tower: the other one would overfit the labelled rows (decision 0802).
    """
    every = max(1, settings.training.evaluate_every // EVALUATIONS)
    supervised = settings.pretrained().changed("training", objective=Objective.SUPERVISED, evaluate_every=every)
    return supervised.model_copy(update={"model": label_tower_only(settings.model)})


def oracle_settings(settings: Settings) -> Settings:
    """An independent classifier: the label tower's network, trained on all labels."""
    steps = min(ORACLE_STEPS, settings.training.steps)
    oracle = settings.pretrained().changed("training", objective=Objective.SUPERVISED, steps=steps)
    # `extra` holds out the same test rows whatever the number of labels.
    oracle = oracle.changed("data", labels=None, validation=Validation.EXTRA, fold=None)
    return oracle.model_copy(update={"model": label_tower_only(settings.model)})


def label_tower_only(model: ModelSettings) -> ModelSettings:
    """The label tower as the only tower; unchanged where there is only one."""
    if not model.label_latent_dim:
        return model
    encoder = model.encoder if model.label_encoder is NetworkKind.AUTO else model.label_encoder
    sizes = {"encoder_width": model.label_width, "latent_dim": model.label_latent_dim, "label_latent_dim": 0}
    return model.model_copy(update={"encoder": encoder, **sizes})


# The paper's own figures: Pooladzandi, Khosravi, Nijkamp, Mirzasoleiman, "Generating High Fidelity Synthetic Data via
# Coreset selection and Entropic Regularization", NeurIPS 2022 workshop, Table 1: SVHN, 1,000 labels, accuracy in %.
PAPER_BASELINE = 92.0
PAPER_SVHN: dict[Arm, dict[int, float]] = {
    Arm.REAL_ONLY: {0: 92.0},
    Arm.ALL: {10_000: 88.1},
    Arm.ENTROPY: {10_000: 93.5, 40_000: 93.8},
    Arm.CRAIG: {10_000: 93.0, 40_000: 93.5, 100_000: 93.9, 200_000: 93.9},
    Arm.CRAIG_PSEUDO: {40_000: 94.5},
}
