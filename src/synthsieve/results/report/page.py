"""The report of a finished run: a single self-contained HTML file; the same run gives the same bytes."""

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
from synthsieve.data.dataset import Dataset
from synthsieve.errors import CheckpointError, ConfigError, DataError
from synthsieve.evaluation.predict import score_part
from synthsieve.experiments.arms import Group
from synthsieve.io.files import write_text
from synthsieve.io.printable import without_control
from synthsieve.io.progress import Progress
from synthsieve.results.charts import style, svg
from synthsieve.results.finished import FinishedRun
from synthsieve.results.pool_view import PoolView
from synthsieve.results.provenance import describe_coreset, describe_filter
from synthsieve.results.readable import cut
from synthsieve.results.report import wording
from synthsieve.results.report.figures import charts_of
from synthsieve.results.report.samples import SampleGallery, sample_gallery
from synthsieve.results.report.sections import (
    facts_of,
    fidelity_heading,
    selection_summary,
    training_heading,
    verdict_heading,
)
from synthsieve.results.report.verdict import Answer, answer_of, answer_of_fit
from synthsieve.training.pool import Outcomes
from synthsieve.training.reference_file import attach

TEMPLATES = Path(__file__).parent / "templates"
LIMIT = 5_000_000  # bytes of the whole page
FOR_SAMPLES = 1_500_000  # reserved for samples; figures that need more are left out
FOR_NOTES = 1_000
NAME = "report.html"
GROUP_NAMES = {
    Group.BASELINE: "Other methods",
    Group.REAL: "Real data alone",
    Group.SYNTHETIC: "Real data with additions",
}


@dataclass(frozen=True)
class WrittenReport:
    """A report on disk."""

    path: Path  # the HTML file
    size: int  # in bytes
    variant: str | None  # the variant whose samples it shows; None without a pool
    answer: str  # whether synthetic data helped
    notes: tuple[str, ...]  # what is missing


def write_report(
    run: FinishedRun, path: Path | None = None, *, variant: str | None = None, progress: Progress | None = None
) -> WrittenReport:
    """Write the report of a run to OUT/report.html, or to `path`.

    `variant` is the one whose pool is shown, by default that of the run; `progress` is that of drawing figures.
    """
    target = run.path / NAME if path is None else path
    if target.is_dir():
        message = f"expected a file to write the report to, but {target} is a directory: try {target / NAME}"
        raise ConfigError(message, code="is-a-directory")
    dataset = None
    with suppress(DataError, CheckpointError):
        dataset = run.dataset
    view, missing = _pool(run, variant)
    outcome = None if view is None else view.as_trained()
    answer, table = _answer(run, dataset), run.table
    figures, notes = _figures(run, view, outcome, progress)
    name = run.pretrained.split.source if dataset is None else dataset.name
    context: dict[str, Any] = {
        "title": name if table is None else table.source_name,
        "version": __version__,
        "table": table,
        "answer": answer,
        "on_test": None if table is None else verdict_heading(table),
        "pool": None if view is None or outcome is None else selection_summary(view, outcome),
        "missing": _without_directories(missing, run),
        "quality": None if table is None else table.quality,
        "training": training_heading(run, None if view is None else view.name),
        "facts": facts_of(run, dataset),
        "figures": figures,
        "left_out": notes,
        "gallery": SampleGallery(),
    }
    pages = _environment()
    space = LIMIT - FOR_NOTES - len(_render(pages, context).encode())
    if view is not None and outcome is not None:
        template = pages.get_template("class.html")
        context["gallery"] = sample_gallery(view, outcome, lambda one: template.render(samples=one), space)
    text = _render(pages, context)
    write_text(target, text)
    notes = [*([missing] if missing else []), *notes, *context["gallery"].notes]
    return WrittenReport(target, len(text.encode()), None if view is None else view.name, str(answer), tuple(notes))


def _pool(run: FinishedRun, variant: str | None) -> tuple[PoolView | None, str]:
    """The pool to show, or why there is none."""
    if variant is not None:
        run.arm_folder(variant)
    if not run.pooled:
        return None, "This run has no synthetic pool, so there are no samples to show."
    try:
        return run.pool(variant), ""
    except (CheckpointError, DataError) as error:
        return None, f"The samples cannot be shown: {error}."


def _without_directories(text: str, run: FinishedRun) -> str:
    """The text without the directories of data and run, since reports are shared."""
    origin = run.pretrained.origin
    paths = [Path(one) for one in (origin.source, origin.schema, origin.features, origin.data_dir) if one]
    for parent in {path.parent for path in (*paths, run.path.absolute()) if path.is_absolute()}:
        text = text.replace(f"{parent}/", "")
    return text


def _answer(run: FinishedRun, dataset: Dataset | None) -> Answer:
    if run.table is not None:
        return answer_of(run.table)
    first = run.pretrained
    scores = match = None
    if dataset is not None:
        model = first.load_model(device=run.device)
        scores, match = score_part(model, first.encoding, dataset, first.split, "test"), attach(first, model)
    return answer_of_fit(scores, match, drew=bool(run.pooled))


def _figures(
    run: FinishedRun, view: PoolView | None, outcome: Outcomes | None, progress: Progress | None
) -> tuple[dict[str, Markup], list[str]]:
    """Every chart as inline SVG, by name; the largest are left out if they do not all fit."""
    charts = charts_of(run, view, outcome, progress=progress)
    drawn = {name: Markup(svg.render(chart)) for name, chart in charts.items()}
    notes = []
    while sum(len(one.encode()) for one in drawn.values()) > LIMIT - FOR_SAMPLES:
        largest = max(drawn, key=lambda name: len(drawn[name]))
        del drawn[largest]
        notes.append(f"The figure {charts[largest].title!r} is left out, to keep this page below 5 MB.")
    return drawn, notes


def _without_control(value: Any) -> Any:
    """No control characters from labels or columns, for terminals that show the page's source."""
    if isinstance(value, Markup):
        return Markup(without_control(value))
    return without_control(value) if isinstance(value, str) else value


def _environment() -> Environment:
    pages = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_without_control,
    )
    words = (wording.points, wording.span, wording.percent, wording.count, wording.counted, wording.figure)
    filters = (*words, wording.unbroken, cut)
    pages.filters |= {function.__name__: function for function in filters}
    pages.globals.update(
        fidelity_heading=fidelity_heading,
        describe_filter=describe_filter,
        describe_coreset=describe_coreset,
        group_names=GROUP_NAMES,
    )
    return pages


def _render(pages: Environment, context: dict[str, Any]) -> str:
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    css = style.page_style() + (TEMPLATES / "page.css").read_text(encoding="utf-8")
    css += f"@media print{{:root{{{style.variables(style.LIGHT)}}}}}"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = pages.get_template("page.html")
    return page.render(**context, style=Markup(css), script=Markup(script), script_hash=f"'sha256-{digest}'")
