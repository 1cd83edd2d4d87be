"""CSV and Parquet: a label column, and other columns of any type.

In a CSV a cell that is empty, or `?`, `NA`, `N/A`, `nan` or `null`, is missing; in the label column only an empty one
is, and means unlabelled. A label of -1 is refused: it could mean a class or, as elsewhere, unlabelled. A column that
the schema calls a category keeps its cells as they are written, such as 01234. In other columns of text, numbers and
dates such as 1,234,567 and $1.20 and 12% and 1/31/2024 are read as such, if every cell that is not empty is one. Names
of columns are trimmed.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection
from csv import Error as CsvError
from csv import reader
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from synthsieve.data.checks import check, check_unique, reading
from synthsieve.data.dataset import Dataset, Examples, Kind, Request
from synthsieve.data.formats.npz import read_embeddings
from synthsieve.data.labels import Labels, check_classes, check_lengths, read_labels
from synthsieve.data.modalities.table.rows import check_width, read_rows
from synthsieve.data.modalities.table.schema import ColumnType, is_text, read_types
from synthsieve.data.modalities.text.encoding import store_texts
from synthsieve.errors import DataError
from synthsieve.io.parquet import claimed_bytes, max_bytes, text_bytes
from synthsieve.io.printable import brief, did_you_mean

WHOLE_AS_FLOAT = re.compile(r"-?\d+\.0+")
MAX_ROW_LENGTH = 16 << 20  # bytes
MISSING = ("", "?", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL")
CURRENCIES = "$€£¥"
NUMBER = r"([-+]?\d+(\.\d+)?|[-+]?\d{1,3}(,\d{3})+(\.\d+)?)"  # perhaps with thousands separators
AMOUNT = rf"^({NUMBER}\s?%?|-?[{CURRENCIES}]\s?-?{NUMBER}|{NUMBER}\s?[{CURRENCIES}])$"
# Patterns of dates, and their possible formats.
DATES = {
    r"^\d{1,2}/\d{1,2}/\d{4}$": {"%m/%d/%Y": "month/day/year", "%d/%m/%Y": "day/month/year"},
    r"^\d{1,2}\.\d{1,2}\.\d{4}$": {"%d.%m.%Y": "day.month.year"},
    r"^\d{4}/\d{1,2}/\d{1,2}$": {"%Y/%m/%d": "year/month/day"},
}


def load_table(request: Request) -> Dataset:
    """A Parquet file, or a CSV with a header row in UTF-8, its cells separated by tabs if the name ends in .tsv."""
    path, label = request.path, request.label
    if label is None:
        raise DataError(f"{path} is a table: name its label column with --label", code="no-label-column")
    types = read_types(request.schema) if request.schema is not None else {}
    categories = [name for name, kind in types.items() if kind is ColumnType.CATEGORY]
    is_csv = path.suffix.lower() != ".parquet"
    columns = [name for name in (label, request.text, *categories) if name is not None]
    table = read_csv(path, as_written=columns) if is_csv else read_parquet(path)
    _check_columns(table, request, label)
    different = request.text != label or request.features is not None
    check(different, f"{path}: text and label must be two columns, not both {label!r}", "same-column")
    labels = labels_of(table, label, origin=path.name)
    if request.features is not None:  # an array stands for its rows, of which people look at the text, or at all
        shown = table if request.text is None else table.select([request.text])
        examples = Examples(read_paired(request.features, table, path), labels.y)
        return Dataset(path.stem, Kind.VECTOR, labels.classes, examples, notes=labels.notes, metadata=shown)
    if request.text is not None:  # its sentences are the examples
        origin = f"{path.name}, column {request.text!r}"
        texts = store_texts(python_values(table.column(request.text), origin=origin), origin=origin)
        notes = labels.notes + texts.notes
        return Dataset(path.stem, Kind.TEXT, labels.classes, Examples(texts.x, labels.y), notes=notes)
    check(label not in types, f"{request.schema} gives a type to the label {label!r}: remove that line", "schema")
    cells = table.drop_columns([label])
    cells, notes = tidied(cells, as_written=categories) if is_csv else (cells, ())
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


def _check_columns(table: Any, request: Request, label: str) -> None:
    """Different names, the label among them, and at least one other column and one row."""
    path, names = request.path, list(table.column_names)
    check_unique(names, str(path))
    single = len(names) == 1 and label not in names and any(sign in names[0] for sign in ";\t|")
    got = f"{path} has one column, {''.join(names[:1])[:50]!r}"
    check(not single, f"{got}: separate cells by commas (.csv) or tabs (.tsv)", "separator")
    for kind, name in (("label", label), ("text", request.text)):
        if name is not None and name not in names:
            hint = did_you_mean(name, names)
            raise DataError(f"{path} has no {kind} column {name!r}: {hint}", code="missing-column")
    enough = len(names) > 1 or request.features is not None
    check(enough, f"{path} has no column but {label!r}: at least one to learn from is needed", "no-columns")
    check(table.num_rows, f"{path} has a header but no rows", "no-rows")


def read_paired(features: Path, table: Any, path: Path) -> np.ndarray:
    """The embeddings in `features`, float32 (n, features), one row for each row of the table read from `path`."""
    x = read_embeddings(features)
    problem = f"{features} has {len(x):,} rows, but {path} {table.num_rows:,}: compute embeddings of the same rows"
    check(len(x) == table.num_rows, problem, "row-count")
    return x


def read_csv(path: Path, *, as_written: Collection[str] = ()) -> Any:
    """A pyarrow table of a CSV or TSV; the cells of the columns `as_written` stay text."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    with reading(path, "CSV in UTF-8", "repair or write it again"):
        try:
            with path.open("rb") as stream:  # opened here: pyarrow takes no path that is not UTF-8
                header = _header(stream, delimiter)
                check_width(len(header), origin=str(path))
                as_text = {name: pa.string() for name in header or as_written if name.strip() in as_written}
                # Only numbers may be null here: pyarrow knows no label column, in which "NA" may be a class.
                convert = csv.ConvertOptions(column_types=as_text, strings_can_be_null=False, null_values=list(MISSING))
                read = csv.ReadOptions(block_size=MAX_ROW_LENGTH)
                table = csv.read_csv(stream, read_options=read, parse_options=parse, convert_options=convert)
        except pa.ArrowException as error:
            too_long = "Empty CSV" in str(error) and path.stat().st_size > MAX_ROW_LENGTH
            problem = f"{path} has a row of more than {MAX_ROW_LENGTH >> 20} MB: is a quotation mark left open?"
            check(not too_long and "straddling" not in str(error), problem, "long-row")
            raise
        table.validate(full=True)
        table = table.rename_columns([name.strip() for name in table.column_names])
    for field in table.schema:
        is_utf8 = not pa.types.is_binary(field.type)
        check(is_utf8, f"{path} must be text in UTF-8, but column {field.name!r} is not: save it as UTF-8", "encoding")
    return table


