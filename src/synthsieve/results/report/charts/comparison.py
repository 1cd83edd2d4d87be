"""Scores of the kept model and simpler ones, and every variant against real data alone."""

from __future__ import annotations

from synthsieve.errors import NothingToDraw
from synthsieve.evaluation.comparison import Comparison, Verdict
from synthsieve.experiments.arms import Arm, Group
from synthsieve.experiments.baselines.sklearn_models import MAJORITY
from synthsieve.results.charts.chart import (
    Axis,
    Bars,
    Chart,
    Dash,
    Fill,
    Intervals,
    Layer,
    Rule,
    Scale,
    Shape,
    TextLabels,
    Tone,
    numbers,
)
from synthsieve.results.report.wording import percent, points, span
from synthsieve.results.table import ResultsTable
from synthsieve.settings import Metric

HALF = 0.32  # of a bar's thickness, in rows
HEADINGS = {Group.BASELINE: "Other methods", Group.REAL: "Real data alone", Group.SYNTHETIC: "With additions"}
# Triangles point to where the score goes.
LOOKS = {
    Verdict.HELPS: ("helps (or is better)", Tone.GREEN, Shape.UP),
    Verdict.HURTS: ("hurts (or is worse)", Tone.ORANGE, Shape.DOWN),
    Verdict.CANNOT_TELL: ("cannot tell", Tone.QUIET, Shape.RING),
}


def gain(table: ResultsTable) -> Chart:
    """Scores of the majority class, of the labels alone, of the best classical method and of the kept model."""
    if table.paired_comparison.metric is Metric.LOG_LOSS:
        raise NothingToDraw("log-loss is not a percentage: see `variants`", code="not-a-percentage")
    rows = {"Most frequent class": MAJORITY, "Labels alone, same network": str(Arm.SUPERVISED)}
    alone, classical = table.best_supervised, table.best_classical
    if alone is not None and alone != Arm.SUPERVISED:
        rows[f"Labels alone, {alone}"] = alone
    if classical is not None and classical not in rows.values():
        rows[f"Unlabelled data, {classical}"] = classical
    ours = "Unlabelled data, ours" if table.unlabeled else "Our model"
    rows[ours] = table.kept
    shown = {words: table.means[name] for words, name in rows.items() if name in table.means}
    layers = []
    for i, (words, score) in enumerate(shown.items()):
        tone, fill = (Tone.BLUE, Fill.FULL) if words == ours else (Tone.QUIET, Fill.LIGHT)
        place, note = ((i - HALF,), (i + HALF,), (100 * score,), (0.0,)), f"{words}: {percent(score)}"
        layers.append(Bars("", *place, tone, fill, across=True, notes=(note,)))
    return Chart(
        title=f"Overall gain: {table.score_name} on held-out labels",
        description=", ".join(f"{words} {percent(score)}" for words, score in shown.items()) + ".",
        x=Axis(f"{table.score_name}, %", low=0.0, high=100.0),
        y=Axis(categories=tuple(shown), beside=tuple(percent(score) for score in shown.values())),
        layers=tuple(layers),
    )


def variants(table: ResultsTable) -> Chart:
    """Differences from the baseline with 95 % intervals, in points, and the score of each.

    Other methods that are far off are written at the end of their row, so that the variants stay readable.
    """
    compared, baseline = table.comparisons, table.paired_comparison.baseline
    names, headings = _rows(table)
    row_of = {name: i for i, name in enumerate(names) if i not in headings}
    low, high = _limits([one for name, one in compared.items() if table.groups.get(name) is not Group.BASELINE])
    far = {name: one for name, one in compared.items() if not low <= 100 * one.difference <= high}
    near = {name: one for name, one in compared.items() if name not in far}
    ends = [100 * end for one in near.values() for end in one.interval]
    low, high = min(low, *ends), max(high, *ends)
    layers: list[Layer] = [Rule(0.0, f"{baseline}: {percent(table.means[baseline])}", dash=Dash.SOLID)]
    for verdict, (words, tone, shape) in LOOKS.items():
        found = {name: one for name, one in near.items() if one.verdict is verdict}
        if found:
            low_ends, high_ends = (numbers(100 * one.interval[i] for one in found.values()) for i in (0, 1))
            middle = numbers(100 * one.difference for one in found.values())
            rows = numbers(row_of[name] for name in found)
            notes = [
                f"{name}: {points(one.difference)} points, {span(*one.interval)}, {one.verdict}"
                for name, one in found.items()
            ]
            layers.append(Intervals(words, low_ends, middle, high_ends, rows, tone, shape, tuple(notes)))
    if far:
        layers.append(_far_labels(far, row_of, low, high))
    beside = tuple("" if i in headings else percent(table.means[name]) for i, name in enumerate(names))
    verdicts = [one.verdict for one in compared.values()]
    counts = ", ".join(f"{verdicts.count(each)} {each}" for each in Verdict if each in verdicts)
    return Chart(
        title=f"Does it help? Every variant against {baseline}",
        description=f"Of {len(verdicts)} methods, compared with {baseline} on held-out labels: {counts}.",
        x=Axis(f"points of {table.score_name} against {baseline}", Scale.LINEAR, *((low, high) if far else ())),
        y=Axis(categories=tuple(names), headings=headings, beside=beside),
        layers=tuple(layers),
        note="Lines are 95 % intervals of the difference; on the right, the score on held-out labels.",
    )


def _limits(variants: list[Comparison]) -> tuple[float, float]:
    """The differences that are drawn, in points: a quarter more than the intervals of the variants."""
    low, high = min((0.0, *(one.interval[0] for one in variants))), max((0.0, *(one.interval[1] for one in variants)))
    margin = 0.25 * max(100 * (high - low), 0.5)
    return 100 * low - margin, 100 * high + margin


def _far_labels(far: dict[str, Comparison], row_of: dict[str, int], low: float, high: float) -> TextLabels:
    """Differences outside the axis, as text at its end."""
    inset = 0.2 * (high - low)  # half of the width of the text
    middles = {name: 100 * one.difference for name, one in far.items()}
    return TextLabels(
        numbers(low + inset if middle < 0 else high - inset for middle in middles.values()),
        numbers(row_of[name] for name in far),
        tuple(f"◀ {middle:+.1f}" if middle < 0 else f"{middle:+.1f} ▶" for middle in middles.values()),
    )


def _rows(table: ResultsTable) -> tuple[list[str], frozenset[int]]:
    """Headings with the methods below them, and which rows are headings."""
    rows: list[str] = []
    headings = set()
    for group, heading in HEADINGS.items():
        members = [name for name in table.means if table.groups.get(name, Group.BASELINE) is group]
        if members:
            headings.add(len(rows))
            rows += [heading, *members]
    return rows, frozenset(headings)
