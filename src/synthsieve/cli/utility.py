"""`synthsieve utility REAL SYNTHETIC`: how much synthetic rows help a model of your choice."""

from __future__ import annotations

from pathlib import Path

from typer import Argument, Option

from synthsieve.cli import options

REAL = "Labelled rows: .csv, .tsv or .parquet with --label, or .npz with x and y."
ESTIMATOR = "logistic, forest, boosting, knn or mlp; or module:factory for an estimator of your own."
METRIC = "accuracy, balanced-accuracy, log-loss or average-precision (default: by balance)."
DROP_LEAKS = "Leave out rows that are also test rows, instead of refusing them."


@options.verb
def utility(
    console: options.Console,
    real: Path = Argument(help=REAL, metavar="REAL"),
    synthetic: Path = Argument(help="The synthetic rows to measure, in the same format.", metavar="SYNTHETIC"),
    label: str | None = Option(None, help="Label column of a table."),
    test: options.Test = None,
    unlabeled: Path | None = Option(None, help="Real rows without labels, to compare with self-labelled rows."),
    text: str | None = Option(None, help="Text column of a table."),
    weights: str | None = Option(None, help="Column of weights of the synthetic rows."),
    estimator: str = Option("forest", help=ESTIMATOR),
    metric: str | None = Option(None, help=METRIC),
    repeats: int | None = Option(None, min=1, help="How often all is trained again (default: 5)."),
    drop_leaks: bool = Option(False, "--drop-leaks", help=DROP_LEAKS),
    figure: Path | None = Option(None, help="Write a chart to this .svg file."),
    seed: int = Option(0, help="Random seed."),
) -> None:
    """Measure how much synthetic rows help a model: synthsieve utility real.csv synthetic.csv --label y

    The model is trained with and without them, and with controls: repeated rows, permuted labels, self-labelled rows.
    """
    given = options.api_arguments(locals())
    from synthsieve.api.utility import utility_of_files

    del given["figure"]
    found = utility_of_files(**given, progress=console.progress)
    lines = found.lines()
    if figure is not None:
        lines.append(f"chart: {found.save_chart(figure)}")
    console.finish(found.as_dict(), lines)
