"""`synthsieve.select_file`: a selection from a file to a folder, in memory or on a cluster."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from synthsieve.errors import SelectionError
from synthsieve.io.files import has_partial
from synthsieve.io.locks import locked, locked_beside
from synthsieve.io.progress import NullProgress, Progress
from synthsieve.selection.entropy import PrecisionWarning
from synthsieve.selection.estimate import estimate_cost
from synthsieve.selection.files import (
    Table,
    check_readable,
    check_rows_fit,
    read_table,
    write_rows,
    write_selection,
)
from synthsieve.selection.options import Curvature, SelectionOptions
from synthsieve.selection.result import Selection
from synthsieve.selection.select import select
from synthsieve.selection.tables import JSON_SUFFIXES, PARQUET_SUFFIXES, is_array_file, open_shards
from synthsieve.selection.validation import product_device

WRITTEN = ("selection.parquet", "selected.npz", "selected.parquet", "summary.json", "selection", "selected")
# Names of --out that mean a file of the selected rows rather than a folder.
ROW_SUFFIXES = (*PARQUET_SUFFIXES, *JSON_SUFFIXES, ".csv")
_OTHER_SUFFIXES = (".tsv", ".json", ".npy", ".npz", ".arrow", ".feather")


def select_file(
    path: Path | str,
    out: Path | str,
    options: SelectionOptions | None = None,
    *,
    label: str | None = None,
    embeddings: str | None = None,
    text: str | None = None,
    quality: str | None = None,
    reference: Path | str | None = None,
    encoder: Any = None,
    cluster: str | None = None,
    workers: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
    **changes: Any,
) -> Selection:
    """Select rows of a file and write the selection, the selected rows and a summary into a folder, or rows alone.

    Args:
        path: a .npz, .parquet, .csv, .tsv or .jsonl file, or a folder of .parquet files, with labels and logits,
            probabilities, gradients or features; or a .npy file of embeddings.
        out: the folder to write to; or a .parquet, .jsonl or .csv file, for the selected rows alone with all their
            columns and weight, loss_weight, rank, entropy, assignment and reason.
        options, changes: a `SelectionOptions`, or its fields by name.
        label: the name of the label column or array.
        embeddings: select by these instead: the name of a column or array, or a .npy file with as many rows. Labels are
            optional then.
        text: a column of text; without embeddings, rows are selected by their texts (see `encoder`).
        quality: a column or array of numbers, or a .npy file; see the options `quality_floor` and `quality_factor`.
        reference: a file of real rows: a .npy of embeddings, or a table with the same columns as the data.
        encoder: of the texts, an object with `encode`; TF-IDF if None.
        cluster: select on Ray: "local", or HOST:PORT of a cluster; needs Parquet.
        workers: processes of a local cluster.
        force: replace an earlier selection in the folder.
        progress: is updated during the selection.
    """
    path, out, progress = Path(path), Path(out), progress or NullProgress()
    options = replace(options or SelectionOptions(), **changes)
    product_device(options.device)  # an error, before anything is read
    columns = {"label": label, "embeddings": embeddings, "text": text, "quality": quality}
    _check_out(out, path, force=force)
    if cluster is not None:
        others = {**columns, "label": None, "reference": reference, "rows": out.suffix.lower() in ROW_SUFFIXES or None}
        for name in (name for name, value in others.items() if value is not None):
            what = f"--out {out.name}" if name == "rows" else f"--{name}"
            message = f"expected no {what} with --cluster, got both: leave one of them out"
            raise SelectionError(message, code="cluster-options")
    rows_only = out.suffix.lower() in ROW_SUFFIXES and not out.is_dir()
    with locked_beside(out) if rows_only else locked(out):
        if cluster is not None:
            selection = _select_on_cluster(path, out, options, label, cluster, workers, progress)
        else:
            table = read_table(path, **columns)
            if rows_only and table.shards is None:
                message = f"expected a table to write {out.name}, got {path.name}: give a folder as --out"
                raise SelectionError(message, code="out")
            if rows_only:
                check_rows_fit(out, table)
            selection = _select_in_memory(table, options, _read_reference(reference, columns), encoder, progress)
            written = [write_rows(out, table, selection)] if rows_only else write_selection(out, table, selection)
            selection = replace(selection, files=tuple(written))
        if not rows_only:
            _remove_others(out, selection.files)
    return selection


def estimate_file(
    path: Path | str,
    options: SelectionOptions | None = None,
    *,
    label: str | None = None,
    embeddings: str | None = None,
    text: str | None = None,
    quality: str | None = None,
    reference: Path | str | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Rough memory and time that `select_file` would need."""
    columns = {"label": label, "embeddings": embeddings, "text": text, "quality": quality}
    table, real = read_table(Path(path), **columns), _read_reference(reference, columns)
    return estimate_cost(table, replace(options or SelectionOptions(), **changes), real)


