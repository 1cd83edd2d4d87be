"""`synthsieve fit SOURCE -o OUT`: train one model."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish, say
from synthsieve.io.devices import Device


def fit(
    source: options.Source,
    out: options.Out,
    labels: options.Labels = None,
    label: options.Label = None,
    text: options.Text = None,
    schema: options.Schema = None,
    features: options.Features = None,
    image_size: options.ImageSize = None,
    test: options.Test = None,
    validation: options.Validation = None,
    data_dir: options.DataDir = None,
    config: options.Config = None,
    set_: options.Set = None,
    seed: options.Seed = None,
    supervised: Annotated[bool, typer.Option("--supervised", help="Train the labels-only baseline.")] = False,
    augment: Annotated[
        bool, typer.Option("--augment", help="Continue after training.steps with synthetic data.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint in OUT.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard event files.")] = False,
    threads: options.Threads = None,
    device: options.DeviceName = Device.CPU,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Train a generative classifier on few labels and many unlabelled examples."""
    given = options.api_arguments(locals())
    if "WORLD_SIZE" in os.environ:  # set before torch is imported: its advice on gradient buckets is not for users
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from synthsieve.api.fit import fit as fit_
    from synthsieve.io.progress import for_stream

    result = fit_(
        **given, progress=lambda name: for_stream(name, quiet=quiet), log=lambda message: say(message, as_json=as_json)
    )
    if result.is_main:
        finish(result.as_dict(), result.lines(), as_json=as_json)
