"""`synthsieve fit SOURCE -o OUT`: train one model."""

from __future__ import annotations

import os
from typing import Any

from typer import Option

from synthsieve.cli import options
from synthsieve.io.devices import AUTO


@options.verb
def fit(
    console: options.Console,
    source: options.Source,
    out: options.Out,
    supervised: bool = Option(False, "--supervised", help="Train the labels-only baseline."),
    augment: bool = Option(False, "--augment", help="Continue after training.steps with synthetic data."),
    resume: bool = Option(False, "--resume", help="Continue from the last checkpoint in OUT."),
    tensorboard: bool = Option(False, "--tensorboard", help="Also write TensorBoard event files."),
    threads: options.Threads = None,
    device: options.Device = AUTO,
    **data: Any,
) -> Any:
    """Train a generative classifier on few labels and many unlabelled examples."""
    given = options.api_arguments(locals())
    if "WORLD_SIZE" in os.environ:  # set before torch is imported: its advice on gradient buckets is not for users
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from synthsieve.api.fit import fit as fit_

    result = fit_(**given, progress=console.progress, log=console.say)
    return result if result.is_main else None
