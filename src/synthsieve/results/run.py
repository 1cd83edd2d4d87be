"""A finished run, opened: `synthsieve.open_run("out")`."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from synthsieve.results.finished import FinishedRun

if TYPE_CHECKING:
    from synthsieve.results.report.figures import Figures


class Run(FinishedRun):
    """A finished run with its figures; a notebook shows the answer, the variants and the entropies of its pool."""

    @cached_property
    def figures(self) -> Figures:
        """`run.figures.names()`, `run.figures.entropy_histogram()`, ..."""
        from synthsieve.results.report.figures import Figures

        return Figures(self)

    def _repr_html_(self) -> str:
        from synthsieve.results.report.notebook import run_html

        return run_html(self)


def open_run(path: Path | str, *, seed: int | None = None) -> Run:
    """The run that `synthsieve run`, `reproduce` or `fit` wrote to a directory; see `Run`."""
    return Run.open(path, seed=seed)
