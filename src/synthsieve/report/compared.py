"""The rows of the table of arms: other ways to learn, real data alone, and every way to add to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.evaluation.proof import Verdict
from synthsieve.experiments.arms import Group
from synthsieve.experiments.classical_methods import MAJORITY
from synthsieve.report.verdict import groups_of, simpler
from synthsieve.report.wording import percent

GROUP_WORDS = {
    Group.BASELINE: "Other ways to learn",
    Group.REAL: "Real data alone",
    Group.SYNTHETIC: "Real data with additions",
}


@dataclass(frozen=True)
class ArmRow:
    """One line.

    Attributes:
        name, group: what it is.
        accuracy: on test, mean over seeds; validation: on validation, None where it was not measured.
        difference, low, high: from real data alone on test, with its 95 % interval; None for those themselves.
        verdict: in words.
        kept: whether its model was kept.
    """

    name: str
    group: Group
    accuracy: float
    validation: float | None
    difference: float | None
    low: float | None
    high: float | None
    verdict: str
    kept: bool


def arm_rows(table: dict[str, Any], kept: str | None) -> dict[str, list[ArmRow]]:
    """The rows in the table's order, under the words of their group; empty groups are left out."""
    rows = [
        _row(table, name, group, kept) for name, group in groups_of(table).items() if name in table["proof"]["mean"]
    ]
    grouped = {words: [row for row in rows if row.group is group] for group, words in GROUP_WORDS.items()}
    return {words: members for words, members in grouped.items() if members}


@dataclass(frozen=True)
class Measured:
    """Every metric of the model kept and of others beside it, and where the model kept errs.

    Attributes:
        names: whose metrics: the model kept, the best simple method, the majority class.
        rows: (metric, what it means, a value for each of `names`).
        classes, confusion: the table of true (rows) and predicted (columns) classes; empty above 20 classes.
    """

    names: list[str]
    rows: list[tuple[str, str, list[str]]]
    classes: list[str]
    confusion: list[list[int]]


MEANINGS = {
    "accuracy": "share of examples that get the right class",
    "balanced_accuracy": "the same within each class, averaged over classes",
    "f1": "harmonic mean of precision and recall, averaged over classes",
    "auroc": "chance that an example of a class scores above one of another; 50 % is a guess",
    "average_precision": "area under the precision-recall curve, averaged over classes",
    "log_loss": "mean -log p(right class) in nats; lower is better",
    "calibration_error": "how far stated confidence is from the share that is right; lower is better",
}
MOST_CLASSES = 20


def measured(table: dict[str, Any], kept: str) -> Measured:
    """All metrics on the held-out labels."""
    simple = simpler(table)
    names = [name for name in (kept, simple, MAJORITY) if name is not None and name in table["metrics"]]
    rows = []
    for metric, meaning in MEANINGS.items():
        values = [table["metrics"][name][metric] for name in names]
        plain = metric == "log_loss"
        told = ["" if v is None else f"{v:.3f}" if plain else percent(v) for v in values]
        rows.append((metric.replace("_", " ").replace("auroc", "AUROC").replace("f1", "F1"), meaning, told))
    few = len(table["classes"]) <= MOST_CLASSES
    confusion = table["metrics"][kept]["confusion"] if few else []
    return Measured(names, rows, table["classes"] if few else [], confusion)


def _row(table: dict[str, Any], name: str, group: Group, kept: str | None) -> ArmRow:
    proof, validation = table["proof"], table.get("validation", {}).get(name)
    mean = None if not validation else float(np.mean(validation))
    if name == proof["baseline"]:
        return ArmRow(name, group, proof["mean"][name], mean, None, None, None, "baseline", name == kept)
    shown = proof["comparisons"][name]
    verdict = Verdict(shown["verdict"])
    words = verdict.of_another() if group is Group.BASELINE else verdict.value
    low, high = shown["interval_95"]
    return ArmRow(name, group, proof["mean"][name], mean, shown["difference"], low, high, words, name == kept)
