"""Files of a selection: `.npz` and tables in; `selection.parquet`, the selected rows and `summary.json` out."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.io.files import atomic_write, atomic_write_all, write_json
from synthsieve.io.npz import ArchiveError, read_arrays
from synthsieve.selection import validation
from synthsieve.selection.result import Selection
from synthsieve.selection.rows import free_name
from synthsieve.selection.tables import (
    FEATURES,
    JSON_SUFFIXES,
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
    read_texts,
)

_FEATURES = (*FEATURES, "x", "X", "data")
_STARTS = {".npz": b"PK\x03\x04", ".npy": b"\x93NUM", **dict.fromkeys(PARQUET_SUFFIXES, b"PAR1")}


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
    quality: np.ndarray | None = None
    texts: list[str] | None = None


def read_table(
    path: Path,
    *,
    label: str | None = None,
    embeddings: str | None = None,
    quality: str | None = None,
    text: str | None = None,
) -> Table:
    """Read labels and outputs of a file, or of a folder of Parquet files.

    `embeddings` names a column or array of embeddings, or a .npy file with one row for each row of the data. A .npy
    file as data holds embeddings and nothing else. `quality` names a column or array of numbers, or a .npy file. `text`
    names a column of text; without `embeddings`, the texts are read.
    """
    check_readable(path)
    suffix = path.suffix.lower() if path.is_file() else ""
    if text is not None and suffix in (".npy", ".npz"):
        raise SelectionError(
            f"expected a table with the column {text}, got {path.name}: use .parquet, .jsonl or .csv", code="text"
        )
    if suffix == ".npy":
        array = read_array(path)
        table = Table(path, len(array), None, {}, arrays={"embeddings": array}, embeddings=array)
    elif suffix == ".npz":
        table = _read_npz(path, label, embeddings)
    else:
        table = _read_shards(path, suffix, label, embeddings, quality, text)
    if embeddings is not None and is_array_file(embeddings):
        check_readable(Path(embeddings))
        array = read_array(Path(embeddings))
        validation.same_length(table.num_rows, embeddings=array)
        table = replace(table, embeddings=array)
    if quality is not None and table.quality is None:
        if is_array_file(quality):
            check_readable(Path(quality))
            return replace(table, quality=read_array(Path(quality), num_axes=1))
        return replace(table, quality=table.arrays[known_name(quality, list(table.arrays), path)])
    return table


def read_array(path: Path, *, num_axes: int = 2) -> np.ndarray:
    """The array of a .npy file, memory-mapped; objects are refused, because they need pickle."""
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise SelectionError(
            f"expected a complete .npy file of numbers, got {path.name} ({str(error).splitlines()[0]}): write it again",
            code="damaged-file",
        ) from None
    if array.ndim != num_axes:
        wanted = "embeddings of shape (n, d)" if num_axes == 2 else "numbers of shape (n,)"
        raise SelectionError(
            f"expected {wanted} in {path.name}, got shape {array.shape}: store one row an example", code="shape"
        )
    return array


def _read_shards(
    path: Path, suffix: str, label: str | None, embeddings: str | None, quality: str | None, text: str | None
) -> Table:
    opened = open_text if suffix in TEXT_SUFFIXES else open_shards
    column = quality if quality is not None and not is_array_file(quality) else None
    # Texts stand in for a column of embeddings: labels are optional then, and there are no features.
    by_text = embeddings is None and text is not None
    others = [name for name in (column, None if by_text else text) if name is not None]
    shards = opened(path, label=label, embeddings=text if by_text else embeddings, others=others)
    outputs: dict[str, np.ndarray | validation.NamedMatrix] = {}
    for kind, columns in shards.outputs.items():
        matrix = read_matrix(shards.batches(columns), columns, shards.num_rows)
        outputs[kind] = validation.NamedMatrix(matrix, shards.names[kind]) if kind in shards.names else matrix
    points = None
    if shards.features and not by_text:
        points = read_matrix(shards.batches(shards.features), shards.features, shards.num_rows)
    labels = read_labels(shards.batches([shards.label]), shards.label) if shards.label else None
    table = Table(shards.path, shards.num_rows, labels, outputs, shards=shards)
    if column is not None:
        numbers = read_matrix(shards.batches([column]), (column,), shards.num_rows)
        if numbers.shape[1] != 1:
            raise SelectionError(f"expected one number a row in {column}, got lists: name another", code="shape")
        table = replace(table, quality=numbers[:, 0])
    if by_text and text is not None:
        return replace(table, texts=read_texts(shards.batches([text]), text))
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
                write_selected(rows, table.shards.schema, table.shards.batches(), selection.to_arrow())
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
    added = selection.to_arrow().drop_columns(["selected"]).take(rows)
    for name in added.column_names:
        column = added[name].to_numpy()
        chosen[free_name(name, list(table.arrays))] = column if column.dtype != object else column.astype(str)
    with path.open("wb") as file:
        np.savez(file, **chosen)  # type: ignore[arg-type]


def check_rows_fit(path: Path, table: Table) -> None:
    """Raise if a .csv is to hold the rows of a table with lists or structs."""
    import pyarrow as pa

    columns = table.shards.schema if table.shards is not None and path.suffix.lower() == ".csv" else ()
    odd = next((column for column in columns if pa.types.is_nested(column.type)), None)
    if odd is not None:
        raise SelectionError(
            f"expected single values in every column for .csv, got {odd.type} in {odd.name}: write .jsonl or .parquet",
            code="csv-lists",
        )


def write_rows(path: Path, table: Table, selection: Selection) -> Path:
    """Write the selected rows with all their columns and those of the selection, as Parquet, JSON lines or CSV."""
    assert table.shards is not None
    shards, outcome, suffix = table.shards, selection.to_arrow(), path.suffix.lower()
    try:
        with atomic_write(path) as partial:
            if suffix == ".csv":
                _write_csv(partial, shards, outcome)
            elif suffix in JSON_SUFFIXES:
                with partial.open("w", encoding="utf-8") as lines:
                    for part in _selected_rows(shards.schema, shards.batches(), outcome)[1]:
                        lines.writelines(json.dumps(row, default=str) + "\n" for row in part.to_pylist())
            else:
                write_selected(partial, shards.schema, shards.batches(), outcome)
    except OSError as error:
        raise cannot_write(path, error) from error
    return path


def write_selected(path: Path, schema: Any, batches: Iterable[Any], outcome: Any) -> None:
    """Write the selected rows as Parquet batch by batch, with their part of `outcome`, an `outcome_table`."""
    import pyarrow.parquet as pq

    schema, parts = _selected_rows(schema, batches, outcome)
    # An open file rather than a name, which pyarrow could take for a URI.
    with path.open("wb") as file, pq.ParquetWriter(file, schema) as writer:
        for part in parts:
            writer.write_table(part)


def _write_csv(path: Path, shards: Shards, outcome: Any) -> None:
    from pyarrow import csv

    schema, parts = _selected_rows(shards.schema, shards.batches(), outcome)
    with path.open("wb") as file, csv.CSVWriter(file, schema) as writer:
        for part in parts:
            writer.write_table(part)


def _selected_rows(schema: Any, batches: Iterable[Any], outcome: Any) -> tuple[Any, Iterator[Any]]:
    """The schema of the selected rows, and these rows, batch by batch, each with its part of an `outcome_table`."""
    import pyarrow as pa

    added, columns = outcome.drop_columns(["row", "selected"]), len(schema)
    for column in added.schema:
        kind = pa.string() if pa.types.is_dictionary(column.type) else column.type
        schema = schema.append(pa.field(free_name(column.name, schema.names), kind))
    schema, selected = schema.remove_metadata(), outcome["selected"].combine_chunks()

    def parts() -> Iterator[Any]:
        start = 0
        for batch in batches:
            mask, table = selected.slice(start, len(batch)), pa.Table.from_batches([batch])
            more = added.slice(start, len(batch)).filter(mask)
            start += len(batch)
            if not len(more):
                continue
            try:
                kept = table.filter(mask)
            except pa.ArrowNotImplementedError:  # text views, which Arrow cannot filter
                picked = [table.slice(row, 1) for row in np.flatnonzero(mask).tolist()]
                kept = pa.concat_tables(picked).combine_chunks()
            for name, values in zip(schema.names[columns:], more.columns, strict=True):
                kept = kept.append_column(name, values)
            yield kept.cast(schema)

    return schema, parts()
