"""`synthsieve select`: a selection from a file to a folder."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from synthsieve.cli import options
from synthsieve.errors import SelectionError
from synthsieve.io.devices import NAMES
from synthsieve.selection.options import SelectionOptions

DATA = (
    "A .npz, .parquet, .csv, .tsv or .jsonl file, or a folder of .parquet files, with labels and logits, "
    "probabilities, gradients or features; or a .npy file of embeddings."
)
EMBEDDINGS = "Select by embeddings: the name of a column or array in DATA, or a .npy file. Needs no labels."
OUT_HELP = "Folder to write to, or a .parquet, .jsonl or .csv file for the selected rows alone, with all their columns."
OUT = Option(..., "-o", "--out", help=OUT_HELP, parser=options.given_path, metavar="OUT")
TEXT = "Column of text. Without --embeddings, rows are compared by the words of their texts (TF-IDF)."
QUALITY = "Column or array of numbers, or a .npy file, higher is better; for --quality-floor and --quality-factor."
REFERENCE = (
    "Real rows, a .npy file of embeddings or a table with the same columns: copies of them are rejected, and the "
    "selection covers them."
)


def fraction_or_count(text: str) -> float | int:
    """`500` is a count, `0.1` a fraction."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise SelectionError(f"expected --budget as a fraction or a count, got {text!r}: try 0.1 or 500", code="budget")


def _number(text: str) -> Any:
    return Annotated[float | None, Option(help=text)]


def _text(text: str) -> Any:
    return Annotated[str, Option(help=text)]


BUDGET = "How many rows to select: a fraction of each class (0.1) or a total (500)."
MEMORY = "Memory to use beyond the input, such as 500MB; slower or approximate methods are used to keep to it."
DEVICE = "Where matrix products are computed, from 48 dimensions on; auto is the CPU. The result is the same."
# The fields of `SelectionOptions`; n_jobs is --threads.
FIELDS: dict[str, Any] = {
    "budget": Annotated[float, Option(help=BUDGET, parser=fraction_or_count, metavar="TEXT")],
    "epsilon": _number("Select the smallest set whose gradient bound is at most this (instead of --budget)."),
    "entropy_ceiling": _number("Keep only rows with entropy below this, in nats."),
    "keep_fraction": _number(
        "Keep this fraction of the rows, those with the lowest entropy (instead of --entropy-ceiling)."
    ),
    "keep_per_class": Annotated[
        bool, Option("--keep-per-class", "--per-class", help="Apply --keep-fraction within each class.")
    ],
    "require_label": Annotated[
        bool | None,
        Option(
            help="Reject rows that the classifier gives another label (default: with embeddings, if it is confident)."
        ),
    ],
    "method": _text("Selection method: auto, exact, fast, stochastic or random."),
    "refine": Annotated[bool, Option("--refine", help="Improve the selection by swapping rows until no swap helps.")],
    "metric": _text("Distance between embeddings: euclidean or cosine."),
    "leak_distance": _number(
        "Reject rows at most this far from a row of --reference (default: only those that differ by rounding)."
    ),
    "reference_role": _text(
        "What --reference counts for: cover (its regions get rows), fill (its gaps do) or check (copies only)."
    ),
    "reference_weight": Annotated[
        float,
        Option(help="With --reference-role cover: the weight of the reference relative to that of all rows."),
    ],
    "quality_floor": _number("Reject rows of a lower quality."),
    "quality_factor": Annotated[
        bool, Option("--quality-factor", help="Prefer rows of high quality: multiply their gains by it.")
    ],
    "outlier_fraction": Annotated[
        float, Option(help="Reject this share of each class: the rows furthest from their 10 nearest rows.")
    ],
    "max_weight": _number("Cap weights at this many times the mean weight of the class; others share the excess."),
    "curvature": _text("Precondition gradients as AdaCore does: none, softmax or hutchinson."),
    "memory_limit": Annotated[str | None, Option(help=MEMORY)],
    "device": Annotated[str, Option(help=DEVICE, metavar=NAMES)],
    "seed": Annotated[int, Option(help="Random seed.")],
    "part_rows": Annotated[
        int, Option(help="With --cluster: classes with more rows are split into parts of about this size.")
    ],
}


@partial(options.verb, data=FIELDS, defaults=asdict(SelectionOptions()) | {"budget": "0.1"})
def select(
    console: options.Console,
    data_file: Path = Argument(help=DATA, metavar="DATA"),
    out: Path = OUT,
    label: str | None = Option(None, help="Name of the label column or array in DATA."),
    embeddings: str | None = Option(None, help=EMBEDDINGS),
    text: str | None = Option(None, help=TEXT),
    quality: str | None = Option(None, help=QUALITY),
    reference: Path | None = Option(None, help=REFERENCE),
    threads: options.Threads = None,
    jobs: int | None = Option(None, min=1, hidden=True, help="The former name of --threads."),
    cluster: options.Cluster = None,
    workers: options.Workers = None,
    dry_run: bool = Option(False, "--dry-run", help="Estimate memory and time, write nothing."),
    force: bool = Option(False, "--force", help="Replace an earlier selection in the folder."),
    **data: Any,
) -> None:
    """Select a small weighted set of rows whose gradients represent all rows, after an optional entropy filter."""
    from synthsieve.api.select import describe_cost, estimate_file, select_file

    chosen = SelectionOptions(**data, n_jobs=jobs if threads is None else threads)
    given: dict[str, Any] = {"label": label, "embeddings": embeddings, "text": text, "quality": quality}
    given["reference"] = reference
    if dry_run and cluster is not None:
        raise SelectionError("expected no --dry-run with --cluster, got both: leave one out", code="cluster-options")
    if dry_run:
        cost = estimate_file(data_file, chosen, **given)
        return console.finish(cost, describe_cost(cost))
    given |= {"cluster": cluster, "workers": workers, "force": force}
    selection = select_file(data_file, out, chosen, **given, progress=console.progress("select"))
    files = [str(path) for path in selection.files]
    console.finish({**selection.as_dict(), "files": files}, [selection.summary(), f"wrote {', '.join(files)}"])
