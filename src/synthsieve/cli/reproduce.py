"""`synthsieve reproduce --dataset svhn -o OUT`: the paper's Table 1 on real data, beside the paper's figures."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish


class TableDataset(StrEnum):
    """Data sets that have presets for the table."""

    SVHN = "svhn"
    MNIST = "mnist"
    DIGITS = "digits"


def reproduce(
    out: options.Out,
    dataset: Annotated[TableDataset, typer.Option(help="Data set.")] = TableDataset.DIGITS,
    preset: Annotated[
        str | None, typer.Option(help="Name of a preset, or a TOML file (default: that of the data set).")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, starting at 0.")] = 3,
    data_dir: options.DataDir = None,
    set_: options.Set = None,
    workers: options.Workers = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Train every variant of the paper's Table 1; write table.md, table.json and the figures.

    The same command continues an interrupted one.
    """
    given = options.api_arguments(locals())
    from synthsieve.api.run import reproduce as reproduce_
    from synthsieve.io.progress import for_stream

    outcome = reproduce_(**given, progress=lambda name: for_stream(name, quiet=quiet))
    lines = [(out / "table.md").read_text(encoding="utf-8"), "pictures:", *(f"  {path}" for path in outcome.figures)]
    finish(outcome.table.as_dict(), lines, as_json=as_json)
