"""Tables as input: Parquet, one file or a folder of files with the same columns, read in batches; or text.

Rows are numbered through all files, in the order of the files' names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.io.parquet import arrow_source, claimed_bytes, max_bytes, text_bytes
from synthsieve.selection import validation

LABELS = ("labels", "label", "y", "class", "target")
OUTPUTS = ("logits", "probabilities", "gradients")
FEATURES = ("features", "embeddings")
PARQUET_SUFFIXES = (".parquet", ".pq")
JSON_SUFFIXES = (".jsonl", ".ndjson")
TEXT_SUFFIXES = (".csv", ".tsv", *JSON_SUFFIXES)
_PREFIXES = {
    "logits": ("logit_", "logits_"),
    "probabilities": ("prob_", "probability_", "proba_"),
    "gradients": ("grad_",),
}
_ROWS_AT_A_TIME = 65_536
_TEXT_BLOCK = 1 << 24  # bytes; a row must fit into one
_MAX_NESTING = 100
_JSON_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True)
class Shards:
    """Files with the same columns, and the role of each column.

    Attributes:
        outputs: the columns of "logits", "probabilities" and "gradients", if there are any.
        features: `features` or `embeddings`, or the numeric columns other than the label, if there are no outputs.
        names: the columns of logits or probabilities without their prefix, if there are several.
        table: the rows themselves, if they were read from text.
    """

    path: Path
    files: tuple[Path, ...]
    file_rows: tuple[int, ...]
    label: str
    outputs: dict[str, tuple[str, ...]]
    features: tuple[str, ...]
    names: dict[str, tuple[str, ...]]
    table: Any = None

    @property
    def schema(self) -> Any:
        """The columns, without metadata."""
        return _footer(self.files[0])[0] if self.table is None else self.table.schema

    @property
    def num_rows(self) -> int:
        return sum(self.file_rows)

    def batches(self, columns: Iterable[str] | None = None) -> Iterator[Any]:
        """Arrow record batches of all files, in order; of all columns if None."""
        if self.table is not None:
            wanted = self.table if columns is None else self.table.select(list(columns))
            yield from wanted.to_batches(_ROWS_AT_A_TIME)
            return
        for file in self.files:
            yield from batches(file, columns)


def open_shards(
    path: Path, *, label: str | None = None, embeddings: str | None = None, others: Sequence[str] = ()
) -> Shards:
    """Read the footer of a file or of every Parquet file in a folder; hidden files are ignored.

    `others` are columns of another role, which are no features.
    """
    inside = sorted(path.iterdir()) if path.is_dir() else []
    shown = [file for file in inside if file.is_file() and not file.name.startswith((".", "_"))]
    files = tuple(file for file in shown if file.suffix.lower() in PARQUET_SUFFIXES) if path.is_dir() else (path,)
    if not files:
        raise SelectionError(
            f"expected a file, got {path}, which is a directory without .parquet files: check the name",
            code="missing-file",
        )
    footers = [_footer(file) for file in files]
    schema = footers[0][0]
    for file, (other, _) in zip(files, footers, strict=True):
        if not other.equals(schema):
            odd = next((f.name for f in [*other, *schema] if f not in list(schema) or f not in list(other)), None)
            got = "another order" if odd is None else f"another {odd}"
            raise SelectionError(
                f"expected {file.name} to have the columns of {files[0].name}, got {got}: use the same columns",
                code="other-columns",
            )
    return _describe(path, files, tuple(count for _, count in footers), schema, label, embeddings, others)


def open_text(
    path: Path, *, label: str | None = None, embeddings: str | None = None, others: Sequence[str] = ()
) -> Shards:
    """Read a whole .csv, .tsv or .jsonl file; its columns are those of the same table in Parquet."""
    import pyarrow as pa
    from pyarrow import csv, json

    suffix = path.suffix.lower()
    try:
        if suffix in JSON_SUFFIXES:
            _check_nesting(path)
            table = json.read_json(arrow_source(path), json.ReadOptions(block_size=_TEXT_BLOCK))
        else:
            parse = csv.ParseOptions(delimiter="\t" if suffix == ".tsv" else ",", newlines_in_values=True)
            table = csv.read_csv(arrow_source(path), csv.ReadOptions(block_size=_TEXT_BLOCK), parse_options=parse)
        table.validate(full=True)
        names = list(table.column_names)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SelectionError(
            f"expected {suffix} in UTF-8 with one row a line, got {path.name} ({_first_line(error)}): write it again",
            code="damaged-file",
        ) from None
    if len(names) == 1 and any(sign in names[0] for sign in ";\t|"):
        raise SelectionError(
            f"expected cells separated by {'tabs' if suffix == '.tsv' else 'commas'} in {path.name}, got the single "
            f"column {names[0][:80]!r}: save it with that separator",
            code="separator",
        )
    described = _describe(path, (path,), (table.num_rows,), table.schema, label, embeddings, others)
    return replace(described, table=table)


def _check_nesting(path: Path) -> None:
    """Raise for deeply nested lists, on which pyarrow's recursion would crash the process."""
    depth = 0
    with path.open("rb") as file:
        for line in file:
            opened, closed = (sum(line.count(sign) for sign in signs) for signs in ((b"[", b"{"), (b"]", b"}")))
            if depth == 0 and opened == closed and opened <= _MAX_NESTING:
                continue
            signs = np.frombuffer(_JSON_STRING.sub(b"", line), dtype=np.uint8)
            steps = np.isin(signs, list(b"[{")).astype(np.int64) - np.isin(signs, list(b"]}"))
            if depth + np.cumsum(steps).max(initial=0) > _MAX_NESTING:
                raise SelectionError(
                    f"expected lists nested at most {_MAX_NESTING} deep in {path.name}, got more: write plain lists",
                    code="nesting",
                )
            depth = max(0, depth + int(steps.sum()))


