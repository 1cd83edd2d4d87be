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
    text: Annotated[str | None, typer.Option(help="Text column of NEW; that of training if not given.")] = None,
    features: Annotated[Path | None, typer.Option(help="Embeddings of the rows of NEW: .npy, or .npz with x.")] = None,
    method: Annotated[
        str | None, typer.Option(help='A simpler method that the run compared, such as "random forest".')
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    threads: options.Threads = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Predict the class of new examples: one row each, with the probability of every class and the entropy in nats."""
    from synthsieve.prediction import predict_file
    from synthsieve.progress import for_stream

    reading, progress = for_stream("read", quiet=quiet), for_stream("predict", quiet=quiet)
    asked = {"features": features, "text": text, "method": method, "force": force, "threads": threads}
    found = predict_file(out, new, to, **asked, reading=reading, progress=progress)  # type: ignore[arg-type]
    mean = float(found.entropy.mean())
    report = {"predictions": str(to), "count": len(found), "predicted": found.counts(), "mean_entropy": mean}
    lines = [f"{len(found):,} predictions, mean entropy {mean:.3f} nats: {to}"]
    lines += [f"  {name}: {count:,}" for name, count in found.counts().items()]
    finish({**report, "notes": list(found.notes)}, [*(f"note: {one}" for one in found.notes), *lines], as_json=as_json)
