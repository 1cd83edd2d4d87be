"""Every arm of the proof against real data alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synthsieve.charts.chart import Axis, Chart, Dash, Intervals, Layer, Rule, Shape, Tone, numbers
from synthsieve.evaluation.proof import Verdict
from synthsieve.experiments.arms import Arm, Group

HEADINGS = {Group.BASELINE: "Other ways to learn", Group.REAL: "Real data alone", Group.SYNTHETIC: "With additions"}
# Shape and colour of each verdict; a triangle points to where the accuracy goes.
LOOKS = {
    Verdict.HELPS: ("helps (or is better)", Tone.GREEN, Shape.UP),
    Verdict.HURTS: ("hurts (or is worse)", Tone.ORANGE, Shape.DOWN),
    Verdict.CANNOT_TELL: ("cannot tell", Tone.QUIET, Shape.RING),
}


def arms(table: Mapping[str, Any]) -> Chart:
    """Differences from the baseline with their 95 % intervals, in points; the accuracy of each stands beside it.

    `table` is what table.json holds.
    """
    proof = table["proof"]
    names, headings = _rows(proof, _groups(table))
    row_of = {name: i for i, name in enumerate(names) if i not in headings}
    compared = proof["comparisons"]
    layers: list[Layer] = [
        Rule(0.0, f"{proof['baseline']}: {_percent(proof['mean'][proof['baseline']])}", dash=Dash.SOLID)
    ]
    for verdict, (called, tone, shape) in LOOKS.items():
        mine = [name for name in compared if compared[name]["verdict"] == verdict]
        if mine:
            low, high = ([100 * compared[name]["interval_95"][end] for name in mine] for end in (0, 1))
            layers.append(
                Intervals(
                    called,
                    numbers(low),
                    numbers(100 * compared[name]["difference"] for name in mine),
                    numbers(high),
                    numbers(row_of[name] for name in mine),
                    tone,
                    shape,
                    tuple(_note(name, compared[name]) for name in mine),
                )
            )
    beside = ["" if i in headings else _percent(proof["mean"][name]) for i, name in enumerate(names)]
    return Chart(
        title=f"Does it help? Every arm against {proof['baseline']}",
        description=_in_words(proof),
        x=Axis(f"points of test accuracy against {proof['baseline']}"),
        y=Axis(categories=tuple(names), headings=headings, beside=tuple(beside)),
        layers=tuple(layers),
        note="Lines are 95 % intervals of the difference; on the right, accuracy on the test set.",
    )


def _groups(table: Mapping[str, Any]) -> dict[str, Group]:
    """What kind of thing each row of the proof is; tables written before groups were stored have arms alone."""
    stored = table.get("groups") or {}
    found = {}
    for name in table["proof"]["mean"]:
        if name in stored:
            found[name] = Group(stored[name])
        else:
            arm = table["arms"].get(name)
            found[name] = Group.BASELINE if arm is None else Arm(arm["arm"]).group
    return found


def _rows(proof: Mapping[str, Any], groups: Mapping[str, Group]) -> tuple[list[str], frozenset[int]]:
    """Headings and arms below them, top down, and which rows are headings."""
    rows: list[str] = []
    headings = set()
    for group, heading in HEADINGS.items():
        mine = [name for name in proof["mean"] if groups[name] is group]
        if mine:
            headings.add(len(rows))
            rows += [heading, *mine]
    return rows, frozenset(headings)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _note(name: str, one: Mapping[str, Any]) -> str:
    low, high = (100 * end for end in one["interval_95"])
    return f"{name}: {100 * one['difference']:+.2f} points, {low:+.2f} to {high:+.2f}, {one['verdict']}"


def _in_words(proof: Mapping[str, Any]) -> str:
    verdicts = [one["verdict"] for one in proof["comparisons"].values()]
    counted = ", ".join(f"{verdicts.count(each)} {each}" for each in Verdict if each in verdicts)
    return f"Of {len(verdicts)} ways to learn, compared with {proof['baseline']} on held-out labels: {counted}."