def _describe(
    path: Path,
    files: tuple[Path, ...],
    rows: tuple[int, ...],
    schema: Any,
    label: str | None,
    embeddings: str | None,
    others: Sequence[str],
) -> Shards:
    """The role of each column, by its name; with `embeddings`, a column or a file, labels are optional."""
    names = schema.names
    for other in others:
        known_name(other, names, path)
    name = label_name(names, label, path, optional=embeddings is not None)
    outputs: dict[str, tuple[str, ...]] = {}
    named: dict[str, tuple[str, ...]] = {}
    for kind in OUTPUTS:
        columns = [kind] if kind in names else [n for n in names if n.startswith(_PREFIXES[kind]) and n != name]
        if columns:
            outputs[kind] = tuple(columns)
            if kind != "gradients" and columns != [kind]:
                named[kind] = tuple(column.split("_", 1)[1] for column in columns)
    features: tuple[str, ...] = ()
    if embeddings is not None:
        features = () if is_array_file(embeddings) else (known_name(embeddings, names, path),)
    elif not outputs:
        lists = [one for one in FEATURES if one in names and one != name and validation.is_list(schema.field(one).type)]
        numbers = [field.name for field in schema if field.name not in (name, *others) and _is_numeric(field.type)]
        features = tuple(lists[:1] or numbers)
        if not features:
            raise SelectionError(
                f"expected numeric columns other than {name} in {path.name}, got none: add logits", code="no-input"
            )
    for used in filter(
        None, (name, *features, *others, *(column for columns in outputs.values() for column in columns))
    ):
        if names.count(used) > 1:
            raise SelectionError(
                f"expected one column {used} in {path.name}, got several: rename or drop the others",
                code="duplicate-column",
            )
    return Shards(path, files, rows, name, outputs, features, named)


def batches(file: Path, columns: Iterable[str] | None = None, start: int = 0, stop: int | None = None) -> Iterator[Any]:
    """Arrow record batches of rows `start` to `stop` of a file; only the row groups that hold some are read."""
    import pyarrow.parquet as pq

    with readable_parquet(file):
        parquet = pq.ParquetFile(arrow_source(file), pre_buffer=False, buffer_size=1 << 20)
        counts = [parquet.metadata.row_group(group).num_rows for group in range(parquet.metadata.num_row_groups)]
        ends = np.cumsum([0, *counts])
        stop = int(ends[-1]) if stop is None else stop
        groups = [g for g in range(len(counts)) if ends[g + 1] > start and ends[g] < stop]
        row = int(ends[groups[0]]) if groups else 0
        wanted = None if columns is None else list(columns)
        _check_size(file, text_bytes(file, wanted))
        for batch in parquet.iter_batches(_ROWS_AT_A_TIME, row_groups=groups, columns=wanted):
            first, last = max(start - row, 0), min(stop - row, len(batch))
            row += len(batch)
            if first < last:
                yield batch.slice(first, last - first)
            if row >= stop:
                return


