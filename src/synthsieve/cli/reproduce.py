"""`synthsieve reproduce --dataset svhn -o OUT`: the paper's Table 1 on real data, with the paper's figures."""

from __future__ import annotations

from enum import StrEnum

from typer import Option

from synthsieve.cli import options
from synthsieve.io.devices import AUTO


class TableDataset(StrEnum):
    """Data sets that have presets for the table."""

    SVHN = "svhn"
    MNIST = "mnist"
    DIGITS = "digits"


@options.verb
def reproduce(
    console: options.Console,
    out: options.Out,
    dataset: TableDataset = Option(TableDataset.DIGITS, help="Data set."),
    preset: str | None = Option(None, help="Name of a preset, or a TOML file (default: that of the data set)."),
    seeds: int = Option(3, min=1, help="Number of seeds, starting at 0."),
    data_dir: options.DataDir = None,
    set_: options.Set = None,
    workers: options.RunWorkers = None,
    device: options.Device = AUTO,
) -> None:
    """Train every variant of the paper's Table 1; write table.md, table.json and the figures.

    The same command continues an interrupted one.
    """
    given = options.api_arguments(locals())
    from synthsieve.api.run import reproduce as reproduce_

    outcome = reproduce_(**given, progress=console.progress)
    lines = [(out / "table.md").read_text(encoding="utf-8"), "pictures:", *(f"  {path}" for path in outcome.figures)]
    console.finish(outcome.table.as_dict(), lines)
