"""`synthsieve run SOURCE -o OUT`: the full pipeline, from a file to a model and an answer."""

from __future__ import annotations

from typing import Any

from typer import Option

from synthsieve.cli import options
from synthsieve.io.devices import AUTO
from synthsieve.settings import Metric, VariantSet

METRIC = "What variants are compared by (default: accuracy; balanced accuracy for unbalanced classes)."

ESTIMATOR = "Your own model, as module:factory: does the data set of the run help it, too?"


@options.verb
def run(
    console: options.Console,
    source: options.Source,
    out: options.Out,
    metric: Metric | None = Option(None, help=METRIC),
    variants: VariantSet | None = Option(None, help="Which variants are compared."),
    quick: bool = Option(False, "--quick", help="The fewest variants, once: same as --variants quick --seeds 1."),
    seeds: int | None = Option(None, min=1, help="Repeat with this many seeds, for intervals that include training."),
    max_time: float | None = Option(None, help="About how many seconds the run may take; steps are left out to fit."),
    estimator: str | None = Option(None, help=ESTIMATOR),
    workers: options.RunWorkers = None,
    device: options.Device = AUTO,
    **data: Any,
) -> Any:
    """Start here: train, generate, filter, retrain, and test on held-out labels whether synthetic data helps.

    The same command continues an interrupted run. OUT/model is the variant with the best validation score, or the model
    without synthetic data if none is clearly better; OUT/report.html has the answer and all figures.
    """
    given = options.api_arguments(locals())
    if given.pop("quick"):
        given |= {"variants": VariantSet.QUICK, "seeds": 1 if seeds is None else seeds}
    from synthsieve.api.run import run as run_

    result = run_(**given, progress=console.progress, log=console.say)
    for warning in result.warnings:
        console.say(f"warning: {warning}")
    return result
