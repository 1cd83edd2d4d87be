"""`synthsieve report OUT`: a finished run on one HTML page."""

from __future__ import annotations

from pathlib import Path

from typer import Option

from synthsieve.cli import options
from synthsieve.io.devices import AUTO

TO = "File to write (default: OUT/report.html)."


@options.verb
def report(
    console: options.Console,
    out: options.Run,
    variant: options.Variant = None,
    seed: options.RunSeed = None,
    to: Path | None = Option(None, "--to", help=TO, parser=options.given_path, metavar="FILE"),
    threads: options.Threads = None,
    device: options.Device = AUTO,
) -> None:
    """Write one HTML page: did it help, what do the samples look like, are they like real data."""
    from synthsieve.api.report import report as report_

    options.use_threads(threads)
    page = report_(out, to=to, variant=variant, seed=seed, device=device, progress=console.progress)
    figures = {"report": str(page.path), "bytes": page.size, "variant": page.variant, "answer": page.answer}
    lines = [page.answer, *page.notes, f"report: {page.path} ({page.size / 1e6:.2f} MB)"]
    console.finish({**figures, "notes": list(page.notes)}, lines)
