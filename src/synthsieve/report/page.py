"""The report: one file that opens anywhere, from a finished run.

    write_report(open_run("out"))   ->   out/report.html

Nothing in it comes from elsewhere and nothing depends on the clock: the same run gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from synthsieve import __version__
from synthsieve.charts import svg, svg_style
from synthsieve.charts.palette import LIGHT
from synthsieve.data.dataset import Dataset
from synthsieve.errors import CheckpointError, ConfigError, DataError
from synthsieve.evaluation.accuracy import score_part
from synthsieve.files import write_text
from synthsieve.printable import without_control
from synthsieve.progress import Progress
from synthsieve.report import faithful, sieved, verdict, wording
from synthsieve.report.compared import arm_rows, measured
from synthsieve.report.facts import facts_of
from synthsieve.report.figures import charts_of
from synthsieve.report.learned import learned
from synthsieve.report.shown import Gallery, gallery
from synthsieve.review.fate import Fate
from synthsieve.review.pool_view import PoolView
from synthsieve.review.run import Run

HERE = Path(__file__).parent
LIMIT = 5_000_000  # bytes of the whole page
FOR_SAMPLES = 1_500_000  # of them at least, if there are samples: figures that need more are left out
FOR_NOTES = 1_000  # sentences on what is left out
NAME = "report.html"


@dataclass(frozen=True)
class Written:
    """What was written: where, how many bytes, whose pool it shows (None without one), the answer in words, and a
    sentence for each thing that is missing.
    """

    path: Path
    size: int
    arm: str | None
    answer: str
    notes: tuple[str, ...]


def write_report(
    run: Run,
    path: Path | None = None,
    *,
    arm: str | None = None,
    progress: Progress | None = None,
    drawing: Progress | None = None,
) -> Written:
    """The report of a run as OUT/report.html, or at `path`; `arm` is whose pool is shown, the run's own choice if none.

    The first time, every sample of that pool is looked at again, and `progress` is told; `drawing` of the figures.
    """
    target = run.path / NAME if path is None else path
    if target.is_dir():
        raise ConfigError(f"expected a file to write the report to, but {target} is a folder: try {target / NAME}")
    dataset = _dataset(run)
    view, missing = _pool(run, arm, progress)
    fate = None if view is None else view.as_trained()
    answer = _answer(run, dataset)
    figures, notes = _figures(run, view, fate, drawing)
    context: dict[str, Any] = {
        "title": _title(run, dataset),
        "version": __version__,
        "table": run.table,
        "answer": answer,
        "on_test": None if run.table is None else verdict.on_test_in_one_line(run.table),
        "groups": {} if run.table is None else arm_rows(run.table, answer.kept),
        "measured": None if run.table is None or answer.kept is None else measured(run.table, answer.kept),
        "score": "accuracy" if run.table is None else verdict.score_name(run.table),
        "pool": None if view is None or fate is None else sieved.sieved(view, fate),
        "missing": _without_places(missing, run),
        "quality": None if run.table is None else run.table.get("quality"),
        "learned": learned(run, None if view is None else view.name),
        "facts": facts_of(run, dataset),
        "figures": figures,
        "left_out": notes,
        "gallery": Gallery((), (), ()),
    }
    pages = _environment()
    room = LIMIT - FOR_NOTES - len(_render(pages, context).encode())
    if view is not None and fate is not None:
        template = pages.get_template("class.html")
        context["gallery"] = gallery(view, fate, lambda one: template.render(samples=one), room)
    text = _render(pages, context)
    write_text(target, text)
    told = (*([missing] if missing else []), *notes, *context["gallery"].notes)
    return Written(target, len(text.encode()), None if view is None else view.name, str(answer), told)


def _dataset(run: Run) -> Dataset | None:
    """The data, where they can still be read."""
    with suppress(DataError, CheckpointError):
        return run.dataset
    return None


def _pool(run: Run, arm: str | None, progress: Progress | None) -> tuple[PoolView | None, str]:
    """The pool to show, or a sentence on why there is none."""
    if arm is not None:
        run.arm_folder(arm)
    if not run.pooled:
        return None, "This run drew no synthetic pool, so there are no samples to show."
    try:
        return run.pool(arm, progress=progress), ""
    except (CheckpointError, DataError) as error:
        return None, f"The samples cannot be shown: {error}."


def _without_places(text: str, run: Run) -> str:
    """The text without the folders that data and run lie in: a page is handed round."""
    origin = run.first_phase.origin
    named = [Path(one) for one in (origin.source, origin.schema, origin.features, origin.data_dir) if one]
    for place in {path.parent for path in (*named, run.path.absolute()) if path.is_absolute()}:
        text = text.replace(f"{place}/", "")
    return text


def _answer(run: Run, dataset: Dataset | None) -> verdict.Answer:
    if run.table is not None:
        return verdict.answer_of(run.table)
    first = run.first_phase
    scores = None if dataset is None else score_part(first.model(), first.encoding, dataset, first.split, "test")
    return verdict.answer_of_fit(scores, drew=bool(run.pooled))


def _title(run: Run, dataset: Dataset | None) -> str:
    if run.table is not None:
        return str(run.table.get("source_name") or run.table["source"])
    return run.first_phase.split.source if dataset is None else dataset.name


def _figures(
    run: Run, view: PoolView | None, fate: Fate | None, progress: Progress | None
) -> tuple[dict[str, Markup], list[str]]:
    """Every chart as inline SVG, by name; the largest are left out where all together would not fit."""
    charts = charts_of(run, view, fate, progress=progress)
    drawn = {name: Markup(svg.render(chart)) for name, chart in charts.items()}
    notes = []
    while sum(len(one.encode()) for one in drawn.values()) > LIMIT - FOR_SAMPLES:
        largest = max(drawn, key=lambda name: len(drawn[name]))
        del drawn[largest]
        notes.append(f"The figure {charts[largest].title!r} is left out: it would make this page larger than 5 MB.")
    return drawn, notes


def _without_control(value: Any) -> Any:
    """Labels and columns come from anybody: a terminal that shows the page's source must find nothing to obey."""
    if isinstance(value, Markup):
        return Markup(without_control(value))
    return without_control(value) if isinstance(value, str) else value


def _environment() -> Environment:
    pages = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_without_control,
    )
    for name in ("points", "span", "percent", "count", "counted", "figure", "listed", "cut"):
        pages.filters[name] = getattr(wording, name)
    pages.globals.update(
        measures=faithful.measures,
        faithful_line=faithful.in_one_line,
        copies=faithful.copies_in_words,
        coreset_line=sieved.coreset_in_one_line,
    )
    return pages


def _render(pages: Environment, context: dict[str, Any]) -> str:
    script = (HERE / "page.js").read_text(encoding="utf-8")
    style = svg_style.page_style() + (HERE / "page.css").read_text(encoding="utf-8")
    style += f"@media print{{:root{{{svg_style.variables(LIGHT)}}}}}"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return pages.get_template("page.html").render(
        **context,
        style=Markup(style),
        script=Markup(script),
        script_hash=f"'sha256-{digest}'",
    )
