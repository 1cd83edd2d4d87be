"""`synthsieve utility REAL SYNTHETIC`: how much synthetic rows help a model of your choice."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synthsieve.cli import options


def utility(
    real: Annotated[
        Path, typer.Argument(help="Labelled rows: .csv, .tsv or .parquet with --label, or .npz with x and y.")
    ],
    synthetic: Annotated[Path, typer.Argument(help="The synthetic rows to judge, in the same format.")],
    label: options.Label = None,
    test: options.Test = None,
    unlabeled: Annotated[
        Path | None, typer.Option(help="Real rows without labels, for a comparison with self-labelled rows.")
    ] = None,
    text: options.Text = None,
    weights: Annotated[str | None, typer.Option(help="Column of weights of the synthetic rows.")] = None,
    estimator: Annotated[
        str,
        typer.Option(help="logistic, forest, boosting, knn or mlp; or module:factory for an estimator of your own."),
    ] = "forest",
    metric: Annotated[
        str | None,
        typer.Option(help="accuracy, balanced-accuracy, log-loss or average-precision (default: by balance)."),
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="How often all is trained again (default: 5).")] = None,
    drop_leaks: Annotated[
        bool, typer.Option("--drop-leaks", help="Leave out rows that are also test rows, instead of refusing them.")
    ] = False,
    figure: Annotated[Path | None, typer.Option(help="Write a chart to this .svg file.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Measure how much synthetic rows help a model: synthsieve utility real.csv synthetic.csv --label y

    The model is trained with and without them, and with controls: repeated rows, permuted labels, self-labelled rows.
    """
    from functools import partial

    from synthsieve.api.utility import utility_of_files
    from synthsieve.io.progress import for_stream

    found = utility_of_files(
        real,
        synthetic,
        label=label,
        test=test,
        unlabeled=unlabeled,
        text=text,
        weights=weights,
        estimator=estimator,
        metric=metric,
        repeats=repeats,
        drop_leaks=drop_leaks,
        seed=seed,
        progress=partial(for_stream, quiet=quiet),
    )
    lines = found.lines()
    if figure is not None:
        lines.append(f"chart: {found.save_chart(figure)}")
    options.finish(found.as_dict(), lines, as_json=as_json)
