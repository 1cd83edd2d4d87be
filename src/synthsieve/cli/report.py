"""`synthsieve report OUT`: a finished run on one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish


def report(
    out: Annotated[Path, typer.Argument(help="The directory that `synthsieve run` or `fit` wrote.", metavar="OUT")],
    variant: options.Variant = None,
    seed: Annotated[int | None, typer.Option(help="The seed whose variants are shown (default: the first).")] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", help="File to write (default: OUT/report.html).", parser=options.given_path, metavar="FILE"
        ),
    ] = None,
    threads: options.Threads = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Write one HTML page: did it help, what do the samples look like, are they like real data."""
    from synthsieve.api.report import report as report_
    from synthsieve.io.progress import for_stream

    options.use_threads(threads)
    written = report_(out, to=to, arm=variant, seed=seed, progress=lambda name: for_stream(name, quiet=quiet))
    result = {
        "report": str(written.path),
        "bytes": written.size,
        "arm": written.arm,
        "answer": written.answer,
        "notes": list(written.notes),
    }
    lines = [written.answer, *written.notes, f"report: {written.path} ({written.size / 1e6:.2f} MB)"]
    finish(result, lines, as_json=as_json)
