"""Options that several verbs share, and how a verb prints."""

from __future__ import annotations

import functools
import inspect
import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from typer import Argument, Option
from typer import echo as typer_echo
from typer.core import TyperCommand
from typer.models import OptionInfo

from synthsieve.errors import ConfigError
from synthsieve.io.devices import NAMES
from synthsieve.io.printable import visible
from synthsieve.io.progress import Progress
from synthsieve.settings import preset_names


def given_path(text: str) -> Path:
    """The path; an empty one is refused, because it would mean the current folder."""
    if not text.strip():
        message = "expected a path to write to, got an empty one: give a name, or . for the current folder"
        raise ConfigError(message, code="empty-path")
    return Path(text)


def utf8_path(text: str) -> Path:
    """The path, if every library can write to it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        message = f"a path to write to must be UTF-8, but {text} is not: choose another"
        raise ConfigError(message, code="bad-path") from None
    return given_path(text)


def preset_completions(incomplete: str) -> list[str]:
    """The presets whose names begin with this, for shell completion."""
    return [name for name in preset_names() if name.startswith(incomplete)]


Out = Annotated[Path, Option("--out", "-o", help="Folder to write to.", parser=utf8_path, metavar="FOLDER")]
Run = Annotated[Path, Argument(help="The folder that `synthsieve run` or `fit` wrote.", metavar="OUT")]
Variant = Annotated[
    str | None, Option("--variant", "--arm", help="Whose samples (default: the variant kept, or CRAIG).")
]
RunSeed = Annotated[int | None, Option("--seed", help="One of the run's seeds (default: the first).")]
Source = Annotated[
    str,
    Argument(
        help="digits, svhn, mnist, adult, spoken-digits, sst2, or a path: .npz, .csv, .tsv, .parquet, .mat, idx file, "
        "a folder of images or wav files.",
        metavar="SOURCE",
    ),
]
Test = Annotated[Path | None, Option(help="A file of labelled examples to measure on.")]
DataDir = Annotated[Path | None, Option(help="Folder of the built-in data sets, or to download them to.")]
Set = Annotated[
    list[str] | None, Option("--set", metavar="NAME=VALUE", help="One setting, such as training.steps=2000.")
]
Seed = Annotated[int | None, Option(help="Random seed.")]
Threads = Annotated[int | None, Option(min=1, help="Threads of one process (default: all cores).")]
Device = Annotated[
    str, Option("--device", metavar=NAMES, help="Where the networks are computed; auto takes a GPU if there is one.")
]
Workers = Annotated[
    int | None, Option(min=0, help="Parallel processes, of one thread each (default: one per core; 0: only this one).")
]
# In commands whose processes have one thread each, the number of processes is that of threads.
RunWorkers = Annotated[
    int | None,
    Option(
        "--workers",
        "--threads",
        min=0,
        help="Parallel processes, of one thread each (default: one per core; 0: only this one).",
    ),
]
Cluster = Annotated[
    str | None, Option(help="Run on Ray: `local` for workers on this machine, or HOST:PORT of a running cluster.")
]
VALUE_NAMES = {int: "N", float: "NUMBER", Path: "PATH"}
IMAGE_SIZE = "Resize the images of a folder to this size, such as 64 or 64x48 (width x height)."
# The options of `run` and `fit` that are `synthsieve.api.source.SourceOptions`.
SOURCE_OPTIONS: dict[str, Any] = {
    "labels": Annotated[int | None, Option(min=1, help="Use only this many labels (default: all).")],
    "label": Annotated[str | None, Option(help="Label column of a table.")],
    "text": Annotated[str | None, Option(help="Text column of a table, to train on sentences.")],
    "schema": Annotated[Path | None, Option(help="A TOML file with the types of columns that are detected wrongly.")],
    "features": Annotated[
        Path | None, Option(help="A .npy of embeddings to train on, one row for each row of the table.")
    ],
    "image_size": Annotated[str | None, Option(help=IMAGE_SIZE)],
    "test": Test,
    "validation": Annotated[Path | None, Option(help="A file of labelled examples to choose the model on.")],
    "data_dir": DataDir,
    "class_prior": Annotated[
        str | None,
        Option(help="Class shares that predictions assume: labels, uniform, model, or numbers such as 0.9,0.1."),
    ],
    "config": Annotated[
        str | None,
        Option("--config", "-c", help="Name of a preset, or a TOML file.", autocompletion=preset_completions),
    ],
    "set_": Set,
    "seed": Seed,
}
PRINTING_OPTIONS: dict[str, Any] = {
    "as_json": Annotated[bool, Option("--json", help="Print one JSON object to standard output.")],
    "quiet": Annotated[bool, Option("--quiet", help="Show no progress.")],
    "debug": Annotated[bool, Option("--debug", help="Show the full traceback of an error.")],
}


def echo(text: str, *, err: bool = False) -> None:
    """Print to standard output, or to standard error; terminal control characters are shown as text.

    On a terminal, long sentences are broken between words.
    """
    stream = sys.stderr if err else sys.stdout
    text = visible(text)
    typer_echo(folded(text, shutil.get_terminal_size().columns) if stream.isatty() else text, err=err)


def folded(text: str, width: int) -> str:
    """The same with sentences of at most `width` characters a line; tables and indented lines stay as they are."""
    lines = []
    for line in text.split("\n"):
        is_sentence = len(line) > width and "  " not in line and not line.startswith(" ")
        lines += textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) if is_sentence else [line]
    return "\n".join(lines)


@dataclass(frozen=True)
class Console:
    """How a verb prints."""

    as_json: bool
    quiet: bool

    def say(self, line: str) -> None:
        """Print a message to standard output, or to standard error where standard output is for JSON."""
        echo(line, err=self.as_json)

    def finish(self, result: dict[str, Any], lines: list[str]) -> None:
        """Print the result of a verb, as JSON or as text."""
        echo(json.dumps(result, indent=2) if self.as_json else "\n".join(lines))

    def progress(self, name: str) -> Progress:
        """The progress bar of a stage."""
        from synthsieve.io.progress import for_stream

        return for_stream(name, quiet=self.quiet)


class Command(TyperCommand):
    """A command whose help shows arguments by their names alone; some versions of typer add braces and Python types."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for one in self.params:
            if one.param_type_name == "argument":
                name = str(one.metavar or one.name).upper()
                usage = (name if one.required else f"[{name}]") + ("..." if one.nargs != 1 else "")
                vars(one).update(display_type_rich=lambda ctx: None, _usage_display_name=lambda usage=usage: usage)


