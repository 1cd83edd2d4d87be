"""`synthsieve export OUT`: save the synthetic data of a run as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer import Option

from synthsieve.cli import options
from synthsieve.io.devices import AUTO
from synthsieve.results.export.formats import Format, Which
from synthsieve.settings import Coreset

KEEP_FRACTION = "Filter again: keep this fraction of each class, lowest entropy first."
ENTROPY_CEILING = "Filter again: keep samples below this entropy (nats), in all classes."
REQUIRE_LABEL = "Filter again: reject samples that the classifier gives another class."
TO, ALLOW_EMPTY = "Folder to write to (default: OUT/export).", "Export even if no sample of a class is left."
REAL_ROWS = "Also export your own rows, with your labels or the model's (dataset.*)."
CORESET = "Select again: by this method (default: as in training, or herding)."
ALL = "All samples in every file, or only the selected (default: all in data.parquet only)."


@options.verb
def export(
    console: options.Console,
    out: options.Run,
    to: Path | None = Option(None, "--to", help=TO, parser=options.given_path, metavar="FOLDER"),
    format: list[Format] | None = Option(None, "--format", help="May be repeated (default: by the kind of data)."),
    variant: options.Variant = None,
    seed: options.RunSeed = None,
    keep_fraction: float | None = Option(None, help=KEEP_FRACTION),
    entropy_ceiling: float | None = Option(None, help=ENTROPY_CEILING),
    allow_empty_classes: bool = Option(False, "--allow-empty-classes", help=ALLOW_EMPTY),
    real_rows: bool = Option(False, "--real-rows", help=REAL_ROWS),
    budget: float | None = Option(None, help="Select again: this fraction of each class."),
    coreset: Coreset | None = Option(None, help=CORESET),
    require_label: bool | None = Option(None, help=REQUIRE_LABEL),
    all_: bool | None = Option(None, "--all/--only-selected", help=ALL),
    threads: options.Threads = None,
    device: options.Device = AUTO,
) -> Any:
    """Save the synthetic data as files for other programs: synthsieve export out

    Also writes a data card and a manifest with checksums. Other filter or selection options are applied to the samples
    that were generated; nothing is trained or generated again. Samples rejected in the gallery are left out.
    """
    given = options.api_arguments(locals())
    from synthsieve.api.export import export as export_

    options.use_threads(given.pop("threads"))
    every = given.pop("all_")
    which = Which.DEFAULT if every is None else Which.ALL if every else Which.SELECTED
    return export_(**given, which=which, progress=console.progress)
