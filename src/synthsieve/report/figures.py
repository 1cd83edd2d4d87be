"""The figures of a finished run, by name: as charts for a page, or drawn by matplotlib or plotly for people in Python.

A figure that a run or an arm has nothing to show in raises `NothingToDraw`, whose message says why; `charts_of` and
`Figures.names` leave such figures out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from synthsieve.charts.chart import Chart
from synthsieve.errors import NothingToDraw
from synthsieve.evaluation.temperature import TemperatureRow, temperature_chart
from synthsieve.progress import Progress, Silent
from synthsieve.report.arms_chart import arms
from synthsieve.report.bound_chart import bound_against_budget
from synthsieve.report.chain_chart import chain_log_density
from synthsieve.report.latent_map import latent_map
from synthsieve.report.learning_charts import accuracy, elbo, losses
from synthsieve.report.pool_charts import class_yield, entropy_histogram, weights
from synthsieve.review.fate import Fate
from synthsieve.review.pool_view import PoolView
from synthsieve.review.run import Run

OfPool = Callable[[PoolView, Fate], Chart]
OfRun = Callable[[Run], Chart]


def _arms(run: Run) -> Chart:
    if run.table is None:
        raise NothingToDraw("a single fit compares no arms: make them with `synthsieve run`")
    return arms(run.table)


def _temperature(run: Run) -> Chart:
    rows = [] if run.table is None else run.table.get("temperature") or []
    if not rows:
        raise NothingToDraw("a single fit draws at no other temperatures: `synthsieve run` does")
    return temperature_chart([TemperatureRow(**row) for row in rows])


# In the order of a report.
OF_RUN: dict[str, OfRun] = {
    "arms": _arms,
    "accuracy": accuracy,
    "losses": losses,
    "elbo": elbo,
    "temperature": _temperature,
}
OF_POOL: dict[str, OfPool] = {
    "entropy_histogram": entropy_histogram,
    "class_yield": class_yield,
    "latent_map": latent_map,
    "bound_against_budget": bound_against_budget,
    "weights": weights,
    "chain_log_density": chain_log_density,
}


def charts_of(
    run: Run, view: PoolView | None = None, fate: Fate | None = None, *, progress: Progress | None = None
) -> dict[str, Chart]:
    """Every figure that the run has something to show in, by name; without a pool those of the run alone.

    `fate` is that of training if not given. A map of the latents takes some seconds: `progress` is told.
    """
    progress = progress or Silent()
    charts = {}
    names = [*OF_RUN, *OF_POOL]
    with closing(progress):
        for done, name in enumerate(names):
            progress.update(done, len(names), "drawing the figures")
            try:
                charts[name] = chart_of(name, run, view, fate)
            except NothingToDraw:
                continue
        progress.update(len(names), len(names))
    return charts


def chart_of(name: str, run: Run, view: PoolView | None = None, fate: Fate | None = None) -> Chart:
    """One figure; `NothingToDraw` says why there is none."""
    if name in OF_RUN:
        return OF_RUN[name](run)
    if view is None:
        raise NothingToDraw("there is no synthetic pool to look at: make one with `synthsieve run`, or `fit --augment`")
    return OF_POOL[name](view, view.as_trained() if fate is None else fate)
