"""`synthsieve export OUT`: the synthetic data of a run as a data set on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish
from synthsieve.export.formats import Format


def export(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(help="The folder that `synthsieve run` or `fit` wrote.", metavar="OUT")],
    to: Annotated[Path | None, typer.Option("--to", help="Folder to write; OUT/export if not given.")] = None,
    format: Annotated[
        list[Format] | None,
        typer.Option("--format", help="May be given several times; by the kind of data if not given."),
    ] = None,
    arm: Annotated[str | None, typer.Option(help="Whose pool; the arm that validation chose if it has one.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of which repetition; the first if not given.")] = None,
    entropy_ceiling: Annotated[float | None, typer.Option(help="Keep samples below it, in nats; sieves anew.")] = None,
    keep_fraction: Annotated[
        float | None, typer.Option(help="Keep that share of each class, of lowest entropy; sieves anew.")
    ] = None,
    budget: Annotated[float | None, typer.Option(help="Select that share of each class; sieves anew.")] = None,
    asked_class: Annotated[
        bool | None,
        typer.Option("--asked-class/--any-class", help="Reject samples that the classifier gives another class."),
    ] = None,
    all_: Annotated[
        bool | None,
        typer.Option(
            "--all/--only-selected",
            help="All samples in every file, or none but the selected; if not given, data.parquet alone has all.",
        ),
    ] = None,
    threads: options.Threads = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Write a pool as files that other programs read, with a card, a manifest and checksums.

    A ceiling, a share or a budget sieves the pool anew; nothing is drawn or learned again. Samples that were marked as
    bad in the gallery are rejected.
    """
    from synthsieve.export.formats import Which
    from synthsieve.lock import locked_beside
    from synthsieve.progress import for_stream
    from synthsieve.review.fate import changed_settings
    from synthsieve.review.run import open_run
    from synthsieve.review.taken_home import export_view

    options.use_threads(threads)
    run = open_run(out, seed=seed)
    context.with_resource(locked_beside(to or out / "export"))
    view = run.pool(arm, progress=for_stream("look", quiet=quiet))
    settings = changed_settings(
        view.settings,
        entropy_ceiling=entropy_ceiling,
        keep_fraction=keep_fraction,
        require_asked_class=asked_class,
        budget=budget,
    )
    done = export_view(
        view,
        view.sieved(settings, progress=for_stream("sieve", quiet=quiet)),
        to=to or out / "export",
        formats=format,
        which=Which.USUAL if all_ is None else Which.ALL if all_ else Which.SELECTED,
        table=run.table,
        progress=for_stream("export", quiet=quiet),
    )
    report = done.as_dict()
    lines = [f"{done.manifest['counts']['selected']:,} of {len(view):,} samples of {view.name} are selected"]
    for name, file in report["files"].items():
        samples = f"{file['samples']:,} samples, " if "samples" in file else ""
        size = f"{file['bytes'] / 1e6:,.1f} MB" if file["bytes"] >= 1e6 else f"{file['bytes'] / 1e3:.1f} kB"
        lines.append(f"  {done.folder / name}: {samples}{size}")
    finish(report, [*lines, report["proof"]], as_json=as_json)