def describe_cost(cost: dict[str, Any]) -> list[str]:
    """What `estimate_file` found, as the command line prints it."""
    line = (
        f"{cost['rows']:,} rows in {cost['classes']} classes, {cost['selected']:,} to select by {cost['method']}: "
        f"about {cost['memory_bytes'] / 1e6:,.0f} MB beyond the input and {cost['seconds']:.0f} s on "
        f"{cost['cores']} {'core' if cost['cores'] == 1 else 'cores'}; nothing written"
    )
    return [line, *(f"note: {note}" for note in cost["notes"][:8])]


def _read_reference(path: Path | str | None, columns: dict[str, str | None]) -> Table | None:
    """The real rows of a file: embeddings alone, or a table with the same columns as the data."""
    if path is None:
        return None
    if is_array_file(str(path)):
        return read_table(Path(path))
    if columns["embeddings"] is not None and is_array_file(columns["embeddings"]):
        message = (
            f"expected a .npy file of embeddings as --reference, like --embeddings, got {Path(path).name}: use one"
        )
        raise SelectionError(message, code="reference")
    return read_table(Path(path), **{**columns, "quality": None})


def _select_in_memory(
    table: Table, options: SelectionOptions, reference: Table | None, encoder: Any, progress: Progress
) -> Selection:
    outputs: dict[str, Any] = dict(table.outputs)
    notes: tuple[str, ...] = ()
    if "logits" in outputs and outputs.pop("probabilities", None) is not None:
        notes = ("logits and probabilities given: used the logits, which are more exact",)
    with closing(progress), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrecisionWarning)
        given = {**outputs, "classes": table.classes, "embeddings": table.embeddings, "quality": table.quality}
        given |= {"text": table.texts, "encoder": encoder}
        if reference is not None:
            given["reference"] = reference.texts if reference.embeddings is None else reference.embeddings
            given["reference_labels"] = reference.labels if table.labels is not None else None
        selection = select(table.features, table.labels, **given, options=options, progress=progress)
    return selection.with_notes(*notes, *(str(warning.message) for warning in caught))


def _select_on_cluster(
    path: Path,
    out: Path,
    options: SelectionOptions,
    label: str | None,
    cluster: str,
    workers: int | None,
    progress: Progress,
) -> Selection:
    from synthsieve.distributed.ray_engine import connected
    from synthsieve.distributed.selection.select import select_shards

    not_supported = {"curvature": options.curvature is not Curvature.NONE, "threads": options.n_jobs is not None}
    not_supported["device"] = str(options.device) not in ("auto", "cpu")
    not_supported |= {"quality-floor": options.quality_floor is not None, "quality-factor": options.quality_factor}
    not_supported["outlier-fraction"] = options.outlier_fraction > 0
    for name in (name for name, given in not_supported.items() if given):
        message = f"expected no --{name} with --cluster, got it: leave one of them out"
        raise SelectionError(message, code="cluster-options")
    check_readable(path)
    if path.is_file() and path.suffix.lower() not in PARQUET_SUFFIXES:
        message = f"expected Parquet with --cluster, got {path.name}: convert it, or leave --cluster out"
        raise SelectionError(message, code="file-type")
    shards = open_shards(path.resolve(), label=label)
    with connected(cluster, workers=workers) as engine:
        return select_shards(shards, out.resolve(), options, engine=engine, progress=progress)


def _remove_others(out: Path, written: Sequence[Path] = ()) -> None:
    """Remove the files of an earlier selection that this one did not replace."""
    for path in (out / name for name in WRITTEN):
        if path.name not in {one.name for one in written}:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def _check_out(out: Path, data: Path, *, force: bool) -> None:
    """Raise before any work if `out` cannot be a folder, holds the data, or would be overwritten without `force`."""
    rows_only = out.suffix.lower() in ROW_SUFFIXES
    if rows_only and out.resolve() == data.resolve():
        message = f"expected another file than {data.name} as --out, which would be overwritten: choose another"
        raise SelectionError(message, code="out-is-input")
    if rows_only and out.is_file() and not force:
        raise SelectionError(f"expected a new file, got {out}: choose another, or pass --force", code="out-exists")
    if rows_only and not out.is_dir():
        return
    if out.suffix.lower() in _OTHER_SUFFIXES and not out.is_dir():
        message = f"expected a folder or a .parquet, .jsonl or .csv file as --out, got {out.name}: use one of those"
        raise SelectionError(message, code="out")
    try:
        if out.exists() and not out.is_dir():
            raise SelectionError(f"expected a folder as --out, got the file {out}: choose another name", code="out")
        there = [name for name in WRITTEN if (out / name).exists()]
    except OSError as error:
        message = f"expected a folder as --out, got {out} ({error.strerror}): choose another"
        raise SelectionError(message, code="out") from None
    if any((out / name).resolve() == data.resolve() for name in there) or out.resolve() == data.resolve():
        message = f"expected another folder than that of {data.name} as --out, which would overwrite it: choose another"
        raise SelectionError(message, code="out-is-input")
    if "summary.json" not in there and has_partial(out / "summary.json"):
        _remove_others(out)  # left by a command that was killed before it wrote the summary
        there = []
    if there and not force:
        message = f"expected a folder without a selection, got {out} with {there[0]}: choose another, or pass --force"
        raise SelectionError(message, code="out-exists")
