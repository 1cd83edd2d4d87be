"""`synthsieve export OUT`: save the synthetic data of a run as files."""

from __future__ import annotations

from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.results.export.formats import Format, Which


def export(
    out: options.Run,
    to: options.To = None,
    format: Annotated[
        list[Format] | None, typer.Option("--format", help="May be repeated (default: by the kind of data).")
    ] = None,
    variant: options.Variant = None,
    seed: options.RunSeed = None,
    keep_fraction: Annotated[
        float | None, typer.Option(help="Filter again: keep this fraction of each class, lowest entropy first.")
    ] = None,
    entropy_ceiling: Annotated[
        float | None, typer.Option(help="Filter again: keep samples below this entropy (nats), in all classes.")
    ] = None,
    allow_empty_classes: Annotated[
        bool, typer.Option("--allow-empty-classes", help="Export even if no sample of a class is left.")
    ] = False,
    budget: Annotated[float | None, typer.Option(help="Select again: this fraction of each class.")] = None,
    require_label: Annotated[
        bool | None, typer.Option(help="Filter again: reject samples that the classifier gives another class.")
    ] = None,
    all_: Annotated[
        bool | None,
        typer.Option(
            "--all/--only-selected",
            help="All samples in every file, or only the selected (default: all in data.parquet only).",
        ),
    ] = None,
    threads: options.Threads = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Save the synthetic data as files for other programs: synthsieve export out

    Also writes a data card and a manifest with checksums. Other filter or selection options are applied to the samples
    that were generated; nothing is trained or generated again. Samples rejected in the gallery are left out.
    """
    from functools import partial

    from synthsieve.api.export import export as export_run
    from synthsieve.io.progress import for_stream

    options.use_threads(threads)
    result = export_run(
        out,
        to,
        format=format,
        variant=variant,
        seed=seed,
        entropy_ceiling=entropy_ceiling,
        keep_fraction=keep_fraction,
        budget=budget,
        require_label=require_label,
        which=Which.DEFAULT if all_ is None else Which.ALL if all_ else Which.SELECTED,
        allow_empty_classes=allow_empty_classes,
        progress=partial(for_stream, quiet=quiet),
    )
    options.finish(result.as_dict(), result.lines(), as_json=as_json)
