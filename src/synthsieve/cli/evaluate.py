"""`synthsieve evaluate OUT`: all metrics of a trained model on held-out labels."""

from __future__ import annotations

from typing import Any

from typer import Option

from synthsieve.cli import options
from synthsieve.io.devices import AUTO


@options.verb
def evaluate(
    console: options.Console,
    out: options.Run,
    test: options.Test = None,
    data_dir: options.DataDir = None,
    part: str = Option("test", help="Rows to measure on: test or validation."),
    threads: options.Threads = None,
    device: options.Device = AUTO,
) -> Any:
    """Measure a model on held-out labels: accuracy and other metrics, recall of each class, and the confusion table.

    Everything is also written to OUT/evaluation.json.
    """
    from synthsieve.api.evaluate import evaluate as evaluate_

    options.use_threads(threads)
    return evaluate_(out, part=part, test=test, data_dir=data_dir, device=device)
