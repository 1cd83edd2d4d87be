"""`synthsieve benchmark SOURCE -o OUT`: which semi-supervised method is best on these data, at equal compute?"""

from __future__ import annotations

from typing import Any

from typer import Option

from synthsieve.cli import options
from synthsieve.io.devices import AUTO
from synthsieve.settings import Metric

METHODS = "Methods with commas between them, such as vat,mean-teacher (default: all; ours is always among them)."
BUDGETS = "Compute of a training as multiples of our own; the first is compared, such as 1,0.5,2."


@options.verb
def benchmark(
    console: options.Console,
    source: options.Source,
    out: options.Out,
    methods: str | None = Option(None, help=METHODS),
    seeds: int = Option(1, min=1, help="Repeat with this many seeds, for intervals that include training."),
    budgets: str = Option("1", help=BUDGETS),
    metric: Metric | None = Option(None, help="What methods are compared by (default: as for run)."),
    workers: options.Workers = None,
    device: options.Device = AUTO,
    **data: Any,
) -> Any:
    """Compare semi-supervised methods on your data at equal compute, and answer which one to use.

    Every method gets the same splits, network, batches, budget and number of trials. The same command continues an
    interrupted one. OUT/benchmark.md has the table, OUT/benchmark.svg accuracy against compute.
    """
    given = options.api_arguments(locals())
    from synthsieve.api.benchmark import benchmark as benchmark_

    return benchmark_(**given, progress=console.progress, log=console.say)
