"""`synthsieve sample OUT --per-class N`: new labelled examples from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from synthsieve.cli import options
from synthsieve.io.devices import AUTO
from synthsieve.settings import Draw

TO = "Where to write (default: OUT/samples.npz). With --cluster a folder."


@options.verb
def sample(
    console: options.Console,
    out: options.Run,
    per_class: int = Option(10, "--per-class", "--n", min=1, help="Samples of each class."),
    class_: Annotated[
        list[str] | None, Option("--class", help="Draw only this class; may be repeated (default: all classes).")
    ] = None,
    to: Path | None = Option(None, "--to", help=TO, parser=options.given_path, metavar="PATH"),
    temperature: float | None = Option(None, min=0, help="Below 1: more typical and less varied samples."),
    num_steps: int | None = Option(None, min=0, help="Langevin steps."),
    draw: Draw | None = Option(None, help="How latents are drawn (default: as in the settings)."),
    noise: bool = Option(False, "--noise", help="Add the observation noise: a draw of p(x given z)."),
    seed: options.Seed = None,
    threads: options.Threads = None,
    device: options.Device = AUTO,
    cluster: options.Cluster = None,
    workers: options.Workers = None,
) -> Any:
    """Draw labelled samples: an .npz (x, y, classes, latent), with a picture, a table, sounds or sentences."""
    given = options.api_arguments(locals())
    from synthsieve.api.sample import sample as sample_

    options.use_threads(given.pop("threads"))
    return sample_(**given, progress=console.progress("sample"))
