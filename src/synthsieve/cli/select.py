"""`synthsieve select`: a selection from a file to a folder."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from typer import Argument, Option

from synthsieve.cli import options
from synthsieve.errors import SelectionError
from synthsieve.io.devices import AUTO, NAMES
from synthsieve.selection.options import SelectionOptions

DATA = (
    "A .npz, .parquet, .csv, .tsv or .jsonl file, or a folder of .parquet files, with labels and logits, "
    "probabilities, gradients or features; or a .npy file of embeddings."
)
EMBEDDINGS = "Select by embeddings: the name of a column or array in DATA, or a .npy file. Needs no labels."
OUT_HELP = "Folder to write to, or a .parquet or .jsonl file for the selected rows alone, with all their columns."
OUT = Option(..., "-o", "--out", help=OUT_HELP, parser=options.given_path, metavar="OUT")
TEXT = "Column of text. Without --embeddings, rows are compared by the words of their texts (TF-IDF)."
QUALITY = "Column or array of numbers, or a .npy file, higher is better; for --quality-floor and --quality-factor."
FACTOR = Option(False, "--quality-factor", help="Prefer rows of high quality: multiply their gains by it.")
REFERENCE = (
    "Real rows, a .npy file of embeddings or a table with the same columns: copies of them are rejected, and the "
    "selection covers them."
)
LEAK = "Reject rows at most this far from a row of --reference (default: only those that differ by rounding)."
ROLE = "What --reference counts for: cover (its regions get rows), fill (its gaps do) or check (copies only)."
REFERENCE_WEIGHT = "With --reference-role cover: the weight of the reference relative to that of all rows."
REQUIRE_LABEL = "Reject rows that the classifier gives another label (default: with embeddings, if it is confident)."
PER_CLASS = Option(False, "--keep-per-class", "--per-class", help="Apply --keep-fraction within each class.")
BUDGET = "How many rows to select: a fraction of each class (0.1) or a total (500)."
EPSILON = "Select the smallest set whose gradient bound is at most this (instead of --budget)."
KEEP_FRACTION = "Keep this fraction of the rows, those with the lowest entropy (instead of --entropy-ceiling)."
MEMORY = "Memory to use beyond the input, such as 500MB; slower or approximate methods are used to keep to it."
DEVICE = "Where matrix products are computed, from 48 dimensions on; auto is the CPU. The result is the same."
CURVATURE = "Precondition gradients as AdaCore does: none, softmax or hutchinson."
PART_ROWS = "With --cluster: classes with more rows are split into parts of about this size."


def fraction_or_count(text: str) -> float | int:
    """`500` is a count, `0.1` a fraction."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise SelectionError(f"expected --budget as a fraction or a count, got {text!r}: try 0.1 or 500", code="budget")


@options.verb
def select(
    console: options.Console,
    data_file: Path = Argument(help=DATA, metavar="DATA"),
    out: Path = OUT,
    budget: float = Option("0.1", help=BUDGET, parser=fraction_or_count, metavar="TEXT"),
    epsilon: float | None = Option(None, help=EPSILON),
    entropy_ceiling: float | None = Option(None, help="Keep only rows with entropy below this, in nats."),
    keep_fraction: float | None = Option(None, help=KEEP_FRACTION),
    keep_per_class: bool = PER_CLASS,
    require_label: bool | None = Option(None, help=REQUIRE_LABEL),
    method: str = Option("auto", help="Selection method: auto, exact, fast, stochastic or random."),
    refine: bool = Option(False, "--refine", help="Improve the selection by swapping rows until no swap helps."),
    curvature: str = Option("none", help=CURVATURE),
    label: str | None = Option(None, help="Name of the label column or array in DATA."),
    embeddings: str | None = Option(None, help=EMBEDDINGS),
    metric: str = Option("euclidean", help="Distance between embeddings: euclidean or cosine."),
    text: str | None = Option(None, help=TEXT),
    quality: str | None = Option(None, help=QUALITY),
    quality_floor: float | None = Option(None, help="Reject rows of a lower quality."),
    quality_factor: bool = FACTOR,
    reference: Path | None = Option(None, help=REFERENCE),
    leak_distance: float | None = Option(None, help=LEAK),
    reference_role: str = Option("cover", help=ROLE),
    reference_weight: float = Option(1.0, help=REFERENCE_WEIGHT),
    memory_limit: str | None = Option(None, help=MEMORY),
    threads: options.Threads = None,
    jobs: int | None = Option(None, min=1, hidden=True, help="The former name of --threads."),
    device: str = Option(AUTO, metavar=NAMES, help=DEVICE),
    seed: int = Option(0, help="Random seed."),
    cluster: options.Cluster = None,
    workers: options.Workers = None,
    part_rows: int = Option(100_000, help=PART_ROWS),
    dry_run: bool = Option(False, "--dry-run", help="Estimate memory and time, write nothing."),
    force: bool = Option(False, "--force", help="Replace an earlier selection in the folder."),
) -> None:
    """Select a small weighted set of rows whose gradients represent all rows, after an optional entropy filter."""
    given = options.api_arguments(locals())
    from synthsieve.api.select import describe_cost, estimate_file, select_file

    given["n_jobs"] = jobs if threads is None else threads
    chosen = SelectionOptions(**{field.name: given[field.name] for field in fields(SelectionOptions)})
    if dry_run and cluster is not None:
        raise SelectionError("expected no --dry-run with --cluster, got both: leave one out", code="cluster-options")
    if dry_run:
        cost = estimate_file(data_file, chosen, label=label, embeddings=embeddings, text=text, quality=quality)
        return console.finish(cost, describe_cost(cost))
    names = ("label", "embeddings", "text", "quality", "reference", "cluster", "workers", "force")
    others = {name: given[name] for name in names}
    selection = select_file(data_file, out, chosen, **others, progress=console.progress("select"))
    files = [str(path) for path in selection.files]
    console.finish({**selection.as_dict(), "files": files}, [selection.summary(), f"wrote {', '.join(files)}"])
