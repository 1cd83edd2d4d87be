"""CSV and Parquet: a label column, and columns of any type beside it.

In a CSV a cell that is empty, or `?`, `NA`, `N/A`, `nan` or `null`, is missing; in the label column only an empty one
is, and means unlabelled. A label of -1 is refused: it could mean a class or, as elsewhere, unlabelled. A column that
the schema calls a category keeps its cells as they are written, such as 01234. Names of columns are trimmed.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection
from csv import Error as CsvError
from csv import reader
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from synthsieve.data.checks import brief
from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.formats.embeddings import embedded_dataset
from synthsieve.data.labels import Labels, check_classes, check_lengths, listed, read_labels
from synthsieve.data.modalities.table.rows import check_width, read_rows, rows_from_arrow, rows_like
from synthsieve.data.modalities.table.schema import ColumnType, is_text, read_types, repeated_names
from synthsieve.data.modalities.table.written_values import find_values
from synthsieve.data.registry import Request
from synthsieve.errors import DataError
from synthsieve.io.parquet import claimed_bytes, max_bytes, text_bytes

__all__ = [
    "labels_of",
    "load_csv",
    "load_parquet",
    "read_csv",
    "read_parquet",
    "rows_from_arrow",
    "rows_like",
    "tidied",
]

WHOLE_AS_FLOAT = re.compile(r"-?\d+\.0+")
MAX_ROW_LENGTH = 16 << 20  # bytes
MISSING = ("", "?", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL")


def load_csv(request: Request) -> Dataset:
    """A CSV with a header row, in UTF-8; cells are separated by tabs where the name ends in .tsv."""
    columns = (_require_label(request), request.text, *_as_written(request))
    table = read_csv(request.path, as_written=[name for name in columns if name is not None])
    return _from_table(table, request, tidy=True)


def load_parquet(request: Request) -> Dataset:
    """A Parquet file."""
    _require_label(request)
    return _from_table(read_parquet(request.path), request, tidy=False)


def read_csv(path: Path, *, as_written: Collection[str] = ()) -> Any:
    """A pyarrow table of a CSV or TSV; the cells of the columns `as_written` stay text."""
    import pyarrow as pa
    from pyarrow import csv

    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    try:
        with path.open("rb") as stream:  # opened here: pyarrow takes no path that is not UTF-8
            header = _header(stream, delimiter)
            check_width(len(header), origin=str(path))
            as_text = {name: pa.string() for name in header or as_written if name.strip() in as_written}
            # Only numbers may be null here: pyarrow knows no label column, in which "NA" may be a class.
            convert = csv.ConvertOptions(column_types=as_text, strings_can_be_null=False, null_values=list(MISSING))
            read = csv.ReadOptions(block_size=MAX_ROW_LENGTH)
            table = csv.read_csv(stream, read_options=read, parse_options=parse, convert_options=convert)
        table.validate(full=True)
        table = table.rename_columns([name.strip() for name in table.column_names])
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _refused(path, error) from None
    for field in table.schema:
        if pa.types.is_binary(field.type):
            raise DataError(
                f"{path} must be text in UTF-8, but column {field.name!r} is not: save it as UTF-8", code="encoding"
            )
    return table


def _header(stream: BinaryIO, delimiter: str) -> list[str]:
    """Column names as written; none where the first row cannot be read, which pyarrow then reports."""
    text = io.TextIOWrapper(io.BytesIO(stream.read(MAX_ROW_LENGTH)), encoding="utf-8-sig", newline="")
    stream.seek(0)
    try:
        return next(reader(text, delimiter=delimiter), [])
    except (CsvError, UnicodeDecodeError):
        return []


def _refused(path: Path, error: Exception) -> DataError:
    reason = brief(error)
    if "straddling" in reason or ("Empty CSV" in reason and path.stat().st_size > MAX_ROW_LENGTH):
        return DataError(
            f"{path} has a row of more than {MAX_ROW_LENGTH >> 20} MB: is a quotation mark left open?", code="long-row"
        )
    return DataError(f"{path} cannot be read as CSV in UTF-8 ({reason}): repair or write it again", code="damaged-file")


def read_parquet(path: Path) -> Any:
    """A pyarrow table of a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        # The file itself, opened here: given a path, pyarrow would read column values out of folder names.
        with path.open("rb") as stream:
            claim = parquet.read_metadata(stream)
            _check_claim(path, claim)
            table = parquet.read_table(stream)
        table.validate(full=True)
        _ = list(table.column_names)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{path} cannot be read as Parquet ({brief(error)}): it may be cut short", code="damaged-file"
        ) from None
    return table


def labels_of(table: Any, label: str, *, origin: str) -> Labels:
    """The labels in column `label` of a pyarrow table: any type, an empty cell for unlabelled."""
    labels = read_labels(_label_texts(table.column(label), label, origin), origin=f"{origin}, column {label!r}")
    return replace(labels, notes=check_classes(labels, origin=f"{origin}: column {label!r}"))


def python_values(column: Any, *, origin: str) -> list[Any]:
    """The cells of an Arrow column as Python values; a date outside the years 1 to 9999 has none, and is refused."""
    import pyarrow as pa

    try:
        values: list[Any] = column.to_pylist()
    except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
        raise DataError(
            f"{origin}: a cell cannot be read ({brief(error)}): repair it, or store it as text", code="bad-cell"
        ) from None
    return values


