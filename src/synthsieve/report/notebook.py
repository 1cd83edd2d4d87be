"""What a notebook shows of a run: the answer in words, the arms with their intervals, the entropies of its pool.

Colours come from what surrounds it, so that it reads on a light and on a dark page.
"""

from __future__ import annotations

from html import escape
from typing import Any

from synthsieve.charts.html_table import html_table
from synthsieve.charts.svg import render
from synthsieve.charts.svg_style import inherited_style
from synthsieve.errors import SynthsieveError
from synthsieve.evaluation.proof import Verdict
from synthsieve.experiments.arms import Group
from synthsieve.learning import additions
from synthsieve.learning.run_folder import RunFolder
from synthsieve.report.pool_charts import entropy_histogram
from synthsieve.report.verdict import answer_of, groups_of
from synthsieve.review.fate import as_trained
from synthsieve.review.run import Run


def run_in_html(run: Run) -> str:
    """A run in a few lines of HTML; what cannot be read any more is left out, with a word."""
    parts = [f"<p><b>{escape(_name(run))}</b>, {escape(str(run.path))}</p>"]
    if run.table is not None:
        parts += [f"<p>{escape(str(answer_of(run.table)))}</p>", _arms(run.table)]
    try:
        parts.append(_entropies(run))
    except SynthsieveError as error:
        parts.append(f"<p>{escape(str(error))}</p>")
    return f"<div>{''.join(parts)}</div>"


def _name(run: Run) -> str:
    return "a single fit" if run.table is None else str(run.table["source_name"])


def _arms(table: dict[str, Any]) -> str:
    proof, groups = table["proof"], groups_of(table)
    rows = []
    for name, mean in proof["mean"].items():
        one = proof["comparisons"].get(name)
        if one is None:
            rows.append((name, f"{100 * mean:.2f}", "", "", "baseline"))
            continue
        verdict = Verdict(one["verdict"])
        said = verdict.of_another() if groups.get(name) is Group.BASELINE else str(verdict)
        interval = " to ".join(f"{100 * end:+.2f}" for end in one["interval_95"])
        rows.append((name, f"{100 * mean:.2f}", f"{100 * one['difference']:+.2f}", interval, said))
    columns = ("variant", f"{proof['metric']} %", "difference", "95 % interval", "verdict")
    return html_table(columns, rows, note=proof["note"])


def _entropies(run: Run) -> str:
    """The histogram of the pool that is looked at; nothing where there is none. No sample is judged again for it."""
    if not run.pooled:
        return ""
    folder = RunFolder.open(run.arm_folder(run.looked_at))
    chosen = additions.latest(folder.path)
    if chosen.pool is None:
        return ""
    fate = as_trained(chosen.pool, folder.settings.augmentation, chosen.figures)
    return f"<style>{inherited_style()}</style>{render(entropy_histogram(chosen.pool, fate))}"
