"""`synthsieve run SOURCE -o OUT`: the full pipeline, from a file to a model and an answer."""

from __future__ import annotations

from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish, say
from synthsieve.settings import Metric, VariantSet


def run(
    source: options.Source,
    out: options.Out,
    label: options.Label = None,
    text: options.Text = None,
    schema: options.Schema = None,
    features: options.Features = None,
    test: options.Test = None,
    validation: options.Validation = None,
    labels: options.Labels = None,
    metric: Annotated[
        Metric | None,
        typer.Option(
            help="What variants are compared by (default: accuracy; balanced accuracy for unbalanced classes)."
        ),
    ] = None,
    variants: Annotated[VariantSet | None, typer.Option(help="Which variants are compared.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The fewest variants, once: same as --variants quick --seeds 1.")
    ] = False,
    image_size: options.ImageSize = None,
    data_dir: options.DataDir = None,
    config: options.Config = None,
    set_: options.Set = None,
    seed: options.Seed = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Repeat with this many seeds, for intervals that include training.")
    ] = None,
    max_time: Annotated[
        float | None, typer.Option(help="About how many seconds the run may take; steps are left out to fit.")
    ] = None,
    workers: options.Workers = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Start here: train, generate, filter, retrain, and test on held-out labels whether synthetic data helps.

    The same command continues an interrupted run. OUT/model is the variant with the best validation score, or the model
    without synthetic data if none is clearly better; OUT/report.html has the answer and all figures.
    """
    given = options.api_arguments(locals())
    if given.pop("quick"):
        given |= {"variants": VariantSet.QUICK, "seeds": 1 if seeds is None else seeds}
    from synthsieve.api.run import run as run_
    from synthsieve.io.progress import for_stream

    result = run_(
        **given, progress=lambda name: for_stream(name, quiet=quiet), log=lambda message: say(message, as_json=as_json)
    )
    for warning in result.warnings:
        say(f"warning: {warning}", as_json=as_json)
    finish(result.as_dict(), result.lines(), as_json=as_json)
