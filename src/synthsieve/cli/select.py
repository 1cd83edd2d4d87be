"""`synthsieve select`: the sieve on a file."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from synthsieve.cli import options
from synthsieve.cli.printing import echo
from synthsieve.errors import SelectionError
from synthsieve.files import was_cut_short

if TYPE_CHECKING:
    from synthsieve.distributed.job import Sieving
    from synthsieve.sieve_files import Table
    from synthsieve.sieve_report import Told

WRITTEN = ("selection.parquet", "selected.npz", "selected.parquet", "summary.json", "selection", "selected")


def select(
    context: typer.Context,
    data: Path = typer.Argument(
        help="A .npz, .parquet, .csv, .tsv or .jsonl file, or a folder of .parquet files, with labels and logits, "
        "probabilities, gradients or features."
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
    per_class: bool = typer.Option(False, "--per-class", help="Apply --keep-fraction within each class."),
    require_label: bool = typer.Option(
        False, "--require-label", help="Reject rows that the classifier gives another label."
    ),
    method: str = typer.Option("auto", help="Selection method: auto, exact, fast, stochastic or random."),
    refine: bool = typer.Option(False, "--refine", help="Improve the selection by swapping rows until no swap helps."),
    curvature: str = typer.Option("none", help="Precondition gradients as AdaCore does: none, softmax or hutchinson."),
    label: str | None = typer.Option(None, help="Name of the label column or array in DATA."),
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
    """Select a small weighted set of rows whose gradients stand for all rows, after an optional entropy filter."""
    from synthsieve.entropy import PrecisionWarning
    from synthsieve.lock import locked
    from synthsieve.progress import for_stream
    from synthsieve.sieve import select as sieve
    from synthsieve.sieve_files import read_table, write_selection

    how_much, threads = _budget(budget), threads if threads is not None else jobs
    _check_out(out, data, force=force)
    if not dry_run:
        context.with_resource(locked(out))
    if cluster is not None:
        refused = {"--dry-run": dry_run, "--curvature": curvature != "none", "--threads": threads is not None}
        for name in (option for option, given in refused.items() if given):
            raise SelectionError(f"expected no {name} with --cluster, got it: leave one of them out")
        sieving = _sieving(
            entropy_ceiling=entropy_ceiling,
            keep_fraction=keep_fraction,
            keep_per_class=per_class,
            require_label=require_label,
            method=method,
            refine=refine,
            memory_limit=memory_limit,
            part_rows=part_rows,
            seed=seed,
        )
        told = _on_cluster(data, out, cluster, workers, how_much, epsilon, label, sieving, quiet=quiet)
        paths = [out / name for name in ("selection", "selected", "summary.json")]
        _remove_others(out, paths)
        _say(told, paths, as_json=as_json)
        return
    table = read_table(data, label=label)
    answers: dict[str, Any] = dict(table.answers)
    said: tuple[str, ...] = ()
    if "logits" in answers and answers.pop("probabilities", None) is not None:
        said = ("logits and probabilities given: took the logits, which are more exact",)
    if dry_run and epsilon is not None:
        raise SelectionError(
            "expected --budget with --dry-run, got --epsilon: how many rows it needs is known afterwards"
        )
    if dry_run:
        _foretell(table, how_much, method, refine, memory_limit, threads, as_json=as_json)
        return
    progress = for_stream("select", quiet=quiet)
    with closing(progress), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrecisionWarning)
        selection = sieve(
            table.features,
            table.labels,
            classes=table.classes,
            **answers,
            budget=how_much,
            epsilon=epsilon,
            entropy_ceiling=entropy_ceiling,
            keep_fraction=keep_fraction,
            keep_per_class=per_class,
            require_label=require_label,
            method=method,
            refine=refine,
            curvature=curvature,
            memory_limit=memory_limit,
            n_jobs=threads,
            seed=seed,
            progress=progress,
        )
    selection = selection.with_notes(*said, *(str(warning.message) for warning in caught))
    paths = write_selection(out, table, selection)
    _remove_others(out, paths)
    _say(selection, paths, as_json=as_json)


def _remove_others(out: Path, written: Sequence[Path] = ()) -> None:
    """Remove what an earlier selection left under names that this one does not write."""
    for path in (out / name for name in WRITTEN):
        if path not in written and path.is_dir():
            shutil.rmtree(path)
        elif path not in written:
            path.unlink(missing_ok=True)


def _say(told: Told, paths: list[Path], *, as_json: bool) -> None:
    if as_json:
        echo(json.dumps({**told.as_dict(), "files": [str(path) for path in paths]}, indent=2))
    else:
        echo(told.summary())
        echo("wrote " + ", ".join(str(path) for path in paths))


def _sieving(*, method: str, memory_limit: str | None, **asked: Any) -> Sieving:
    from synthsieve.distributed.job import Sieving
    from synthsieve.selection import door
    from synthsieve.selection.memory import bytes_in
    from synthsieve.selection.methods import Method

    return Sieving(method=door.one_of(Method, method, "method"), memory_limit=bytes_in(memory_limit), **asked)


def _on_cluster(
    data: Path,
    out: Path,
    address: str,
    workers: int | None,
    budget: float | int,
    epsilon: float | None,
    label: str | None,
    sieving: Sieving,
    *,
    quiet: bool,
) -> Told:
    from synthsieve.distributed.on_ray import connected
    from synthsieve.distributed.select import select_shards
    from synthsieve.progress import for_stream
    from synthsieve.selection import door
    from synthsieve.shards import ENDINGS, open_shards
    from synthsieve.sieve_files import check_readable

    check_readable(data)
    if data.is_file() and data.suffix.lower() not in ENDINGS:
        raise SelectionError(f"expected Parquet with --cluster, got {data.name}: convert it, or leave --cluster out")
    shards, target = open_shards(data.resolve(), label=label), door.budget_of(budget, epsilon)
    progress = for_stream("select", quiet=quiet)
    with connected(address, workers=workers) as engine:
        return select_shards(shards, out.resolve(), target, sieving=sieving, engine=engine, progress=progress)


def _check_out(out: Path, data: Path, *, force: bool) -> None:
    """Before any work: OUT can be a directory, and nothing in it is overwritten unasked, DATA never."""
    try:
        if out.exists() and not out.is_dir():
            raise SelectionError(f"expected a directory as --out, got the file {out}: choose another name")
        there = [name for name in WRITTEN if (out / name).exists()]
    except OSError as error:
        raise SelectionError(f"expected a directory as --out, got {out} ({error.strerror}): choose another") from None
    if any((out / name).resolve() == data.resolve() for name in there) or out.resolve() == data.resolve():
        raise SelectionError(f"expected --out to leave {data.name} alone, got its own directory: choose another")
    if "summary.json" not in there and was_cut_short(out / "summary.json"):
        _remove_others(out)  # what a command that was killed had in place before its summary
        there = []
    if there and not force:
        raise SelectionError(
            f"expected a directory without a selection, got {out} with {there[0]}: choose another, or pass --force"
        )


def _budget(text: str) -> float | int:
    """`500` is a count, `0.1` a fraction."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise SelectionError(f"expected --budget as a fraction or a count, got {text!r}: try 0.1 or 500")


def _foretell(
    table: Table,
    budget: float | int,
    method: str,
    refine: bool,
    memory_limit: str | None,
    threads: int | None,
    *,
    as_json: bool,
) -> None:
    from synthsieve.sieve_files import foretell

    told = foretell(table, budget, method, refine, memory_limit, threads)
    if as_json:
        echo(json.dumps(told, indent=2))
    else:
        echo(
            f"{told['rows']:,} rows in {told['classes']} classes, {told['selected']:,} to select by {told['method']}: "
            f"about {told['memory_bytes'] / 1e6:,.0f} MB beyond the input and {told['seconds']:.0f} s on "
            f"{told['cores']} {'core' if told['cores'] == 1 else 'cores'}; nothing written"
        )
        for note in told["notes"][:8]:
            echo(f"note: {note}")
