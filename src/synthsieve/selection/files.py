"""Files of a selection: `.npz` and tables in; `selection.parquet`, the selected rows and `summary.json` out."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.io.files import atomic_write_all, write_json
from synthsieve.io.npz import ArchiveError, read_arrays
from synthsieve.selection import validation
from synthsieve.selection.options import Method, SelectionOptions
from synthsieve.selection.result import Selection
from synthsieve.selection.tables import (
    FEATURES,
    OUTPUTS,
    PARQUET_SUFFIXES,
    TEXT_SUFFIXES,
    Shards,
    is_array_file,
    known_name,
    label_name,
    open_shards,
    open_text,
    read_labels,
    read_matrix,
)

_FEATURES = (*FEATURES, "x", "X", "data")
_STARTS = {".npz": b"PK\x03\x04", ".npy": b"\x93NUM", **dict.fromkeys(PARQUET_SUFFIXES, b"PAR1")}
# Written with each selected row: how many rows it represents, and the same scaled to mean 1.
WEIGHTS = ("weight", "loss_weight")
# For estimates: checking, entropy and gradient of one number of a row; one class; one pick.
_SECONDS_A_NUMBER = 5e-8
_SECONDS_A_CLASS = 2e-3
_SECONDS_A_PICK = 1e-5


@dataclass(frozen=True)
class Table:
    """The content of a file for a selection: labels (n,), outputs each (n, d), features (n, f) if there are no outputs.

    `classes` are the labels of the columns, where an .npz has them; `arrays` everything in an .npz; `shards` the
    content of a Parquet file or folder, or of a text table.
    """

    path: Path
    num_rows: int
    labels: Any  # None only with embeddings
    outputs: dict[str, np.ndarray | validation.NamedMatrix]
    features: np.ndarray | None = None
    classes: tuple[Any, ...] | None = None
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    shards: Shards | None = None
    embeddings: np.ndarray | None = None


def read_table(path: Path, *, label: str | None = None, embeddings: str | None = None) -> Table:
    """Read labels and outputs of a file, or of a folder of Parquet files.

    `embeddings` names a column or array of embeddings, or a .npy file with one row for each row of the data. A .npy
    file as data holds embeddings and nothing else.
    """
    check_readable(path)
    suffix = path.suffix.lower() if path.is_file() else ""
    if suffix == ".npy":
        array = read_array(path)
        return Table(path, len(array), None, {}, arrays={"embeddings": array}, embeddings=array)
    table = _read_npz(path, label, embeddings) if suffix == ".npz" else _read_shards(path, suffix, label, embeddings)
    if embeddings is not None and is_array_file(embeddings):
        check_readable(Path(embeddings))
        array = read_array(Path(embeddings))
        validation.same_length(table.num_rows, embeddings=array)
        return replace(table, embeddings=array)
    return table


def read_array(path: Path) -> np.ndarray:
    """The array of a .npy file, memory-mapped; objects are refused, because they need pickle."""
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise SelectionError(
            f"expected a complete .npy file of numbers, got {path.name} ({str(error).splitlines()[0]}): write it again",
            code="damaged-file",
        ) from None
    if array.ndim != 2:
        raise SelectionError(
            f"expected embeddings of shape (n, d) in {path.name}, got shape {array.shape}: store one row an example",
            code="shape",
        )
    return array


def _read_shards(path: Path, suffix: str, label: str | None, embeddings: str | None) -> Table:
    opened = open_text if suffix in TEXT_SUFFIXES else open_shards
    shards = opened(path, label=label, embeddings=embeddings)
    outputs: dict[str, np.ndarray | validation.NamedMatrix] = {}
    for kind, columns in shards.outputs.items():
        matrix = read_matrix(shards.batches(columns), columns, shards.num_rows)
        outputs[kind] = validation.NamedMatrix(matrix, shards.names[kind]) if kind in shards.names else matrix
    points = None
    if shards.features:
        points = read_matrix(shards.batches(shards.features), shards.features, shards.num_rows)
    labels = read_labels(shards.batches([shards.label]), shards.label) if shards.label else None
    table = Table(shards.path, shards.num_rows, labels, outputs, shards=shards)
    return replace(table, features=points) if embeddings is None else replace(table, embeddings=points)


def check_readable(path: Path) -> None:
    """Raise if the file is missing, or its content does not match its suffix."""
    if path.is_dir():
        return
    if not path.is_file():
        raise SelectionError(
            f"expected a file or a folder of Parquet files, got {path}, which does not exist: check it",
            code="missing-file",
        )
    suffix = path.suffix.lower()
    if suffix not in (*_STARTS, *TEXT_SUFFIXES):
        raise SelectionError(
            f"expected a name ending in .npz, .npy, .parquet, .csv, .tsv or .jsonl, got {path.name}: convert it",
            code="file-type",
        )
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise SelectionError(
            f"expected a readable file, got {path} ({error.strerror}): check its permissions", code="unreadable"
        ) from None
    if start != _STARTS.get(suffix, start):
        raise SelectionError(
            f"expected {path.name} to be a {suffix} file, got other content: check its name", code="file-type"
        )


def _read_npz(path: Path, label: str | None, embeddings: str | None) -> Table:
    try:
        arrays = read_arrays(path, mapped=True)
    except (ArchiveError, OSError) as error:
        raise SelectionError(
            f"expected a complete .npz of plain arrays, got {path.name} ({error}): write it again", code="damaged-file"
        ) from None
    name = label_name(list(arrays), label, path, optional=embeddings is not None)
    labels = arrays[name] if name else None
    features = next((arrays[key] for key in _FEATURES if key in arrays), None)
    outputs: dict[str, Any] = {key: arrays[key] for key in OUTPUTS if key in arrays}
    if embeddings is not None:
        chosen = None if is_array_file(embeddings) else arrays[known_name(embeddings, list(arrays), path)]
        rows = labels if labels is not None else chosen if chosen is not None else next(iter(arrays.values()))
        classes = tuple(arrays["classes"].ravel().tolist()) if "classes" in arrays else None
        return Table(path, len(rows), labels, outputs, None, classes, arrays, embeddings=chosen)
    assert labels is not None
    if not outputs and features is None:
        raise SelectionError(
            f"expected logits, probabilities, gradients or features in {path.name}, got {', '.join(arrays)}: add one",
            code="no-input",
        )
    wrong = [key for key, array in outputs.items() if array.ndim != 2]
    if labels.ndim != 1 or wrong or (features is not None and features.ndim == 0):
        odd = name if labels.ndim != 1 else wrong[0] if wrong else "features"
        raise SelectionError(
            f"expected labels of shape (n,) and others of shape (n, d) in {path.name}, got another shape for {odd}: "
            "store one row an example",
            code="shape",
        )
    if features is not None:
        features = features.reshape(len(features), math.prod(features.shape[1:]))
    classes = tuple(arrays["classes"].ravel().tolist()) if "classes" in arrays else None
    return Table(path, len(labels), labels, outputs, None if outputs else features, classes, arrays)


def write_selection(directory: Path, table: Table, selection: Selection) -> list[Path]:
    """Write `selection.parquet`, the selected rows and `summary.json`, all or none."""
    created = not directory.exists()
    selected = directory / f"selected{'.npz' if table.arrays else '.parquet'}"
    paths = directory / "selection.parquet", selected, directory / "summary.json"  # the last marks completion
    try:
        with atomic_write_all(*paths) as (whole, rows, summary):
            selection.to_parquet(whole)
            if table.shards is None:
                _write_selected_npz(rows, table, selection)
            else:
                write_selected(rows, table.shards.schema, table.shards.batches(), selection.rows())
            write_json(summary, selection.as_dict())
    except BaseException as error:
        if created and directory.exists() and not any(directory.iterdir()):
            directory.rmdir()
        if isinstance(error, OSError):
            raise cannot_write(directory, error) from error
        raise
    return list(paths)


def cannot_write(directory: Path, error: OSError) -> SelectionError:
    return SelectionError(
        f"expected to write into {directory}, got {error.strerror or error}: check its name, rights and free space",
        code="cannot-write",
    )


def _write_selected_npz(path: Path, table: Table, selection: Selection) -> None:
    rows = np.sort(selection.indices)
    chosen = {
        name: array[rows] if array.ndim and len(array) == table.num_rows and name != "classes" else array
        for name, array in table.arrays.items()
    }
    columns = selection.rows()
    added = {name: columns[name][rows] for name in ("row", *WEIGHTS)}
    chosen |= {free_name(name, list(table.arrays)): array for name, array in added.items()}
    with path.open("wb") as file:
        np.savez(file, **chosen)  # type: ignore[arg-type]


def write_selected(path: Path, schema: Any, batches: Iterable[Any], rows: dict[str, np.ndarray]) -> None:
    """Write the selected rows with their weights batch by batch; `rows` are the columns of `Selection.rows`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in WEIGHTS:
        schema = schema.append(pa.field(free_name(name, schema.names), pa.float64()))
    schema, start = schema.remove_metadata(), 0
    # An open file rather than a name, which pyarrow could take for a URI.
    with path.open("wb") as file, pq.ParquetWriter(file, schema) as writer:
        for batch in batches:
            part = slice(start, start + len(batch))
            start += len(batch)
            selected, table = rows["selected"][part], pa.Table.from_batches([batch])
            if not selected.any():
                continue
            try:
                kept = table.filter(pa.array(selected))
            except pa.ArrowNotImplementedError:  # text views, which Arrow cannot filter
                picked = [table.slice(row, 1) for row in np.flatnonzero(selected).tolist()]
                kept = pa.concat_tables(picked).combine_chunks()
            for name, column in zip(WEIGHTS, schema.names[-len(WEIGHTS) :], strict=True):
                kept = kept.append_column(column, pa.array(rows[name][part][selected]))
            writer.write_table(kept.cast(schema))


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with `coreset_` before it until it is not taken."""
    while name in taken:
        name = f"coreset_{name}"
    return name


def estimate_cost(table: Table, options: SelectionOptions) -> dict[str, Any]:
    """Rough cost of a selection: memory beyond the input and the program, time as on two cores of 2021."""
    from synthsieve.selection.budget import class_targets
    from synthsieve.selection.kernels.dense import CELL, MIN_DIMS
    from synthsieve.selection.kernels.memory import estimate_filter, make_plan
    from synthsieve.selection.kernels.workers import available_cores

    if options.epsilon is not None:
        raise SelectionError(
            "expected a budget to estimate the cost, got epsilon: how many rows it needs is only known afterwards",
            code="epsilon",
        )
    if table.num_rows == 0:
        raise SelectionError(
            f"expected at least one row in {table.path.name}, got none: check that it is not empty", code="no-rows"
        )
    cores = options.n_jobs or available_cores()
    known = validation.any_labels(np.zeros(table.num_rows, np.int8) if table.labels is None else table.labels)
    sizes = np.bincount(known.indices)
    widths = {kind: validation.as_array(output).shape[1] for kind, output in table.outputs.items()}
    if table.embeddings is not None:
        widths["gradients"] = table.embeddings.shape[1]
    columns = widths.get("gradients", max(widths.values(), default=len(sizes)))
    counts = np.minimum(sizes, [target.count for target in class_targets(options, sizes, sizes.astype(np.float64))])
    reserved = estimate_filter(table.num_rows)
    if not table.outputs:
        reserved += 8 * table.num_rows * columns  # the probabilities of the classifier to be trained
    dense = columns >= MIN_DIMS and ("gradients" in widths or not table.outputs)
    plan = make_plan(
        sizes.tolist(),
        counts.tolist(),
        columns,
        options,
        reserved_bytes=reserved,
        bytes_a_row=0 if "gradients" in widths else 8 * columns,
        called=[str(name) for name in known.names],
        dense=dense,
    )
    seconds = _SECONDS_A_NUMBER * table.num_rows * max(widths.values(), default=columns)
    for size, count, method in zip(sizes.tolist(), counts.tolist(), plan.methods, strict=True):
        pace = 3.5e-9 * size**2 if method is Method.EXACT else 1.2e-6 * size**1.38
        if dense and not options.refine and method in (Method.EXACT, Method.FAST):
            pace = 6e-10 * size * (size if method is Method.EXACT else min(size, 1.3 * CELL))
        seconds += (pace * columns / 10 * (3.0 if options.refine else 1.0) + _SECONDS_A_CLASS) * 2 / cores
        seconds += _SECONDS_A_PICK * count
    return {
        "rows": table.num_rows,
        "classes": len(sizes),
        "selected": int(counts.sum()),
        "method": str(options.method),
        "memory_bytes": plan.memory_bytes,
        "seconds": round(seconds, 1),
        "cores": cores,
        "notes": list(plan.notes),
    }
