"""Files for the sieve: `.npz` and tables in; `selection.parquet` and the selected rows out; features held once."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.archive import check_expansion, checked_text, read_header
from synthsieve.errors import SelectionError
from synthsieve.files import write_json, written_together
from synthsieve.selection import door
from synthsieve.shards import (
    ANSWERS,
    ENDINGS,
    FEATURES,
    TEXT_ENDINGS,
    Shards,
    label_name,
    open_shards,
    open_text,
    read_labels,
    read_matrix,
)
from synthsieve.sieve import Selection

_FEATURES = (*FEATURES, "x", "X", "data")
# What is written beside each selected row: the rows it stands for, and the same scaled to mean 1.
WEIGHTS = ("weight", "loss_weight")
# For forecasts: checking, entropy and gradient of one number of a row; one class; one pick.
_SECONDS_A_NUMBER = 5e-8
_SECONDS_A_CLASS = 2e-3
_SECONDS_A_PICK = 1e-5


@dataclass(frozen=True)
class Table:
    """What a file holds for the sieve.

    Attributes:
        path: the file.
        num_rows: how many rows.
        labels: (n,), of any type.
        answers: what the file gives of "logits", "probabilities" and "gradients", each (n, d).
        features: (n, f), read only when nothing else is there to judge by.
        classes: the label of each column, where an .npz says so.
        arrays: all of an .npz; shards: what a Parquet file or folder, or a table in text, holds.
    """

    path: Path
    num_rows: int
    labels: Any
    answers: dict[str, np.ndarray | door.NamedMatrix]
    features: np.ndarray | None = None
    classes: tuple[Any, ...] | None = None
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    shards: Shards | None = None


def read_table(path: Path, *, label: str | None = None) -> Table:
    """Read the labels and what to judge by; the ending says what the file should be, its first bytes whether it is.

    A folder is read as the Parquet files in it.
    """
    check_readable(path)
    kind = path.suffix.lower() if path.is_file() else ""
    if kind == ".npz":
        return _read_npz(path, label)
    return _from_shards(open_text(path, label=label) if kind in TEXT_ENDINGS else open_shards(path, label=label))


def check_readable(path: Path) -> None:
    """Refuse what is not there, or is not what its ending says."""
    if path.is_dir():
        return
    if not path.is_file():
        raise SelectionError(
            f"expected a file or a folder of Parquet files, got {path}, which does not exist: check it"
        )
    kind = path.suffix.lower()
    if kind not in (".npz", *ENDINGS, *TEXT_ENDINGS):
        raise SelectionError(
            f"expected a name ending in .npz, .parquet, .csv, .tsv or .jsonl, got {path.name}: convert it"
        )
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise SelectionError(
            f"expected a readable file, got {path} ({error.strerror}): check its permissions"
        ) from None
    if kind not in TEXT_ENDINGS and start != (b"PK\x03\x04" if kind == ".npz" else b"PAR1"):
        raise SelectionError(f"expected {path.name} to be what its ending says, got other bytes: check its name")


def write_selection(directory: Path, table: Table, selection: Selection) -> list[Path]:
    """Write `selection.parquet`, the selected rows and `summary.json`, all or none."""
    try:
        return _written(directory, table, selection)
    except OSError as error:
        raise SelectionError(
            f"expected to write into {directory}, got {error.strerror or error}: check its name, rights and room"
        ) from error


def _written(directory: Path, table: Table, selection: Selection) -> list[Path]:
    created = not directory.exists()
    selected = directory / f"selected{'.npz' if table.arrays else '.parquet'}"
    paths = directory / "selection.parquet", selected, directory / "summary.json"  # the last says that all are there
    try:
        with written_together(*paths) as (whole, rows, summary):
            selection.to_parquet(whole)
            if table.arrays:
                _write_selected_npz(rows, table, selection)
            else:
                assert table.shards is not None
                _write_selected_parquet(rows, table.shards, selection)
            write_json(summary, selection.as_dict())
    except BaseException:
        if created and directory.exists() and not any(directory.iterdir()):
            directory.rmdir()
        raise
    return list(paths)


def foretell(
    table: Table,
    budget: float | int,
    method: str,
    refine: bool,
    memory_limit: int | float | str | None = None,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """Rough needs of a selection: memory beyond the input and the program, time as on two cores of 2021."""
    from synthsieve.selection.memory import bytes_in, estimate_filter, make_plan
    from synthsieve.selection.methods import Method
    from synthsieve.selection.targets import targets_of
    from synthsieve.selection.workers import available_cores

    amount, chosen = door.budget_of(budget, None), door.one_of(Method, method, "method")
    cores = n_jobs or available_cores()
    if table.num_rows == 0:
        raise SelectionError(f"expected at least one row in {table.path.name}, got none: check that it is not empty")
    told = door.any_labels(table.labels)
    sizes = np.bincount(told.indices)
    widths = {kind: _width(answer) for kind, answer in table.answers.items()}
    columns = widths.get("gradients", max(widths.values(), default=len(sizes)))
    counts = np.minimum(sizes, [target.count for target in targets_of(amount, sizes, sizes.astype(np.float64))])
    rows = estimate_filter(table.num_rows)
    if not table.answers:
        rows += 8 * table.num_rows * columns  # the probabilities of the classifier to be trained
    plan = make_plan(
        sizes.tolist(),
        counts.tolist(),
        columns,
        method=chosen,
        refine=refine,
        memory_limit=bytes_in(memory_limit),
        threads=cores,
        reserved_bytes=rows,
        bytes_a_row=0 if "gradients" in table.answers else 8 * columns,
        called=[str(name) for name in told.names],
    )
    seconds = _SECONDS_A_NUMBER * table.num_rows * max(widths.values(), default=columns)
    for size, count, way in zip(sizes.tolist(), counts.tolist(), plan.methods, strict=True):
        pace = 3.5e-9 * size**2 if way is Method.EXACT else 1.2e-6 * size**1.38
        seconds += (pace * columns / 10 * (3.0 if refine else 1.0) + _SECONDS_A_CLASS) * 2 / cores
        seconds += _SECONDS_A_PICK * count
    return {
        "rows": table.num_rows,
        "classes": len(sizes),
        "selected": int(counts.sum()),
        "method": str(chosen),
        "memory_bytes": plan.memory_bytes,
        "seconds": round(seconds, 1),
        "cores": cores,
        "notes": list(plan.notes),
    }


def _width(answer: np.ndarray | door.NamedMatrix) -> int:
    return int((answer.values if isinstance(answer, door.NamedMatrix) else answer).shape[1])


def _read_npz(path: Path, label: str | None) -> Table:
    try:
        arrays = dict(_npz_arrays(path))
    except Exception as error:  # damaged, encrypted or oddly packed archives fail in a dozen ways
        raise SelectionError(
            f"expected a whole .npz of plain arrays, got {path.name} ({error}): write it again"
        ) from None
    name = label_name(list(arrays), label, path)
    labels = arrays[name]
    if labels.ndim != 1:
        raise SelectionError(f"expected {name} of shape (n,) in {path.name}, got shape {labels.shape}: one label a row")
    answers: dict[str, np.ndarray | door.NamedMatrix] = {key: arrays[key] for key in ANSWERS if key in arrays}
    for key in answers:
        answer = arrays[key]
        if answer.ndim != 2:
            raise SelectionError(
                f"expected {key} of shape (n, d) in {path.name}, got shape {answer.shape}: one row an example"
            )
    features = next((arrays[key] for key in _FEATURES if key in arrays), None)
    if not answers and features is None:
        raise SelectionError(
            f"expected logits, probabilities, gradients or features in {path.name}, got {', '.join(arrays)}: add one"
        )
    if features is not None:
        if features.ndim == 0:
            raise SelectionError(
                f"expected features of shape (n, ...) in {path.name}, got a single number: one row each"
            )
        features = features.reshape(len(features), math.prod(features.shape[1:]))
    classes = tuple(arrays["classes"].ravel().tolist()) if "classes" in arrays else None
    return Table(path, len(labels), labels, answers, None if answers else features, classes, arrays)


def _npz_arrays(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays of an .npz: mapped where the file stores them plainly, read where it packs them, never unpickled."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if entry.compress_type == zipfile.ZIP_STORED:
                file.seek(entry.header_offset + 26)
                name_length, extra_length = struct.unpack("<HH", file.read(4))
                yield name, _mapped(path, entry.header_offset + 30 + name_length + extra_length, entry.file_size)
            else:
                check_expansion(entry)
                with archive.open(entry) as member:
                    read_header(member, entry.file_size)  # before anything of the size it claims is allocated
                with archive.open(entry) as member:
                    yield name, checked_text(np.lib.format.read_array(member, allow_pickle=False))


def _mapped(path: Path, offset: int, size: int) -> np.ndarray:
    with path.open("rb") as file:
        file.seek(offset)
        shape, fortran, dtype = read_header(file, size)
        if math.prod(shape) == 0:
            return np.empty(shape, dtype)
        return checked_text(np.memmap(path, dtype, "r", file.tell(), shape, order="F" if fortran else "C"))


def _from_shards(shards: Shards) -> Table:
    answers: dict[str, np.ndarray | door.NamedMatrix] = {}
    for kind, columns in shards.answers.items():
        matrix = read_matrix(shards.batches(columns), columns, shards.num_rows)
        answers[kind] = door.NamedMatrix(matrix, shards.names[kind]) if kind in shards.names else matrix
    features = None
    if not answers:
        features = read_matrix(shards.batches(shards.features), shards.features, shards.num_rows)
    labels = read_labels(shards.batches([shards.label]), shards.label)
    return Table(shards.path, len(labels), labels, answers, features, shards=shards)


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


def _write_selected_parquet(path: Path, shards: Shards, selection: Selection) -> None:
    """The selected rows with their weights, batch by batch: the features are never all in memory."""
    import pyarrow.parquet as pq

    rows = selection.rows()
    schema = with_weights(shards.schema)
    start = 0
    with (
        path.open("wb") as out,
        pq.ParquetWriter(out, schema) as writer,
    ):  # by its name it could be taken for an address
        for batch in shards.batches():
            part = slice(start, start + len(batch))
            if rows["selected"][part].any():
                writer.write_table(weighted(batch, {name: column[part] for name, column in rows.items()}, schema))
            start += len(batch)


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, or `coreset_` before it as often as it takes to be a new one."""
    while name in taken:
        name = f"coreset_{name}"
    return name


def with_weights(schema: Any) -> Any:
    """A schema with the columns of weights at its end."""
    import pyarrow as pa

    for name in WEIGHTS:
        schema = schema.append(pa.field(free_name(name, schema.names), pa.float64()))
    return schema.remove_metadata()


def weighted(batch: Any, columns: dict[str, np.ndarray], schema: Any) -> Any:
    """The selected rows of a batch, of which `Selection.rows` says `columns`, with their weights in the last ones."""
    import pyarrow as pa

    selected, rows = columns["selected"], pa.Table.from_batches([batch])
    try:
        kept = rows.filter(pa.array(selected))
    except pa.ArrowNotImplementedError:  # views of text, which Arrow cannot pick from
        kept = pa.concat_tables([rows.slice(row, 1) for row in np.flatnonzero(selected).tolist()]).combine_chunks()
    for name, place in zip(WEIGHTS, range(-len(WEIGHTS), 0), strict=True):
        kept = kept.append_column(schema.names[place], pa.array(columns[name][selected]))
    return kept.cast(schema)
