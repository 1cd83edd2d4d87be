"""Files for the sieve: `.npz` and Parquet in; `selection.parquet` and the selected rows out; features held once."""

from __future__ import annotations

import math
import re
import struct
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.archive import MOST_EXPANSION, check_expansion, checked_text, read_header
from synthsieve.errors import SelectionError
from synthsieve.files import write_json, written_atomically
from synthsieve.selection import door
from synthsieve.sieve import Selection

_LABELS = ("labels", "label", "y", "class", "target")
_ANSWERS = ("logits", "probabilities", "gradients")
_PREFIXES = {
    "logits": ("logit_", "logits_"),
    "probabilities": ("prob_", "probability_", "proba_"),
    "gradients": ("grad_",),
}
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_FEATURES = ("features", "x", "X", "data")
_ROOM = 1 << 30  # bytes that any table may take, however small its file


@dataclass(frozen=True)
class Table:
    """What a file holds for the sieve.

    Attributes:
        path: the file.
        num_rows: how many rows.
        labels: (n,), of any type.
        answers: what the file gives of "logits", "probabilities" and "gradients", each (n, d).
        features: (n, f), read only when nothing else is there to judge by.
        classes: the label of each column, where the file says so.
    """

    path: Path
    num_rows: int
    labels: Any
    answers: dict[str, np.ndarray]
    features: np.ndarray | None = None
    classes: tuple[Any, ...] | None = None
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


def read_table(path: Path, *, label: str | None = None) -> Table:
    """Read the labels and what to judge by; the ending says what the file should be, its first bytes whether it is."""
    if not path.is_file():
        what = "is a directory" if path.is_dir() else "does not exist"
        raise SelectionError(f"expected a file, got {path}, which {what}: check the name")
    kind = path.suffix.lower()
    if kind not in (".npz", ".parquet", ".pq"):
        raise SelectionError(f"expected a name ending in .npz or .parquet, got {path.name}: convert it to either")
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise SelectionError(
            f"expected a readable file, got {path} ({error.strerror}): check its permissions"
        ) from None
    if start != (b"PK\x03\x04" if kind == ".npz" else b"PAR1"):
        raise SelectionError(f"expected {path.name} to be what its ending says, got other bytes: check its name")
    return _read_npz(path, label) if kind == ".npz" else _read_parquet(path, label)


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
    try:
        with ExitStack() as stack:
            whole = stack.enter_context(written_atomically(directory / "selection.parquet"))
            rows = stack.enter_context(written_atomically(selected))
            summary = stack.enter_context(written_atomically(directory / "summary.json"))
            selection.to_parquet(whole)
            if table.arrays:
                _write_selected_npz(rows, table, selection)
            else:
                _write_selected_parquet(rows, table, selection)
            write_json(summary, selection.as_dict())
    except BaseException:
        if created and directory.exists() and not any(directory.iterdir()):
            directory.rmdir()
        raise
    return [directory / "selection.parquet", selected, directory / "summary.json"]


def foretell(table: Table, budget: float | int, method: str, refine: bool) -> dict[str, Any]:
    """Rough needs of a selection: memory from the layout, time from measurements on two cores of 2021."""
    from synthsieve.selection.memory import estimate_memory
    from synthsieve.selection.methods import Method
    from synthsieve.selection.workers import available_cores

    amount, chosen, cores = door.budget_of(budget, None), door.one_of(Method, method, "method"), available_cores()
    if table.num_rows == 0:
        raise SelectionError(f"expected at least one row in {table.path.name}, got none: check that it is not empty")
    names, sizes = np.unique(door.any_labels(table.labels).indices, return_counts=True)
    columns = max([answer.shape[1] for answer in table.answers.values()], default=len(names))
    counts = sizes * (amount.fraction or (amount.count or 0) / sizes.sum())
    memory, seconds = [], 0.0
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        way = chosen.for_size(size)
        memory.append(estimate_memory(size, columns, int(count), method=way, refine=refine))
        pace = 3.5e-9 * size**2 if way is Method.EXACT else 1.2e-6 * size**1.38
        seconds += pace * columns / 10 * (3.0 if refine else 1.0)
    return {
        "rows": table.num_rows,
        "classes": len(names),
        "selected": round(float(counts.sum())),
        "method": str(chosen),
        "memory_bytes": sum(sorted(memory)[-cores:]) + table.num_rows * columns * 16,
        "seconds": round(seconds * 2 / cores, 1),
        "cores": cores,
    }


def _read_npz(path: Path, label: str | None) -> Table:
    try:
        arrays = dict(_npz_arrays(path))
    except Exception as error:  # damaged, encrypted or oddly packed archives fail in a dozen ways
        raise SelectionError(
            f"expected a whole .npz of plain arrays, got {path.name} ({error}): write it again"
        ) from None
    name = _label_name(list(arrays), label, path)
    labels = arrays[name]
    if labels.ndim != 1:
        raise SelectionError(f"expected {name} of shape (n,) in {path.name}, got shape {labels.shape}: one label a row")
    answers = {key: arrays[key] for key in _ANSWERS if key in arrays}
    for key, answer in answers.items():
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


