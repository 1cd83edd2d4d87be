"""`synthsieve sample OUT --per-class N`: new labelled examples from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish
from synthsieve.settings import Draw


def sample(
    out: options.Run,
    per_class: Annotated[int, typer.Option("--per-class", "--n", min=1, help="Samples of each class.")] = 10,
    class_: Annotated[
        list[str] | None, typer.Option("--class", help="Draw only this class; may be repeated (default: all classes).")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            help="Where to write (default: OUT/samples.npz). With --cluster a folder.",
            parser=options.given_path,
            metavar="PATH",
        ),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, help="Below 1: more typical and less varied samples.")
    ] = None,
    num_steps: Annotated[int | None, typer.Option(min=0, help="Langevin steps.")] = None,
    draw: Annotated[Draw | None, typer.Option(help="How latents are drawn (default: as in the settings).")] = None,
    noise: Annotated[bool, typer.Option("--noise", help="Add the observation noise: a draw of p(x given z).")] = False,
    seed: options.Seed = None,
    threads: options.Threads = None,
    cluster: options.Cluster = None,
    workers: options.Workers = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Draw labelled samples: an .npz (x, y, classes, latent), and beside it a picture, a table, sounds or sentences."""
    given = options.api_arguments(locals())
    from synthsieve.api.sample import sample as sample_
    from synthsieve.io.progress import for_stream

    options.use_threads(given.pop("threads"))
    result = sample_(**given, progress=for_stream("sample", quiet=quiet))
    finish(result.as_dict(), result.lines(), as_json=as_json)
