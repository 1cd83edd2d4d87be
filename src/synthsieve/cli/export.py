"""`synthsieve export OUT`: the synthetic data of a run as a data set on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish
from synthsieve.cli.printing import one_line
from synthsieve.export.formats import Format

MOST_CLASSES = 20  # told one by one


def export(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(help="The folder that `synthsieve run` or `fit` wrote.", metavar="OUT")],
    to: options.To = None,
    format: Annotated[
        list[Format] | None,
        typer.Option("--format", help="May be given several times (default: by the kind of data)."),
    ] = None,
    arm: Annotated[str | None, typer.Option(help="Whose samples (default: the arm kept, or CRAIG's).")] = None,
    seed: Annotated[int | None, typer.Option(help="Which of the run's seeds (default: the first).")] = None,
    keep_fraction: Annotated[
        float | None, typer.Option(help="Filter again: keep this share of each class, by lowest entropy.")
    ] = None,
    entropy_ceiling: Annotated[
        float | None, typer.Option(help="Filter again: keep samples below this entropy (nats), in all classes alike.")
    ] = None,
    allow_empty_classes: Annotated[
        bool, typer.Option("--allow-empty-classes", help="Export even if the filter leaves no sample of a class.")
    ] = False,
    budget: Annotated[float | None, typer.Option(help="Select again: this share of each class.")] = None,
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
    """Save the synthetic data as files that other programs read: synthsieve export out

    Writes a data card, a manifest and checksums beside them. A ceiling, a share or a budget chooses again from the
    samples that were generated; nothing is trained or generated again. Samples marked as bad in the gallery are left
    out.
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
        allow_empty_classes=allow_empty_classes,
        progress=for_stream("export", quiet=quiet),
    )
    report = done.as_dict()
    lines = _counts_in_words(done.manifest["counts"], view.name)
    for name, file in report["files"].items():
        samples = f"{file['samples']:,} samples, " if "samples" in file else ""
        size = f"{file['bytes'] / 1e6:,.1f} MB" if file["bytes"] >= 1e6 else f"{file['bytes'] / 1e3:.1f} kB"
        lines.append(f"  {done.folder / name}: {samples}{size}")
    finish(report, [*lines, report["proof"]], as_json=as_json)


def _counts_in_words(counts: dict[str, Any], arm: str) -> list[str]:
    """How many samples there are, of how many classes, and of which there is none."""
    per_class = [f"{one_line(label)}: {number['selected']:,}" for label, number in counts["classes"].items()]
    there, empty = counts["num_classes"], [one_line(label) for label in counts["empty_classes"]]
    lines = [
        f"{counts['selected']:,} of {counts['drawn']:,} samples of {arm} are selected, of {there:,} "
        f"class{'' if there == 1 else 'es'}",
        f"  {_cut(per_class)}",
    ]
    return [*lines, f"no sample of {len(empty):,} of {len(per_class):,} classes: {_cut(empty)}"] if empty else lines


def _cut(words: list[str]) -> str:
    return ", ".join(words[:MOST_CLASSES]) + (", ..." if len(words) > MOST_CLASSES else "")
