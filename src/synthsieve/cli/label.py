"""`synthsieve label OUT NEW -o labelled.csv`: new rows with labels to train other models on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synthsieve.cli import options


def label(
    out: Annotated[
        Path,
        typer.Argument(help="The folder that `synthsieve run` or `fit` wrote, or a saved estimator.", metavar="OUT"),
    ],
    new: Annotated[
        Path,
        typer.Argument(help="Rows to label: a table, .npz, a folder of images or wav files, one file.", metavar="NEW"),
    ],
    to: Annotated[
        Path,
        typer.Option("--out", "-o", help="File to write: .csv or .parquet.", parser=options.utf8_path, metavar="FILE"),
    ],
    min_probability: Annotated[float, typer.Option(help="Reject rows whose label is less probable than this.")] = 0.5,
    text: Annotated[str | None, typer.Option(help="Text column of NEW (default: as in training).")] = None,
    features: Annotated[Path | None, typer.Option(help="Embeddings of the rows of NEW: .npy, or .npz with x.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    threads: options.Threads = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Label new rows, to train your own model on them: label, probability, entropy, weight, and which to leave out."""
    given = options.api_arguments(locals())
    from synthsieve.api.label import label as label_
    from synthsieve.io.progress import for_stream

    found = label_(given.pop("out"), **given, progress=lambda name: for_stream(name, quiet=quiet))
    options.finish(found.as_dict(), found.lines(), as_json=as_json)
