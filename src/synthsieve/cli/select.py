"""`synthsieve select`: a selection from a file to a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from synthsieve.cli import options
from synthsieve.cli.printing import echo
from synthsieve.errors import SelectionError


def select(
    data: Path = typer.Argument(
        help="A .npz, .parquet, .csv, .tsv or .jsonl file, or a folder of .parquet files, with labels and logits, "
        "probabilities, gradients or features; or a .npy file of embeddings."
    ),
    out: Path = typer.Option(
        ..., "-o", "--out", help="Folder to write to.", parser=options.given_path, metavar="FOLDER"
    ),
    budget: str = typer.Option("0.1", help="How many rows to select: a fraction of each class (0.1) or a total (500)."),
    epsilon: float | None = typer.Option(
        None, help="Select the smallest set whose gradient bound is at most this (instead of --budget)."
    ),
    entropy_ceiling: float | None = typer.Option(None, help="Keep only rows with entropy below this, in nats."),
    keep_fraction: float | None = typer.Option(
        None, help="Keep this fraction of the rows, those with the lowest entropy (instead of --entropy-ceiling)."
    ),
    keep_per_class: bool = typer.Option(
        False, "--keep-per-class", "--per-class", help="Apply --keep-fraction within each class."
    ),
    require_label: bool = typer.Option(
        False, "--require-label", help="Reject rows that the classifier gives another label."
    ),
    method: str = typer.Option("auto", help="Selection method: auto, exact, fast, stochastic or random."),
    refine: bool = typer.Option(False, "--refine", help="Improve the selection by swapping rows until no swap helps."),
    curvature: str = typer.Option("none", help="Precondition gradients as AdaCore does: none, softmax or hutchinson."),
    label: str | None = typer.Option(None, help="Name of the label column or array in DATA."),
    embeddings: str | None = typer.Option(
        None, help="Select by embeddings: the name of a column or array in DATA, or a .npy file. Needs no labels."
    ),
    metric: str = typer.Option("euclidean", help="Distance between embeddings: euclidean or cosine."),
    memory_limit: str | None = typer.Option(
        None,
        help="Memory to use beyond the input, such as 500MB; slower or approximate methods are used to keep to it.",
    ),
    threads: options.Threads = None,
    jobs: int | None = typer.Option(None, min=1, hidden=True, help="The former name of --threads."),
    seed: int = typer.Option(0, help="Random seed."),
    cluster: options.Cluster = None,
    workers: options.Workers = None,
    part_rows: int = typer.Option(
        100_000, help="With --cluster: classes with more rows are split into parts of about this size."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Estimate memory and time, write nothing."),
    as_json: bool = typer.Option(False, "--json", help="Print the summary as JSON."),
    force: bool = typer.Option(False, "--force", help="Replace an earlier selection in the folder."),
    quiet: bool = typer.Option(False, "--quiet", help="Show no progress."),
    debug: bool = typer.Option(False, "--debug", help="Show the full traceback of an error."),
) -> None:
    """Select a small weighted set of rows whose gradients represent all rows, after an optional entropy filter."""
    from synthsieve.api.select import estimate_file, select_file
    from synthsieve.io.progress import for_stream
    from synthsieve.selection.options import SelectionOptions

    given = {
        "budget": _fraction_or_count(budget), "epsilon": epsilon, "entropy_ceiling": entropy_ceiling,
        "keep_fraction": keep_fraction, "keep_per_class": keep_per_class, "require_label": require_label,
        "method": method, "refine": refine, "metric": metric, "curvature": curvature, "memory_limit": memory_limit,
        "n_jobs": threads if threads is not None else jobs, "seed": seed, "part_rows": part_rows,
    }  # fmt: skip
    chosen = SelectionOptions(**given)  # type: ignore[arg-type]
    if dry_run:
        if cluster is not None:
            raise SelectionError(
                "expected no --dry-run with --cluster, got both: leave one out", code="cluster-options"
            )
        cost = estimate_file(data, chosen, label=label, embeddings=embeddings)
        echo(json.dumps(cost, indent=2) if as_json else _describe_cost(cost))
        return
    progress = for_stream("select", quiet=quiet)
    where = {"label": label, "embeddings": embeddings, "cluster": cluster, "workers": workers}
    selection = select_file(data, out, chosen, force=force, progress=progress, **where)  # type: ignore[arg-type]
    files = [str(path) for path in selection.files]
    if as_json:
        echo(json.dumps({**selection.as_dict(), "files": files}, indent=2))
    else:
        echo(f"{selection.summary()}\nwrote {', '.join(files)}")


def _fraction_or_count(text: str) -> float | int:
    """`500` is a count, `0.1` a fraction."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise SelectionError(f"expected --budget as a fraction or a count, got {text!r}: try 0.1 or 500", code="budget")


def _describe_cost(cost: dict[str, Any]) -> str:
    lines = [
        f"{cost['rows']:,} rows in {cost['classes']} classes, {cost['selected']:,} to select by {cost['method']}: "
        f"about {cost['memory_bytes'] / 1e6:,.0f} MB beyond the input and {cost['seconds']:.0f} s on "
        f"{cost['cores']} {'core' if cost['cores'] == 1 else 'cores'}; nothing written"
    ]
    return "\n".join([*lines, *(f"note: {note}" for note in cost["notes"][:8])])