def _header(stream: BinaryIO, delimiter: str) -> list[str]:
    """Column names as written; none where the first row cannot be read, which pyarrow then reports."""
    text = io.TextIOWrapper(io.BytesIO(stream.read(MAX_ROW_LENGTH)), encoding="utf-8-sig", newline="")
    stream.seek(0)
    try:
        return next(reader(text, delimiter=delimiter), [])
    except (CsvError, UnicodeDecodeError):
        return []


def read_parquet(path: Path) -> Any:
    """A pyarrow table of a Parquet file; it must not hold more than a file of its size should."""
    # The file itself, opened here: given a path, pyarrow would read column values out of folder names.
    with reading(path, "Parquet"), path.open("rb") as stream:
        claim = parquet.read_metadata(stream)
        fits = max(claimed_bytes(path, claim), text_bytes(path)) <= max_bytes(path)
        size = f"{claim.num_rows:,} rows of {claim.num_columns:,} columns"
        check(fits, f"{path} claims {size}, more than its size allows", "too-large")
        table = parquet.read_table(stream)
        table.validate(full=True)
        _ = list(table.column_names)
    return table


def labels_of(table: Any, label: str, *, origin: str) -> Labels:
    """The labels in column `label` of a pyarrow table: any type, an empty cell for unlabelled.

    Whole numbers stored as floats ("3.0") lose their tail.
    """
    texts, column = [], f"{origin}, column {label!r}"
    for value in python_values(table.column(label), origin=column):
        text = "" if value is None or value != value else str(value).strip()
        texts.append(text.split(".")[0] if WHOLE_AS_FLOAT.fullmatch(text) else text)
    check_lengths(texts, origin=column)
    problem = "-1 could mean unlabelled or a class: leave it empty, or rename it"
    check("-1" not in texts, f"{column}: {problem}", "ambiguous-label")
    labels = read_labels(np.array(texts, dtype=str), origin=column)
    return replace(labels, notes=check_classes(labels, origin=f"{origin}: column {label!r}"))


