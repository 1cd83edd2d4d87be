"""`synthsieve predict OUT NEW -o predictions.csv`: the class of new examples, with probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish


def predict(
    out: Annotated[
        Path,
        typer.Argument(help="The folder that `synthsieve run` or `fit` wrote, or a saved estimator.", metavar="OUT"),
    ],
    new: Annotated[
        Path,
        typer.Argument(help="New examples: a table, .npz, a folder of images or wav files, one file.", metavar="NEW"),
    ],
    to: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="File to write: .csv, .parquet, .jsonl or .npz.",
            parser=options.utf8_path,
            metavar="FILE",
        ),
    ],
    text: Annotated[str | None, typer.Option(help="Text column of NEW (default: as in training).")] = None,
    features: Annotated[Path | None, typer.Option(help="Embeddings of the rows of NEW: .npy, or .npz with x.")] = None,
    method: Annotated[
        str | None, typer.Option(help='Predict with a baseline that the run compared, such as "random forest".')
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    threads: options.Threads = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Predict the class of new examples: one row each, with the probability of every class and the entropy in nats."""
    given = options.api_arguments(locals())
    from synthsieve.api.predict import predict as predict_
    from synthsieve.io.progress import for_stream

    found = predict_(given.pop("out"), **given, progress=lambda name: for_stream(name, quiet=quiet))
    mean = float(found.entropy.mean())
    report = {"predictions": str(to), "count": len(found), "predicted": found.counts(), "mean_entropy": mean}
    lines = [
        *(f"note: {note}" for note in found.notes),
        f"{len(found):,} predictions, mean entropy {mean:.3f} nats: {to}",
    ]
    lines += [f"  {name}: {count:,}" for name, count in found.counts().items()]
    finish({**report, "notes": list(found.notes)}, lines, as_json=as_json)
