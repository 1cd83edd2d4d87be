"""`synthsieve evaluate OUT`: all metrics of a trained model on held-out labels."""

from __future__ import annotations

from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish
from synthsieve.cli.printing import one_line

SHOWN = ("balanced_accuracy", "f1", "auroc", "average_precision", "log_loss", "calibration_error", "majority_accuracy")
MAX_CLASSES = 12  # larger confusion tables are only in evaluation.json


def evaluate(
    out: options.Run,
    test: options.Test = None,
    data_dir: options.DataDir = None,
    part: Annotated[str, typer.Option(help="Rows to measure on: test or validation.")] = "test",
    threads: options.Threads = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Measure a model on held-out labels: accuracy and other metrics, recall of each class, and the confusion table.

    Everything is also written to OUT/evaluation.json.
    """
    from synthsieve.api.evaluate import evaluate as evaluate_

    options.use_threads(threads)
    found = evaluate_(out, part=part, test=test, data_dir=data_dir)
    low, high = found.interval_95
    figures, names = found.metrics, [one_line(name) for name in found.classes]
    lines = [
        f"{found.part} accuracy {100 * figures['accuracy']:.1f} % "
        f"(95 % interval {100 * low:.1f} to {100 * high:.1f}, {figures['count']:,} examples)"
    ]
    lines += [f"  {name.replace('_', ' ')}: {figures[name]:.3f}" for name in SHOWN if figures[name] is not None]
    recall = [(name, share) for name, share in zip(names, figures["recall"], strict=True) if share is not None]
    lines += ["recall of each class:", *(f"  {name}: {100 * share:.1f} %" for name, share in recall)]
    if len(names) <= MAX_CLASSES:
        wide = max(6, *(len(f"{count:,}") + 2 for row in figures["confusion"] for count in row))
        lines.append("true class (rows) and predicted class (columns, in the same order):")
        for name, row in zip(names, figures["confusion"], strict=True):
            lines.append(f"  {name[:20]:20}" + "".join(f"{count:>{wide},}" for count in row))
    finish(found.as_dict(), [*lines, f"written to {out / 'evaluation.json'}"], as_json=as_json)