def python_values(column: Any, *, origin: str) -> list[Any]:
    """The cells of an Arrow column as Python values; a date outside the years 1 to 9999 has none, and is refused."""
    try:
        values: list[Any] = column.to_pylist()
    except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
        problem = f"a cell cannot be read ({brief(error)}): repair it, or store it as text"
        raise DataError(f"{origin}: {problem}", code="bad-cell") from None
    return values


def tidied(table: Any, *, as_written: Collection[str] = ()) -> tuple[Any, tuple[str, ...]]:
    """A table read from text: cells trimmed, words for missing ones emptied, numbers and dates found; and notes on it.

    No numbers are looked for in the columns `as_written`.
    """
    columns, notes = {}, []
    for name, cells in zip(table.column_names, table.columns, strict=True):
        if is_text(cells.type):
            nulls, cells = cells.null_count, pc.utf8_trim_whitespace(cells)
            missing = pc.is_in(cells, pa.array(MISSING, cells.type))
            cells, note = pc.if_else(missing, pa.scalar(None, cells.type), cells), ""
            if name not in as_written:
                # pyarrow found no numbers in a column if a cell of it has spaces around a word for missing.
                numbers = _as_numbers(cells) if cells.null_count > nulls else None
                cells, note = _find_values(cells) if numbers is None else (numbers, "")
            notes += [f"column {name!r} {note}"] if note else []
        columns[name] = cells
    return type(table).from_pydict(columns), tuple(notes)


def _find_values(texts: Any) -> tuple[Any, str]:
    """The numbers or dates in an Arrow column of trimmed text, null where missing, or the text; and a note on it.

    Dates whose format is ambiguous stay text, with a note.
    """
    if texts.null_count == len(texts):
        return texts, ""
    for pattern, formats in DATES.items():
        if _all_match(texts, pattern):
            parsed = {name: pc.strptime(texts, format=name, unit="s", error_is_null=True) for name in formats}
            fitting = [name for name, dates in parsed.items() if dates.null_count == texts.null_count]
            if len(fitting) == 1:
                return parsed[fitting[0]].cast(pa.date32()), f"is read as dates, {formats[fitting[0]]}"
            ambiguous = "looks like dates, but day and month are ambiguous: write them as 2024-12-31"
            return texts, ambiguous if fitting else ""
    percent = _all_match(texts, r"%$")
    is_mixed = not percent and pc.any(pc.match_substring(texts, "%")).as_py()  # with plain numbers
    if is_mixed or not _all_match(texts, AMOUNT):
        return texts, ""
    how = "in percent" if percent else "without thousands separators and currency signs"
    return _as_numbers(pc.replace_substring_regex(texts, rf"[,%+\s{CURRENCIES}]", "")), f"is read as numbers, {how}"


def _as_numbers(texts: Any) -> Any:
    """An Arrow column of text as integers or, failing that, floats; None if it holds other text."""
    for number in (pa.int64(), pa.float64()):
        try:
            return texts.cast(number)
        except pa.ArrowException:
            continue
    return None


def _all_match(texts: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())
