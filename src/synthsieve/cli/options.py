"""Options that several verbs share, and how a verb prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from synthsieve.cli.printing import echo
from synthsieve.device import Device
from synthsieve.errors import ConfigError


def given_path(text: str) -> Path:
    """A path that was given; an empty one would be the current folder, which nobody meant."""
    if not text.strip():
        raise ConfigError("expected a path to write to, got an empty one: give a name, or . for the current folder")
    return Path(text)


def utf8_path(text: str) -> Path:
    """A path that was given, if every library can write to it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"a name to write to must be UTF-8, but {text} is not: choose another") from None
    return given_path(text)


Out = Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.", parser=utf8_path, metavar="FOLDER")]
To = Annotated[
    Path | None,
    typer.Option("--to", help="Folder to write to (default: OUT/export).", parser=given_path, metavar="FOLDER"),
]
Run = Annotated[Path, typer.Argument(help="The folder that `synthsieve run` or `fit` wrote.", metavar="OUT")]
Source = Annotated[
    str,
    typer.Argument(
        help="digits, svhn, mnist, adult, spoken-digits, sst2, or a path: .npz, .csv, .tsv, .parquet, .mat, idx file, "
        "a folder of images or wav files."
    ),
]
Label = Annotated[str | None, typer.Option(help="Label column of a table.")]
Text = Annotated[str | None, typer.Option(help="Text column of a table: its sentences are the examples.")]
Schema = Annotated[Path | None, typer.Option(help="A TOML file with the type of columns that are guessed wrongly.")]
Features = Annotated[
    Path | None, typer.Option(help="A .npy of embeddings, a row for each row of the table: they are learned from.")
]
ImageSize = Annotated[
    str | None,
    typer.Option(help="Resize the images of a folder to this size, such as 64 or 64x48 (width x height)."),
]
Test = Annotated[Path | None, typer.Option(help="Labelled examples of your own to measure on.")]
Validation = Annotated[Path | None, typer.Option(help="Labelled examples of your own to choose on.")]
DataDir = Annotated[Path | None, typer.Option(help="Where svhn and mnist lie, or are downloaded to.")]
Config = Annotated[str | None, typer.Option("--config", "-c", help="A preset's name or a TOML file.")]
Set = Annotated[list[str] | None, typer.Option("--set", help="One setting, such as learning.steps=2000.")]
Seed = Annotated[int | None, typer.Option(help="Decides every random choice.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads of one process; all cores if not given.")]
DeviceName = Annotated[Device, typer.Option("--device", help="Where the networks are trained: cpu, or cuda for a GPU.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes at a time, of one thread each; all cores if none.")]
Cluster = Annotated[
    str | None,
    typer.Option(help="Do it on Ray: `local` for workers on this machine, or HOST:PORT of your own cluster."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else, to standard output.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole trace of an error.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]


def use_threads(threads: int | None) -> None:
    """Let torch use that many threads."""
    import torch

    if threads is not None:
        torch.set_num_threads(threads)


def say(line: str, *, as_json: bool) -> None:
    """A line for people: on standard output, or on standard error when that belongs to JSON."""
    echo(line, err=as_json)


def finish(result: dict[str, Any], lines: list[str], *, as_json: bool) -> None:
    """The result, as JSON or in words."""
    echo(json.dumps(result, indent=2) if as_json else "\n".join(lines))
