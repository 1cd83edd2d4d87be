"""Options that several verbs share, and how a verb prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from synthsieve.cli.printing import echo
from synthsieve.errors import ConfigError
from synthsieve.io.devices import Device


def given_path(text: str) -> Path:
    """The path; an empty one is refused, because it would mean the current folder."""
    if not text.strip():
        raise ConfigError(
            "expected a path to write to, got an empty one: give a name, or . for the current folder", code="empty-path"
        )
    return Path(text)


def utf8_path(text: str) -> Path:
    """The path, if every library can write to it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"a path to write to must be UTF-8, but {text} is not: choose another", code="bad-path"
        ) from None
    return given_path(text)


Out = Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.", parser=utf8_path, metavar="FOLDER")]
To = Annotated[
    Path | None,
    typer.Option("--to", help="Folder to write to (default: OUT/export).", parser=given_path, metavar="FOLDER"),
]
Run = Annotated[Path, typer.Argument(help="The folder that `synthsieve run` or `fit` wrote.", metavar="OUT")]
Variant = Annotated[
    str | None, typer.Option("--variant", "--arm", help="Whose samples (default: the variant kept, or CRAIG).")
]
RunSeed = Annotated[int | None, typer.Option("--seed", help="One of the run's seeds (default: the first).")]
Source = Annotated[
    str,
    typer.Argument(
        help="digits, svhn, mnist, adult, spoken-digits, sst2, or a path: .npz, .csv, .tsv, .parquet, .mat, idx file, "
        "a folder of images or wav files.",
        metavar="SOURCE",
    ),
]
Labels = Annotated[int | None, typer.Option(min=1, help="Use only this many labels (default: all).")]
Label = Annotated[str | None, typer.Option(help="Label column of a table.")]
Text = Annotated[str | None, typer.Option(help="Text column of a table, to train on sentences.")]
Schema = Annotated[Path | None, typer.Option(help="A TOML file with the types of columns that are detected wrongly.")]
Features = Annotated[
    Path | None, typer.Option(help="A .npy of embeddings to train on, one row for each row of the table.")
]
ImageSize = Annotated[
    str | None, typer.Option(help="Resize the images of a folder to this size, such as 64 or 64x48 (width x height).")
]
Test = Annotated[Path | None, typer.Option(help="A file of labelled examples to measure on.")]
Validation = Annotated[Path | None, typer.Option(help="A file of labelled examples to choose the model on.")]
DataDir = Annotated[Path | None, typer.Option(help="Folder of the built-in data sets, or to download them to.")]
Config = Annotated[str | None, typer.Option("--config", "-c", help="Name of a preset, or a TOML file.")]
Set = Annotated[list[str] | None, typer.Option("--set", help="One setting, such as training.steps=2000.")]
Seed = Annotated[int | None, typer.Option(help="Random seed.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads of one process (default: all cores).")]
DeviceName = Annotated[Device, typer.Option("--device", help="Where the networks are trained: cpu, or cuda for a GPU.")]
Workers = Annotated[
    int | None,
    typer.Option(min=0, help="Parallel processes, of one thread each (default: one per core; 0: only this one)."),
]
Cluster = Annotated[
    str | None, typer.Option(help="Run on Ray: `local` for workers on this machine, or HOST:PORT of a running cluster.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


def use_threads(threads: int | None) -> None:
    """Set the number of torch threads; None leaves it as it is."""
    import torch

    if threads is not None:
        torch.set_num_threads(threads)


def api_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an API function from the `locals()` of a verb: without printing options, in Python's names."""
    names = {"set_": "overrides", "class_": "classes"}
    return {names.get(name, name): value for name, value in given.items() if name not in ("as_json", "quiet", "debug")}


def say(line: str, *, as_json: bool) -> None:
    """Print a message to standard output, or to standard error where standard output is for JSON."""
    echo(line, err=as_json)


def finish(result: dict[str, Any], lines: list[str], *, as_json: bool) -> None:
    """Print the result of a verb, as JSON or as text."""
    echo(json.dumps(result, indent=2) if as_json else "\n".join(lines))