def _name_value(parameter: inspect.Parameter) -> None:
    """Name the value of an option in the help, such as N or PATH, where typer would show a Python type."""
    annotation, info = parameter.annotation, parameter.default
    if get_origin(annotation) is Annotated:
        annotation, info = annotation.__origin__, annotation.__metadata__[0]
    kinds = [kind for kind in get_args(annotation) or (annotation,) if kind is not NoneType]
    kind = get_origin(kinds[0]) or kinds[0]
    if isinstance(info, OptionInfo) and info.metavar is None and kind is not bool:
        is_choice = isinstance(kind, type) and issubclass(kind, Enum)
        info.metavar = "|".join(kind) if is_choice else VALUE_NAMES.get(kind, "TEXT")


def verb(
    function: Callable[..., Any], *, data: Mapping[str, Any] = SOURCE_OPTIONS, defaults: Mapping[str, Any] | None = None
) -> Callable[..., None]:
    """The command of a function whose first argument is a `Console`; a result with `as_dict` and `lines` is printed.

    Typer sees its other arguments, the options `data` with their `defaults` (None) in place of `**data`, and
    `PRINTING_OPTIONS`.
    """
    declared = inspect.signature(function, eval_str=True).parameters
    shared = {**(data if "data" in declared else {}), **PRINTING_OPTIONS}
    default = {**(defaults or {}), **dict.fromkeys(PRINTING_OPTIONS, False)}
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [one.replace(kind=keyword) for name, one in declared.items() if name not in ("console", "data")]
    for name, annotation in shared.items():
        parameters.append(inspect.Parameter(name, keyword, default=default.get(name), annotation=annotation))
    for one in parameters:
        _name_value(one)

    @functools.wraps(function)
    def command(as_json: bool, quiet: bool, debug: bool, **given: Any) -> None:
        console = Console(as_json, quiet)
        result = function(console, **given)
        if result is not None:
            console.finish(result.as_dict(), result.lines())

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {}
    return command


def api_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an API function, in Python's names, from the `locals()` of a verb."""
    names = {"set_": "overrides", "class_": "classes"}
    options = {**given, **given.get("data", {})}
    return {names.get(name, name): value for name, value in options.items() if name not in ("console", "data")}


def use_threads(threads: int | None) -> None:
    """Set the number of torch threads; None leaves it as it is."""
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
