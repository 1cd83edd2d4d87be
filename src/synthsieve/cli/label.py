"""`synthsieve label OUT NEW -o labelled.csv`: new rows with labels to train other models on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer import Argument, Option

from synthsieve.cli import options
from synthsieve.cli.predict import OUT
from synthsieve.io.devices import AUTO

NEW = "Rows to label: a table, .npz, a folder of images or wav files, one file."
TO = "File to write: .csv or .parquet."


@options.verb
def label(
    console: options.Console,
    out: Path = Argument(help=OUT, metavar="OUT"),
    new: Path = Argument(help=NEW, metavar="NEW"),
    to: Path = Option(..., "--out", "-o", help=TO, parser=options.utf8_path, metavar="FILE"),
    min_probability: float = Option(0.5, help="Reject rows whose label is less probable than this."),
    text: str | None = Option(None, help="Text column of NEW (default: as in training)."),
    features: Path | None = Option(None, help="Embeddings of the rows of NEW: .npy, or .npz with x."),
    force: bool = Option(False, "--force", help="Replace the file if it exists."),
    threads: options.Threads = None,
    device: options.Device = AUTO,
) -> Any:
    """Label new rows, to train your own model on them: label, probability, entropy, weight, and which to leave out."""
    given = options.api_arguments(locals())
    from synthsieve.api.label import label as label_

    return label_(given.pop("out"), **given, progress=console.progress)
