"""`synthsieve reproduce --dataset svhn -o OUT`: the paper's table on real data, ours beside theirs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish


class TableOf(StrEnum):
    """Data sets that have presets for the table."""

    SVHN = "svhn"
    MNIST = "mnist"
    DIGITS = "digits"


TABLE_PRESETS = {TableOf.SVHN: "svhn-table"}  # where the table needs another first phase than the best single model


def reproduce(
    context: typer.Context,
    out: options.Out,
    dataset: Annotated[TableOf, typer.Option(help="Which data.")] = TableOf.DIGITS,
    preset: Annotated[str | None, typer.Option(help="A preset's name or a TOML file; the data's own if none.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 0 on.")] = 3,
    data_dir: options.DataDir = None,
    set_: options.Set = None,
    workers: options.Workers = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Run every arm of the paper's Table 1 from shared first phases; write table.md, table.json and the figures.

    The same command goes on where an earlier one stopped.
    """
    from synthsieve.defaults import settings_for
    from synthsieve.experiments.arms import cells
    from synthsieve.experiments.jobs import default_workers
    from synthsieve.experiments.outcome import carry_out
    from synthsieve.experiments.table import Experiment
    from synthsieve.learning.run_folder import Origin
    from synthsieve.lock import locked
    from synthsieve.progress import for_stream

    settings = settings_for(str(dataset), config=preset or TABLE_PRESETS.get(dataset), overrides=set_ or ())
    if not settings.augmentation.steps:
        settings = settings.with_second_phase()
    context.with_resource(locked(out))
    origin = Origin.of(str(dataset), data_dir=data_dir)
    arms = cells(settings.proof.pool_sizes, baselines=settings.proof.baselines)
    experiment = Experiment(out, origin, settings, tuple(range(seeds)), tuple(arms))
    data = origin.load(for_stream("data", quiet=quiet))
    experiment.check(data)
    outcome = carry_out(
        experiment,
        data,
        workers=workers or default_workers(),
        beside_paper=dataset is TableOf.SVHN,
        progress=for_stream("reproduce", quiet=quiet),
        looking=for_stream("look", quiet=quiet),
    )
    lines = [(out / "table.md").read_text(encoding="utf-8"), "pictures:", *(f"  {path}" for path in outcome.figures)]
    finish(outcome.report, lines, as_json=as_json)
