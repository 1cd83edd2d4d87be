"""The result of `utility` with a chart and a notebook display."""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from pathlib import Path
from typing import Self

from synthsieve.evaluation.comparison import Verdict
from synthsieve.evaluation.metrics import METRIC_NAMES
from synthsieve.evaluation.utility_result import Difference, Utility
from synthsieve.results.charts import svg
from synthsieve.results.charts.chart import Axis, Chart, Dash, Intervals, Layer, Rule, numbers
from synthsieve.results.charts.style import inherited_style
from synthsieve.results.report.charts.comparison import LOOKS
from synthsieve.settings import Metric


@dataclass(frozen=True)
class UtilityView(Utility):
    """A `Utility` that can be drawn."""

    @classmethod
    def of(cls, found: Utility) -> Self:
        return cls(**{one.name: getattr(found, one.name) for one in fields(Utility)})

    def chart(self) -> Chart:
        """Every comparison by the primary metric, with 95 % intervals."""
        return utility_chart(self)

    def save_chart(self, path: Path | str) -> Path:
        """Write the chart as an SVG file."""
        path = Path(path)
        svg.write(path, self.chart())
        return path

    def _repr_html_(self) -> str:
        style = f"<style>{inherited_style()}</style>"
        return f"<div><p>{escape(self.answer)}</p>{style}{svg.render(self.chart())}{super()._repr_html_()}</div>"


def utility_chart(found: Utility) -> Chart:
    """Differences by the primary metric, the primary comparison first."""
    shown = [one for one in (found.primary, *found.others) if one.metric is found.metric]
    scale = 1.0 if found.metric is Metric.LOG_LOSS else 100.0
    layers: list[Layer] = [Rule(0.0, "no difference", dash=Dash.SOLID)]
    for verdict in Verdict:
        rows = [i for i, one in enumerate(shown) if one.verdict is verdict]
        if rows:
            words, tone, shape = LOOKS[verdict]
            layers.append(
                Intervals(
                    words,
                    low=numbers(scale * shown[i].interval[0] for i in rows),
                    middle=numbers(scale * shown[i].value for i in rows),
                    high=numbers(scale * shown[i].interval[1] for i in rows),
                    y=numbers(rows),
                    tone=tone,
                    shape=shape,
                    notes=tuple(f"{_name(shown[i])}: {shown[i].describe()}, {verdict}" for i in rows),
                )
            )
    unit = "nats of log-loss" if found.metric is Metric.LOG_LOSS else f"points of {METRIC_NAMES[found.metric]}"
    return Chart(
        title=f"Do these rows help {found.estimator}?",
        description=found.answer,
        x=Axis(unit),
        y=Axis(categories=tuple(_name(one) for one in shown)),
        layers=tuple(layers),
        note="Lines are 95 % intervals. The first comparison was fixed before test rows were read; the verdicts of the "
        "others are corrected for their number.",
    )


def _name(one: Difference) -> str:
    return f"{one.arm} - {one.against}"
