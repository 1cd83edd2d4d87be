"""A run in a notebook: the answer, the variants with their intervals, and the entropies of its pool.

Colours are inherited, so that it is readable on light and dark backgrounds.
"""

from __future__ import annotations

from html import escape

from synthsieve.errors import SynthsieveError
from synthsieve.io.printable import html_table
from synthsieve.results.charts.style import inherited_style
from synthsieve.results.charts.svg import render
from synthsieve.results.finished import FinishedRun
from synthsieve.results.report.charts.pool import entropy_histogram
from synthsieve.results.report.verdict import answer_of
from synthsieve.training import extra_data
from synthsieve.training.run_dir import RunDirectory


def run_html(run: FinishedRun) -> str:
    """A run in a few lines of HTML; a pool that cannot be read is replaced by the reason."""
    name = "a single fit" if run.table is None else run.table.source_name
    parts = [f"<p><b>{escape(name)}</b>, {escape(str(run.path))}</p>"]
    if run.table is not None:
        compared = run.table.paired_comparison
        rows = compared.rows(run.table.other_methods)
        parts += [
            f"<p>{escape(str(answer_of(run.table)))}</p>",
            html_table(compared.columns, rows, note=compared.note),
        ]
    try:
        parts.append(_entropies(run))
    except SynthsieveError as error:
        parts.append(f"<p>{escape(str(error))}</p>")
    return f"<div>{''.join(parts)}</div>"


def _entropies(run: FinishedRun) -> str:
    """The histogram of the default pool, without scoring it again; empty where there is none."""
    if not run.pooled:
        return ""
    folder = RunDirectory.open(run.arm_folder(run.default_arm))
    latest = extra_data.latest(folder.path)
    if latest.pool is None:
        return ""
    outcome = latest.pool.as_trained(folder.settings.augmentation, latest.figures)
    return f"<style>{inherited_style()}</style>{render(entropy_histogram(latest.pool, outcome))}"