def _read_parquet(path: Path, label: str | None) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        _check_claim(path, file.metadata)
        names = file.schema_arrow.names
        name = _label_name(names, label, path)
        if names.count(name) > 1:
            raise SelectionError(f"expected one column {name} in {path.name}, got several: rename or drop the others")
        answers, classes = {}, None
        for kind in _ANSWERS:
            columns = [kind] if kind in names else [n for n in names if n.startswith(_PREFIXES[kind]) and n != name]
            if columns:
                answers[kind] = _columns(file, columns)
                if kind != "gradients" and columns != [kind]:
                    classes = tuple(column.split("_", 1)[1] for column in columns)
        features = None
        if not answers:
            numeric = [f.name for f in file.schema_arrow if f.name != name and _is_numeric(f.type)]
            if not numeric:
                raise SelectionError(f"expected number columns beside {name} in {path.name}, got none: add logits")
            features = _columns(file, numeric)
        labels = file.read([name]).column(name).combine_chunks()
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise SelectionError(f"expected a whole Parquet file, got {path.name} ({first}): write it again") from None
    if pa.types.is_dictionary(labels.type):
        labels = labels.dictionary_decode()
    if labels.null_count:
        raise SelectionError(
            f"expected a label in every row of {name}, got {labels.null_count} nulls: fill or drop them"
        )
    array = labels.to_numpy(zero_copy_only=False)
    if classes is not None and np.issubdtype(array.dtype, np.integer):
        classes = tuple(int(c) for c in classes) if all(_WHOLE.fullmatch(c) for c in classes) else None
    return Table(path, len(array), array, answers, features, classes)


def _check_claim(path: Path, claim: Any) -> None:
    """Refuse a file that claims more cells than one of its size should hold, before room is made for them."""
    size = path.stat().st_size
    if claim.num_rows * max(1, claim.num_columns) * 8 > max(_ROOM, MOST_EXPANSION * size):
        raise SelectionError(
            f"expected a whole Parquet file, got {path.name}, which claims {claim.num_rows:,} rows of "
            f"{claim.num_columns:,} columns in {size:,} bytes: write it again"
        )


def _is_numeric(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _columns(file: Any, columns: list[str]) -> np.ndarray:
    """Columns side by side, (n, d), filled batch by batch; one list column counts as d."""
    num_rows, filled, matrix = file.metadata.num_rows, 0, None
    for batch in file.iter_batches(65_536, columns=columns):
        parts = [batch.column(index) for index in range(batch.num_columns)]
        if any(part.null_count for part in parts):
            raise SelectionError(f"expected no nulls in {', '.join(columns[:3])}, got some: fill or drop those rows")
        if len(columns) == 1 and "list" in str(parts[0].type):
            block = door.rows_of_lists(parts[0])
            if matrix is not None and block.shape[1] != matrix.shape[1]:
                raise SelectionError(f"expected lists of one length in {columns[0]}, got several: repair the odd rows")
        else:
            block = np.column_stack([part.to_numpy(zero_copy_only=False) for part in parts])
        if block.dtype.kind not in "fiub":
            raise SelectionError(
                f"expected numbers in {', '.join(columns[:3])}, got {parts[0].type}: convert them first"
            )
        if matrix is None:
            kind = np.float32 if block.dtype == np.float32 else np.float64
            matrix = np.empty((num_rows, block.shape[1]), dtype=kind)
        matrix[filled : filled + len(block)] = block
        filled += len(block)
    return np.empty((0, len(columns))) if matrix is None else matrix


def _label_name(names: list[str], label: str | None, path: Path) -> str:
    if label is not None and label not in names:
        raise SelectionError(f"expected {label!r} in {path.name}, got {', '.join(names[:8])}: name one of those")
    found = label or next((name for name in _LABELS if name in names), None)
    if found is None:
        raise SelectionError(
            f"expected labels in {path.name} under {', '.join(_LABELS)}, got {', '.join(names[:8])}: use --label"
        )
    return found


def _write_selected_npz(path: Path, table: Table, selection: Selection) -> None:
    rows = np.sort(selection.indices)
    chosen = {
        name: array[rows] if array.ndim and len(array) == table.num_rows and name != "classes" else array
        for name, array in table.arrays.items()
    }
    chosen["weights"] = selection.rows()["weight"][rows]
    with path.open("wb") as file:
        np.savez(file, **{**chosen, "row": rows})  # type: ignore[arg-type]


def _write_selected_parquet(path: Path, table: Table, selection: Selection) -> None:
    """The selected rows with their weights, batch by batch: the features are never all in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = selection.rows()
    source = pq.ParquetFile(table.path)
    weight_name = "weight" if "weight" not in source.schema_arrow.names else "coreset_weight"
    schema = source.schema_arrow.append(pa.field(weight_name, pa.float64())).remove_metadata()
    start = 0
    with pq.ParquetWriter(path, schema) as writer:
        for batch in source.iter_batches(65_536):
            mask = rows["selected"][start : start + len(batch)]
            if mask.any():
                kept = pa.Table.from_batches([batch]).filter(pa.array(mask))
                weight = pa.array(rows["weight"][start : start + len(batch)][mask])
                writer.write_table(kept.append_column(weight_name, weight).cast(schema))
            start += len(batch)