def read_matrix(given: Iterable[Any], columns: tuple[str, ...], num_rows: int) -> np.ndarray:
    """Columns as a matrix (n, d), filled batch by batch; a list column counts as d columns."""
    filled, matrix = 0, None
    named = ", ".join(columns[:3])
    for batch in given:
        parts = [_decoded(batch.column(name)) for name in columns]
        if any(part.null_count for part in parts):
            raise SelectionError(f"expected no nulls in {named}, got some: fill or drop those rows", code="missing")
        if len(columns) == 1 and validation.is_list(parts[0].type):
            block = validation.rows_of_lists(parts[0])
            if matrix is not None and block.shape[1] != matrix.shape[1]:
                raise SelectionError(f"expected lists of one length in {named}, got several", code="ragged")
        else:
            odd = next((part.type for part in parts if not _is_numeric(part.type)), None)
            if odd is not None:
                raise SelectionError(f"expected numbers in {named}, got {odd}: convert them first", code="dtype")
            block = np.column_stack([part.to_numpy(zero_copy_only=False) for part in parts])
        if block.dtype.kind not in "fiub":
            raise SelectionError(f"expected numbers in {named}, got {parts[0].type}: convert them first", code="dtype")
        if matrix is None:
            kind = np.float32 if block.dtype == np.float32 else np.float64
            matrix = np.empty((num_rows, block.shape[1]), dtype=kind)
        matrix[filled : filled + len(block)] = block
        filled += len(block)
    return np.empty((0, len(columns))) if matrix is None else matrix


def read_labels(given: Iterable[Any], name: str) -> np.ndarray:
    """The labels (n,), of any type."""
    import pyarrow as pa

    parts = [_decoded(batch.column(name)) for batch in given]
    nulls = sum(part.null_count for part in parts)
    if nulls:
        raise SelectionError(
            f"expected a label in every row of {name}, got {nulls} nulls: fill or drop them", code="missing"
        )
    try:
        return pa.concat_arrays(parts).to_numpy(zero_copy_only=False) if parts else np.empty(0, dtype=np.int64)
    except (pa.ArrowException, ValueError) as error:  # invalid UTF-8, an impossible date
        raise SelectionError(
            f"expected labels in {name}, got {_first_line(error)}: write them again", code="label-type"
        ) from None


def read_texts(given: Iterable[Any], name: str) -> list[str]:
    """The texts of a column."""
    import pyarrow as pa

    texts: list[str] = []
    for batch in given:
        column = _decoded(batch.column(name))
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise SelectionError(f"expected text in {name}, got {column.type}: name a column of text", code="text")
        if column.null_count:
            row = len(texts) + column.is_null().index(True).as_py()
            raise SelectionError(
                f"expected text in {name}, got an empty cell in row {row}: fill or drop that row", code="text"
            )
        texts += column.to_pylist()
    return texts


def is_array_file(embeddings: str) -> bool:
    """Whether embeddings are given as a file of their own rather than as the name of a column."""
    return embeddings.lower().endswith(".npy")


def known_name(name: str, names: list[str], path: Path, code: str = "no-input") -> str:
    if name not in names:
        raise SelectionError(
            f"expected {name!r} in {path.name}, got {', '.join(names[:8])}: name one of those", code=code
        )
    return name


def label_name(names: list[str], label: str | None, path: Path, *, optional: bool = False) -> str:
    """The name of the labels: the given one, or a usual one; "" if there is none and they are optional."""
    if label is not None:
        return known_name(label, names, path, "no-labels")
    found = next((name for name in LABELS if name in names), "" if optional else None)
    if found is None:
        raise SelectionError(
            f"expected labels in {path.name} under {', '.join(LABELS)}, got {', '.join(names[:8])}: use --label",
            code="no-labels",
        )
    return found


def _footer(file: Path) -> tuple[Any, int]:
    """Schema, without metadata, and number of rows."""
    import pyarrow.parquet as pq

    with readable_parquet(file), pq.ParquetFile(arrow_source(file)) as parquet:
        _check_size(file, claimed_bytes(file, parquet.metadata))
        return parquet.schema_arrow.remove_metadata(), parquet.metadata.num_rows


def _check_size(file: Path, decoded: int) -> None:
    """Raise if the content would take far more memory than the size of the file suggests."""
    if decoded > max_bytes(file):
        raise SelectionError(
            f"expected at most {max_bytes(file):,} bytes of content in {file.name}, which has "
            f"{file.stat().st_size:,} bytes, got {decoded:,}: write it again, without columns that repeat long values",
            code="too-large",
        )


@contextmanager
def readable_parquet(file: Path) -> Iterator[None]:
    """Errors from reading a damaged file as one sentence with its name."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError) as error:
        raise SelectionError(
            f"expected a complete Parquet file, got {file.name} ({_first_line(error)}): write it again",
            code="damaged-file",
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _decoded(column: Any) -> Any:
    """A column without dictionary encoding."""
    import pyarrow as pa

    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _is_numeric(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
