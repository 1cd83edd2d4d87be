"""`synthsieve run SOURCE -o OUT`: everything, from a file to a model and an answer."""

from __future__ import annotations

from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish, say
from synthsieve.config import Metric, VariantSet


def run(
    source: options.Source,
    out: options.Out,
    label: options.Label = None,
    text: options.Text = None,
    schema: options.Schema = None,
    features: options.Features = None,
    test: options.Test = None,
    validation: options.Validation = None,
    labels: Annotated[int | None, typer.Option(min=1, help="Use only this many labels (default: all).")] = None,
    metric: Annotated[Metric, typer.Option(help="What variants are chosen and compared by.")] = Metric.AUTO,
    variants: Annotated[VariantSet | None, typer.Option(help="Which variants are compared.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The fewest variants, once: same as --variants quick.")
    ] = False,
    image_size: options.ImageSize = None,
    data_dir: options.DataDir = None,
    config: options.Config = None,
    set_: options.Set = None,
    seed: options.Seed = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Repeat with this many seeds, for honest intervals.")] = None,
    max_time: Annotated[
        float | None, typer.Option(help="Seconds that it should take, about; leaves steps out.")
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
    from synthsieve.api.run import run as run_
    from synthsieve.progress import for_stream

    result = run_(
        source,
        out,
        label=label,
        text=text,
        schema=schema,
        features=features,
        image_size=image_size,
        data_dir=data_dir,
        test=test,
        validation=validation,
        labels=labels,
        metric=None if metric is Metric.AUTO else metric,
        variants=VariantSet.QUICK if quick else variants,
        config=config,
        overrides=set_ or (),
        seed=seed,
        seeds=1 if quick and seeds is None else seeds,
        max_time=max_time,
        workers=workers,
        progress=lambda name: for_stream(name, quiet=quiet),
        tell=lambda sentence: say(sentence, as_json=as_json),
    )
    for sentence in result.warnings:
        say(f"warning: {sentence}", as_json=as_json)
    finish(result.as_dict(), result.lines(), as_json=as_json)
