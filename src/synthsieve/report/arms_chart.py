"""Every variant against real data alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from synthsieve.charts.chart import Axis, Chart, Dash, Intervals, Layer, Rule, Shape, Tone, Words, numbers
from synthsieve.config import Metric
from synthsieve.evaluation.metrics import METRIC_NAMES
from synthsieve.evaluation.proof import Verdict
from synthsieve.experiments.arms import Group
from synthsieve.report.verdict import groups_of

HEADINGS = {Group.BASELINE: "Other ways to learn", Group.REAL: "Real data alone", Group.SYNTHETIC: "With additions"}
# Shape and colour of each verdict; a triangle points to where the accuracy goes.
LOOKS = {
    Verdict.HELPS: ("helps (or is better)", Tone.GREEN, Shape.UP),
    Verdict.HURTS: ("hurts (or is worse)", Tone.ORANGE, Shape.DOWN),
    Verdict.CANNOT_TELL: ("cannot tell", Tone.QUIET, Shape.RING),
}


def arms(table: dict[str, Any]) -> Chart:
    """Differences from the baseline with their 95 % intervals, in points; the accuracy of each stands beside it.

    `table` is what table.json holds. Other ways to learn that lie far off are written at the end of their row, so that
    the arms stay apart.
    """
    proof, groups = table["proof"], groups_of(table)
    names, headings = _rows(proof, groups)
    row_of = {name: i for i, name in enumerate(names) if i not in headings}
    compared = {name: _Interval.of(one) for name, one in proof["comparisons"].items()}
    low, high = _ends([compared[name] for name in compared if groups.get(name) is not Group.BASELINE])
    far = {name: one for name, one in compared.items() if not low <= one.middle <= high}
    near = [end for name, one in compared.items() if name not in far for end in (one.low, one.high)]
    low, high = min(low, *near), max(high, *near)
    baseline = f"{proof['baseline']}: {_percent(proof['mean'][proof['baseline']])}"
    layers: list[Layer] = [Rule(0.0, baseline, dash=Dash.SOLID)]
    for verdict, (called, tone, shape) in LOOKS.items():
        mine = {name: one for name, one in compared.items() if one.verdict is verdict and name not in far}
        if mine:
            layers.append(
                Intervals(
                    called,
                    low=numbers(one.low for one in mine.values()),
                    middle=numbers(one.middle for one in mine.values()),
                    high=numbers(one.high for one in mine.values()),
                    y=numbers(row_of[name] for name in mine),
                    tone=tone,
                    shape=shape,
                    notes=tuple(f"{name}: {one}" for name, one in mine.items()),
                )
            )
    if far:
        layers.append(_written_out(far, row_of, low, high))
    beside = ["" if i in headings else _percent(proof["mean"][name]) for i, name in enumerate(names)]
    return Chart(
        title=f"Does it help? Every variant against {proof['baseline']}",
        description=_in_words(proof),
        x=Axis(
            f"points of {METRIC_NAMES[Metric(proof['metric'])]} against {proof['baseline']}",
            low=low if far else None,
            high=high if far else None,
        ),
        y=Axis(categories=tuple(names), headings=headings, beside=tuple(beside)),
        layers=tuple(layers),
        note="Lines are 95 % intervals of the difference; on the right, the score on held-out labels.",
    )


@dataclass(frozen=True)
class _Interval:
    """A difference in points, its interval and its verdict."""

    low: float
    middle: float
    high: float
    verdict: Verdict

    @classmethod
    def of(cls, one: Mapping[str, Any]) -> _Interval:
        low, high = one["interval_95"]
        return cls(100 * low, 100 * one["difference"], 100 * high, Verdict(one["verdict"]))

    def __str__(self) -> str:
        return f"{self.middle:+.2f} points, {self.low:+.2f} to {self.high:+.2f}, {self.verdict}"


def _ends(ours: Sequence[_Interval]) -> tuple[float, float]:
    """How far from zero a row may lie and still be drawn: a quarter farther than ours reach."""
    low, high = min((0.0, *(one.low for one in ours))), max((0.0, *(one.high for one in ours)))
    room = 0.25 * max(high - low, 0.5)
    return low - room, high + room


def _written_out(far: Mapping[str, _Interval], row_of: Mapping[str, int], low: float, high: float) -> Words:
    """Differences beyond the ends of the axis, in words beside the end."""
    inside = 0.2 * (high - low)  # half of what the words take
    return Words(
        numbers(low + inside if one.middle < 0 else high - inside for one in far.values()),
        numbers(row_of[name] for name in far),
        tuple(f"◀ {one.middle:+.1f}" if one.middle < 0 else f"{one.middle:+.1f} ▶" for one in far.values()),
    )


def _rows(proof: Mapping[str, Any], groups: Mapping[str, Group]) -> tuple[list[str], frozenset[int]]:
    """Headings and arms below them, top down, and which rows are headings."""
    rows: list[str] = []
    headings = set()
    for group, heading in HEADINGS.items():
        mine = [name for name in proof["mean"] if groups.get(name, Group.BASELINE) is group]
        if mine:
            headings.add(len(rows))
            rows += [heading, *mine]
    return rows, frozenset(headings)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _in_words(proof: Mapping[str, Any]) -> str:
    verdicts = [one["verdict"] for one in proof["comparisons"].values()]
    counted = ", ".join(f"{verdicts.count(each)} {each}" for each in Verdict if each in verdicts)
    return f"Of {len(verdicts)} ways to learn, compared with {proof['baseline']} on held-out labels: {counted}."
