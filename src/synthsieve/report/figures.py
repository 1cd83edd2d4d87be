"""The figures of a finished run, by name: as charts for a page, or drawn by matplotlib or plotly for people in Python.

A figure that a run or an arm has nothing to show in raises `NothingToDraw`, whose message says why; `charts_of` and
`Figures.names` leave such figures out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import cached_property
from typing import Any

from synthsieve.charts.backends import Backend, draw
from synthsieve.charts.chart import Chart
from synthsieve.config import Metric
from synthsieve.errors import ConfigError, NothingToDraw
from synthsieve.evaluation.temperature import TemperatureRow, temperature_chart
from synthsieve.progress import Progress, Silent
from synthsieve.report.arms_chart import arms
from synthsieve.report.bound_chart import bound_against_budget
from synthsieve.report.chain_chart import chain_log_density, why_no_chains
from synthsieve.report.gain_chart import gain
from synthsieve.report.latent_map import latent_map
from synthsieve.report.learning_charts import accuracy, elbo, losses
from synthsieve.report.pool_charts import class_yield, entropy_histogram, weights, why_no_coreset
from synthsieve.review.fate import Fate
from synthsieve.review.pool_view import PoolView
from synthsieve.review.run import Run


def _arms(run: Run, arm: str | None) -> Chart:
    if run.table is None:
        raise NothingToDraw("a single fit compares no arms: make them with `synthsieve run`")
    return arms(run.table)


def _gain(run: Run, arm: str | None) -> Chart:
    if run.table is None or run.table["proof"]["metric"] == Metric.LOG_LOSS:
        raise NothingToDraw("scores are drawn of a comparison in per cent: make one with `synthsieve run`")
    return gain(run.table)


def _temperature(run: Run, arm: str | None) -> Chart:
    rows = [] if run.table is None else run.table.get("temperature") or []
    if not rows:
        raise NothingToDraw("a single fit draws at no other temperatures: `synthsieve run` does")
    return temperature_chart([TemperatureRow(**row) for row in rows])


# In the order of a report; of the run, with the arm that is looked at, and of its pool.
OF_RUN: dict[str, Callable[[Run, str | None], Chart]] = {
    "gain": _gain,
    "arms": _arms,
    "accuracy": accuracy,
    "losses": losses,
    "elbo": elbo,
    "temperature": _temperature,
}
OF_POOL: dict[str, Callable[[PoolView, Fate], Chart]] = {
    "entropy_histogram": lambda view, fate: entropy_histogram(view.pool, fate),
    "class_yield": class_yield,
    "latent_map": latent_map,
    "bound_against_budget": bound_against_budget,
    "weights": lambda _, fate: weights(fate),
    "chain_log_density": lambda view, _: chain_log_density(view),
}
# Of those that take a while, why a pool has nothing to show in them; None where it has.
WHY_NOT: dict[str, Callable[[PoolView, Fate], str | None]] = {
    "bound_against_budget": lambda _, fate: why_no_coreset(fate),
    "chain_log_density": lambda view, _: why_no_chains(view),
    "latent_map": lambda *_: None,
}
NAMES = (*OF_RUN, *OF_POOL)


def charts_of(
    run: Run, view: PoolView | None = None, fate: Fate | None = None, *, progress: Progress | None = None
) -> dict[str, Chart]:
    """Every figure that the run has something to show in, by name; without a pool those of the run alone.

    `fate` is that of training if not given. A map of the latents takes some seconds: `progress` is told.
    """
    progress = progress or Silent()
    charts = {}
    with closing(progress):
        for done, name in enumerate(NAMES):
            progress.update(done, len(NAMES), "drawing the figures")
            try:
                charts[name] = chart_of(name, run, view, fate)
            except NothingToDraw:
                continue
        progress.update(len(NAMES), len(NAMES))
    return charts


def chart_of(name: str, run: Run, view: PoolView | None = None, fate: Fate | None = None) -> Chart:
    """One figure; `NothingToDraw` says why there is none."""
    if name in OF_RUN:
        return OF_RUN[name](run, None if view is None else view.name)
    if name not in OF_POOL:
        raise ConfigError(f"expected the name of a figure ({', '.join(NAMES)}), got {name!r}: give one of those")
    if view is None:
        raise NothingToDraw("there is no synthetic pool to look at: make one with `synthsieve run`, or `fit --augment`")
    return OF_POOL[name](view, view.as_trained() if fate is None else fate)


class Figures:
    """`run.figures`: each method draws one figure, by matplotlib or, with `backend="plotly"`, by plotly.

    They are of the pool that the run looks at; `run.figures.of(arm)` are those of another arm's. The first time a pool
    is looked at, every sample of it is judged again, which takes about as long as drawing did.
    """

    def __init__(self, run: Run, arm: str | None = None) -> None:
        self._run, self._arm = run, arm
        self._charts: dict[str, Chart] = {}

    def of(self, arm: str) -> Figures:
        """The figures of another arm's pool."""
        self._run.arm_folder(arm)
        return Figures(self._run, arm)

    def names(self) -> list[str]:
        """The figures that this run has something to show in."""
        return [name for name in NAMES if self._can_be_drawn(name)]

    def chart(self, name: str) -> Chart:
        """One figure as data; see `synthsieve.charts.chart`. `NothingToDraw` says why there is none."""
        if name not in self._charts:
            if name in OF_RUN:
                self._charts[name] = OF_RUN[name](self._run, self._arm)
            else:
                self._charts[name] = chart_of(name, self._run, self._looked_at)
        return self._charts[name]

    def svg(self, name: str) -> str:
        """One figure as the text of an SVG file."""
        from synthsieve.charts.svg import render

        return render(self.chart(name), standalone=True)

    def draw(self, name: str, backend: str = Backend.MATPLOTLIB) -> Any:
        """One figure by its name: a matplotlib or plotly Figure."""
        return draw(self.chart(name), backend)

    def gain(self, backend: str = Backend.MATPLOTLIB) -> Any:
        """What was gained over the labels alone."""
        return self.draw("gain", backend)

    def arms(self, backend: str = Backend.MATPLOTLIB) -> Any:
        """Every arm's difference from real data alone, with its 95 % interval."""
        return self.draw("arms", backend)

    def accuracy(self, backend: str = Backend.MATPLOTLIB) -> Any:
        """Validation accuracy over the steps."""
        return self.draw("accuracy", backend)

    def losses(self, backend: str = Backend.MATPLOTLIB) -> Any:
        """Cross-entropies over the steps."""
        return self.draw("losses", backend)

    def elbo(self, backend: str = Backend.MATPLOTLIB) -> Any:
        """The negative ELBO over the steps."""
        return self.draw("elbo", backend)

    def temperature(self, backend: str = Backend.MATPLOTLIB) -> Any:
        """Entropy and purity against the temperature of the chains."""
        return self.draw("temperature", backend)

    def entropy_histogram(self, backend: str = Backend.MATPLOTLIB) -> Any:
        """How many samples of each entropy there are, and what became of them."""
        return self.draw("entropy_histogram", backend)

    def class_yield(self, backend: str = Backend.MATPLOTLIB) -> Any:
        """Of each class, how many samples were drawn, kept and selected."""
        return self.draw("class_yield", backend)

    def latent_map(self, backend: str = Backend.MATPLOTLIB) -> Any:
        """Real examples, the pool and the picks in two dimensions."""
        return self.draw("latent_map", backend)

    def bound_against_budget(self, backend: str = Backend.MATPLOTLIB) -> Any:
        """The bound on the gradient error against the size of the coreset."""
        return self.draw("bound_against_budget", backend)

    def weights(self, backend: str = Backend.MATPLOTLIB) -> Any:
        """How many samples each selected one stands for."""
        return self.draw("weights", backend)

    def chain_log_density(self, backend: str = Backend.MATPLOTLIB) -> Any:
        """The log-density of the chains along their steps."""
        return self.draw("chain_log_density", backend)

    def _can_be_drawn(self, name: str) -> bool:
        try:
            if name in WHY_NOT:
                view = self._looked_at
                return view is not None and WHY_NOT[name](view, view.as_trained()) is None
            self.chart(name)
        except NothingToDraw:
            return False
        return True

    @cached_property
    def _looked_at(self) -> PoolView | None:
        return self._run.pool(self._arm) if self._run.pooled else None
