"""`synthsieve report OUT`: a finished run told on one page that opens anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish


def report(
    out: Annotated[Path, typer.Argument(help="The folder that `synthsieve run` or `fit` wrote.", metavar="OUT")],
    arm: Annotated[str | None, typer.Option(help="Whose samples are shown, such as 'entropy, L=5,000'.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Whose arms are shown; the first of the run's seeds if none.")
    ] = None,
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
    """Write one HTML file: did it help, what do the samples look like, where was the line drawn, is it faithful."""
    from synthsieve.progress import for_stream
    from synthsieve.report.page import write_report
    from synthsieve.review.run import open_run

    options.use_threads(threads)
    written = write_report(
        open_run(out, seed=seed),
        to,
        arm=arm,
        progress=for_stream("look", quiet=quiet),
        drawing=for_stream("draw", quiet=quiet),
    )
    result = {
        "report": str(written.path),
        "bytes": written.size,
        "arm": written.arm,
        "answer": written.answer,
        "notes": list(written.notes),
    }
    lines = [written.answer, *written.notes, f"report: {written.path} ({written.size / 1e6:.2f} MB)"]
    finish(result, lines, as_json=as_json)