def tidied(table: Any, *, as_written: Collection[str] = ()) -> tuple[Any, tuple[str, ...]]:
    """A table read from text: cells trimmed, words for missing ones emptied, numbers and dates found; and notes on it.

    No numbers are looked for in the columns `as_written`.
    """
    columns, notes = {}, []
    for name, cells in zip(table.column_names, table.columns, strict=True):
        if is_text(cells.type):
            cells, note = _tidy(cells, to_values=name not in as_written)
            notes += [f"column {name!r} {note}"] if note else []
        columns[name] = cells
    return type(table).from_pydict(columns), tuple(notes)


def _require_label(request: Request) -> str:
    if request.label is None:
        raise DataError(f"{request.path} is a table: name its label column with --label", code="no-label-column")
    return request.label


def _check_claim(path: Path, claim: Any) -> None:
    """Refuse more cells, or longer ones, than a file of this size should hold, before memory is allocated for them."""
    if claimed_bytes(path, claim) > max_bytes(path) or text_bytes(path) > max_bytes(path):
        raise DataError(
            f"{path} claims {claim.num_rows:,} rows of {claim.num_columns:,} columns, more than its size allows",
            code="too-large",
        )


def _as_written(request: Request) -> list[str]:
    """The columns that the user calls categories."""
    types = read_types(request.schema) if request.schema is not None else {}
    return [name for name, kind in types.items() if kind is ColumnType.CATEGORY]


def _from_table(table: Any, request: Request, *, tidy: bool) -> Dataset:
    path, label = request.path, _require_label(request)
    _check_columns(table, request, label)
    if request.features is not None:  # an array stands for its rows
        return embedded_dataset(table, labels_of(table, label, origin=path.name), request)
    if request.text is not None:  # its sentences are the examples
        of_text: Dataset = import_module("synthsieve.data.modalities.text.sentences").load_text(table, request)
        return of_text
    labels = labels_of(table, label, origin=path.name)
    types = read_types(request.schema) if request.schema is not None else {}
    if label in types:
        raise DataError(
            f"{request.schema} gives a type to {label!r}, which is the label: remove that line", code="schema"
        )
    cells = table.drop_columns([label])
    cells, notes = tidied(cells, as_written=_as_written(request)) if tidy else (cells, ())
    rows = read_rows(cells, types=types, origin=str(path))
    return Dataset(
        path.stem,
        Kind.TABLE,
        labels.classes,
        Examples(rows.x, labels.y),
        feature_names=rows.schema.names,
        notes=labels.notes + notes + rows.notes,
        metadata=rows.schema,
    )


def check_names(table: Any, path: Path) -> None:
    """Refuse a table of which two columns have one name."""
    repeated = repeated_names(list(table.column_names))
    if repeated:
        raise DataError(
            f"{path}: columns need different names, but {listed(repeated)} are repeated", code="repeated-column"
        )


def _check_columns(table: Any, request: Request, label: str) -> None:
    """Different names, the label among them, and something beside it in at least one row."""
    path, names = request.path, list(table.column_names)
    check_names(table, path)
    if len(names) == 1 and label not in names and any(sign in names[0] for sign in ";\t|"):
        raise DataError(
            f"{path} has one column, {names[0][:50]!r}: separate cells by commas (.csv) or tabs (.tsv)",
            code="separator",
        )
    for kind, name in (("label", label), ("text", request.text)):
        if name is not None and name not in names:
            close = get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}" if close else f"its columns are {listed(names)}"
            raise DataError(f"{path} has no {kind} column {name!r}: {hint}?", code="missing-column")
    if len(names) == 1 and request.features is None:
        raise DataError(f"{path} has no column but {label!r}: at least one to learn from is needed", code="no-columns")
    if table.num_rows == 0:
        raise DataError(f"{path} has a header but no rows", code="no-rows")


def _tidy(cells: Any, *, to_values: bool) -> tuple[Any, str]:
    """Trimmed text, null where it stands for a missing cell; numbers or dates where all of it is, if they are wanted.

    Also a note on how they were read, where it may surprise.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(cells)
    missing = pc.is_in(trimmed, pa.array(MISSING, cells.type))
    trimmed = pc.if_else(missing, pa.scalar(None, cells.type), trimmed)
    if not to_values:
        return trimmed, ""
    if trimmed.null_count > cells.null_count:
        for number in (pa.int64(), pa.float64()):
            try:
                return trimmed.cast(number), ""
            except pa.ArrowException:
                continue
    found = find_values(trimmed)
    return (trimmed, "") if found is None else (found.cells, found.note)


def _label_texts(column: Any, name: str, origin: str) -> np.ndarray:
    """Text (n,), "" where the cell is empty; whole numbers stored as floats ("3.0") lose their tail."""
    texts = []
    for value in python_values(column, origin=f"{origin}, column {name!r}"):
        text = "" if value is None or value != value else str(value).strip()
        texts.append(text.split(".")[0] if WHOLE_AS_FLOAT.fullmatch(text) else text)
    check_lengths(texts, origin=f"{origin}, column {name!r}")
    if "-1" in texts:
        raise DataError(
            f"{origin}, column {name!r}: -1 could mean unlabelled or a class: leave it empty, or rename it",
            code="ambiguous-label",
        )
    return np.array(texts, dtype=str)
