"""The figures of a finished run by name: as charts for a page, or drawn by matplotlib.

A figure without anything to show raises `NothingToDraw`, which says why; `charts_of` and `Figures.names` skip it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from functools import cached_property, partial
from typing import Any

from synthsieve.errors import ConfigError, NothingToDraw
from synthsieve.io.progress import NullProgress, Progress
from synthsieve.results.charts import svg
from synthsieve.results.charts.chart import Chart
from synthsieve.results.finished import FinishedRun
from synthsieve.results.pool_view import PoolView
from synthsieve.results.report.charts import comparison, pool, training
from synthsieve.results.table import ResultsTable
from synthsieve.training.pool import Outcomes


def _table(run: FinishedRun) -> ResultsTable:
    if run.table is None:
        raise NothingToDraw("a single fit compares nothing: use `synthsieve run`", code="no-comparison")
    return run.table


# In the order of a report: of the run, with the variant that is shown, and of a pool.
OF_RUN: dict[str, Callable[[FinishedRun, str | None], Chart]] = {
    "gain": lambda run, _: comparison.gain(_table(run)),
    "variants": lambda run, _: comparison.variants(_table(run)),
    "accuracy": training.accuracy,
    "losses": training.losses,
    "elbo": training.elbo,
    "temperature": lambda run, _: training.temperature_chart(_table(run).temperature),
}
OF_POOL: dict[str, Callable[[PoolView, Outcomes], Chart]] = {
    "entropy_histogram": lambda view, outcome: pool.entropy_histogram(view.pool, outcome),
    "class_yield": pool.class_yield,
    "latent_map": pool.latent_map,
    "bound_against_budget": pool.bound_against_budget,
    "weights": lambda _, outcome: pool.weights(outcome),
    "chain_log_density": lambda view, _: training.chain_log_density(view),
}
# Slow figures: whether a pool has something to show in them, else NothingToDraw.
CHECKS: dict[str, Callable[[PoolView, Outcomes], None]] = {
    "bound_against_budget": lambda _, outcome: pool.check_coreset(outcome),
    "chain_log_density": lambda view, _: training.check_chains(view),
    "latent_map": lambda *_: None,
}
NAMES = (*OF_RUN, *OF_POOL)


def charts_of(
    run: FinishedRun, view: PoolView | None = None, outcome: Outcomes | None = None, *, progress: Progress | None = None
) -> dict[str, Chart]:
    """Every figure with something to show, by name; without a pool only those of the run.

    `outcome` is that of training by default. The map of the latents takes some seconds.
    """
    progress = progress or NullProgress()
    charts = {}
    with closing(progress):
        for done, name in enumerate(NAMES):
            progress.update(done, len(NAMES), "drawing the figures")
            with suppress(NothingToDraw):
                charts[name] = chart_of(name, run, view, outcome)
        progress.update(len(NAMES), len(NAMES))
    return charts


def chart_of(name: str, run: FinishedRun, view: PoolView | None = None, outcome: Outcomes | None = None) -> Chart:
    """One figure."""
    if name in OF_RUN:
        return OF_RUN[name](run, None if view is None else view.name)
    if name not in OF_POOL:
        raise ConfigError(f"expected a figure ({', '.join(NAMES)}), got {name!r}: give one", code="unknown-figure")
    if view is None:
        message = "this run has no synthetic pool: make one with `synthsieve run` or `fit --augment`"
        raise NothingToDraw(message, code="no-pool")
    return OF_POOL[name](view, view.as_trained() if outcome is None else outcome)


class Figures:
    """`run.figures`: a method for each of `NAMES` draws it by matplotlib, such as `run.figures.class_yield()`.

    They show the default pool of the run; `run.figures.of(variant)` those of another variant.
    """

    def __init__(self, run: FinishedRun, variant: str | None = None) -> None:
        self._run, self._variant = run, variant
        self._charts: dict[str, Chart] = {}

    def of(self, variant: str) -> Figures:
        """The figures of another variant's pool."""
        self._run.arm_folder(variant)
        return Figures(self._run, variant)

    def names(self) -> list[str]:
        """The figures with something to show for this run."""
        return [name for name in NAMES if self._can_be_drawn(name)]

    def chart(self, name: str) -> Chart:
        """One figure as data; see `synthsieve.results.charts.chart`."""
        if name not in self._charts:
            of_run = OF_RUN.get(name)  # without opening a pool
            chart = chart_of(name, self._run, self._view) if of_run is None else of_run(self._run, self._variant)
            self._charts[name] = chart
        return self._charts[name]

    def svg(self, name: str) -> str:
        """One figure as the text of an SVG file."""
        return svg.render(self.chart(name), standalone=True)

    def draw(self, name: str) -> Any:
        """One figure as a matplotlib Figure."""
        from synthsieve.results.charts.matplotlib_backend import draw

        return draw(self.chart(name))

    def __getattr__(self, name: str) -> Callable[[], Any]:
        if name not in NAMES:
            raise AttributeError(f"there is no figure {name!r}: choose from {', '.join(NAMES)}")
        return partial(self.draw, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *NAMES]

    def _can_be_drawn(self, name: str) -> bool:
        with suppress(NothingToDraw):
            if name not in CHECKS:
                self.chart(name)
            elif self._view is None:
                return False
            else:
                CHECKS[name](self._view, self._view.as_trained())
            return True
        return False

    @cached_property
    def _view(self) -> PoolView | None:
        return self._run.pool(self._variant) if self._run.pooled else None
