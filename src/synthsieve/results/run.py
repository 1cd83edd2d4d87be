"""A finished run, opened: `synthsieve.open_run("out")`."""

from __future__ import annotations

from functools import cached_property
from html import escape
from pathlib import Path

import torch

from synthsieve.errors import SynthsieveError
from synthsieve.io.devices import AUTO
from synthsieve.io.printable import html_table
from synthsieve.results.charts.style import inherited_style
from synthsieve.results.charts.svg import render
from synthsieve.results.finished import FinishedRun
from synthsieve.results.report.charts.pool import entropy_histogram
from synthsieve.results.report.figures import Figures
from synthsieve.results.report.verdict import answer_of
from synthsieve.training import extra_data
from synthsieve.training.run_dir import RunDirectory


class Run(FinishedRun):
    """A finished run with its figures; a notebook shows the answer, the variants and the entropies of its pool."""

    @cached_property
    def figures(self) -> Figures:
        """`run.figures.names()`, `run.figures.entropy_histogram()`, ..."""
        return Figures(self)

    def _repr_html_(self) -> str:
        """Colours are inherited, for light and dark pages. A pool that cannot be read is replaced by the reason."""
        name = "a single fit" if self.table is None else self.table.source_name
        parts = [f"<p><b>{escape(name)}</b>, {escape(str(self.path))}</p>"]
        if self.table is not None:
            compared = self.table.paired_comparison
            rows = html_table(compared.columns, compared.rows(self.table.other_methods), note=compared.note)
            parts += [f"<p>{escape(str(answer_of(self.table)))}</p>", rows]
        try:
            parts.append(self._entropies())
        except SynthsieveError as error:
            parts.append(f"<p>{escape(str(error))}</p>")
        return f"<div>{''.join(parts)}</div>"

    def _entropies(self) -> str:
        """The histogram of the default pool; empty where there is none."""
        if not self.pooled:
            return ""
        folder = RunDirectory.open(self.arm_folder(self.default_arm))
        latest = extra_data.latest(folder.path)
        if latest.pool is None:
            return ""
        outcome = latest.pool.as_trained(folder.settings.augmentation, latest.figures)
        return f"<style>{inherited_style()}</style>{render(entropy_histogram(latest.pool, outcome))}"


def open_run(path: Path | str, *, seed: int | None = None, device: str | torch.device = AUTO) -> Run:
    """The run that `synthsieve run`, `reproduce` or `fit` wrote to a directory; see `Run`. `device`: as for `fit`."""
    return Run.open(path, seed=seed, device=device)
