"""The rows of the table of arms: other ways to learn, real data alone, and every way to add to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.evaluation.proof import Verdict
from synthsieve.experiments.arms import Group
from synthsieve.report.verdict import groups_of

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
