"""`synthsieve predict OUT NEW -o predictions.csv`: the class of new examples, with probabilities."""

from __future__ import annotations

from pathlib import Path

from typer import Argument, Option

from synthsieve.cli import options
from synthsieve.io.devices import AUTO

OUT = "The folder that `synthsieve run` or `fit` wrote, or a saved estimator."
NEW = "New examples: a table, .npz, a folder of images or wav files, one file."
TO = "File to write: .csv, .parquet, .jsonl or .npz."


@options.verb
def predict(
    console: options.Console,
    model: Path = Argument(help=OUT, metavar="OUT"),
    new: Path = Argument(help=NEW, metavar="NEW"),
    to: Path = Option(..., "--out", "-o", help=TO, parser=options.utf8_path, metavar="FILE"),
    text: str | None = Option(None, help="Text column of NEW (default: as in training)."),
    features: Path | None = Option(None, help="Embeddings of the rows of NEW: .npy, or .npz with x."),
    method: str | None = Option(None, help='Predict with a baseline that the run compared, such as "random forest".'),
    force: bool = Option(False, "--force", help="Replace the file if it exists."),
    threads: options.Threads = None,
    device: options.Device = AUTO,
) -> None:
    """Predict the class of new examples: one row each, with the probability of every class and the entropy in nats."""
    given = options.api_arguments(locals())
    from synthsieve.api.predict import predict as predict_

    found = predict_(**given, progress=console.progress)
    counts, mean = found.counts(), float(found.entropy.mean())
    report = {"predictions": str(to), "count": len(found), "predicted": counts, "mean_entropy": mean}
    lines = [*(f"note: {note}" for note in found.notes)]
    lines += [f"{len(found):,} predictions, mean entropy {mean:.3f} nats: {to}"]
    lines += [f"  {name}: {count:,}" for name, count in counts.items()]
    console.finish({**report, "notes": list(found.notes)}, lines)
