"""What was gained overall: labels alone, other methods, and the model kept, side by side."""

from __future__ import annotations

from typing import Any

from synthsieve.charts.chart import Axis, Bars, Chart, Fill, Layer, Tone
from synthsieve.experiments.arms import Arm
from synthsieve.experiments.classical_methods import MAJORITY
from synthsieve.report.verdict import answer_of, labels_alone, score_name, simpler
from synthsieve.report.wording import percent

HALF = 0.32  # of a bar's thickness, in rows


def gain(table: dict[str, Any]) -> Chart:
    """Scores of the majority class, of the labels alone, of the best simple method and of the model kept."""
    mean, kept = table["proof"]["mean"], answer_of(table).kept
    assert kept is not None
    rows = {"Most frequent class": MAJORITY, "Labels alone, same network": str(Arm.SUPERVISED)}
    alone, simple = labels_alone(table), simpler(table)
    if alone is not None and alone != Arm.SUPERVISED:
        rows[f"Labels alone, {alone}"] = alone
    if simple is not None and simple not in rows.values():
        rows[f"Unlabelled data, {simple}"] = simple
    ours_words = "Unlabelled data, ours" if table["unlabeled"] else "Our model"
    rows[ours_words] = kept
    shown = {words: mean[name] for words, name in rows.items() if name in mean}
    layers: list[Layer] = []
    for ours in (False, True):
        places = [i for i, words in enumerate(shown) if (words == ours_words) is ours]
        layers.append(
            Bars(
                "",
                tuple(i - HALF for i in places),
                tuple(i + HALF for i in places),
                tuple(100 * list(shown.values())[i] for i in places),
                tuple(0.0 for _ in places),
                tone=Tone.BLUE if ours else Tone.QUIET,
                fill=Fill.FULL if ours else Fill.LIGHT,
                across=True,
                notes=tuple(f"{list(shown)[i]}: {percent(list(shown.values())[i])}" for i in places),
            )
        )
    return Chart(
        title=f"What was gained: {score_name(table)} on held-out labels",
        description=", ".join(f"{words} {percent(value)}" for words, value in shown.items()) + ".",
        x=Axis(f"{score_name(table)}, %", low=0.0, high=100.0),
        y=Axis(categories=tuple(shown), beside=tuple(percent(value) for value in shown.values())),
        layers=tuple(layers),
    )
