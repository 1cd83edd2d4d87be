"""Examples to predict, read from files in the same way as the training data; no labels are needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.dataset import Kind
from synthsieve.data.formats.arrays import as_float32, read_features
from synthsieve.data.formats.embeddings import read_paired
from synthsieve.data.formats.folder import SUFFIXES, files_below
from synthsieve.data.formats.idx import read_idx
from synthsieve.data.formats.npz import read_npy, read_npz, require_x, value_range_in
from synthsieve.data.formats.table import check_names, python_values, read_csv, read_parquet, tidied
from synthsieve.data.in_memory import InMemoryData, encode_like
from synthsieve.data.labels import listed
from synthsieve.data.modalities.table.rows import read_rows_like
from synthsieve.data.modalities.table.schema import (
    ColumnType,
    TableSchema,
    arrow_type,
    is_number,
    is_text,
)
from synthsieve.data.modalities.text.sentences import store_texts
from synthsieve.errors import DataError
from synthsieve.io.progress import NullProgress, Progress

TABLES = (".csv", ".tsv", ".parquet")
TEXT = "text"  # the default name of the text column
EXPECTED: dict[str, str] = {
    Kind.TABLE: "a .csv, .tsv or .parquet file",
    Kind.TEXT: "a .csv, .tsv or .parquet file with a column of texts",
    Kind.VECTOR: "an .npz with x, a .npy, an idx file, or a table of numbers",
    Kind.IMAGE: "a folder of images, an image, an .npz with x, a .npy, a .mat or an idx file",
    Kind.SOUND: "a folder of audio files or an audio file",
}


@dataclass(frozen=True)
class ExpectedInput:
    """What a model was trained on, as far as new examples must agree with it.

    Attributes:
        data: the kind, and what is needed to read more of the same.
        shape: of one example.
        columns: names of the columns of vectors, where they have names.
        label: the label column, where it is known.
        text: the text column, where it is known.
        embedded: whether vectors stood for the rows of a table.
    """

    data: InMemoryData
    shape: tuple[int, ...]
    columns: tuple[str, ...] = ()
    label: str | None = None
    text: str | None = None
    embedded: bool = False


@dataclass(frozen=True)
class NewExamples:
    """Examples in the order of their source.

    Attributes:
        x: as `data.dataset.Examples` stores them.
        files: the name of each file below the given folder; None where examples are rows.
        notes: messages for the user: what was ignored, what was unknown in training.
    """

    x: np.ndarray
    files: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


def read_new(
    path: Path, expected: ExpectedInput, *, features: Path | None = None, progress: Progress | None = None
) -> NewExamples:
    """The examples at `path`; `features` is a file of embeddings, a row for each row of the table at `path`."""
    progress, kind = progress or NullProgress(), Kind.VECTOR if expected.data.array else expected.data.kind
    if not path.exists():
        raise DataError(f"{path} does not exist: expected {_describe(kind)}", code="missing-file")
    if path.is_file() and path.stat().st_size == 0:
        raise DataError(f"{path} is empty: copy or write it again", code="empty-file")
    is_table = path.suffix.lower() in TABLES and path.is_file()
    if features is not None or (expected.embedded and is_table):
        return _read_embedded(path, expected, features, is_table)
    if kind in (Kind.TABLE, Kind.TEXT):
        if not is_table:
            raise _unlike(path, kind)
        return _read_rows(path, expected) if kind == Kind.TABLE else _read_texts(path, expected)
    if kind == Kind.VECTOR and is_table:
        return _read_columns(path, expected)
    if is_table:
        raise _unlike(path, kind)
    return _read_media(path, expected, progress) or _read_arrays(path, expected)


def _describe(kind: str) -> str:
    return EXPECTED.get(kind, "an .npz with x, or a .npy")


def _unlike(path: Path, kind: str) -> DataError:
    return DataError(
        f"the model was trained on examples of kind {kind}: expected {_describe(kind)}, but {path} came",
        code="unlike-training",
    )


def _read_table(
    path: Path, label: str | None, as_written: Sequence[str] = (), *, tidy: bool = True
) -> tuple[Any, list[str]]:
    """A pyarrow table without the label, and notes; with `tidy`, a CSV's words for missing cells become null."""
    is_csv = path.suffix.lower() != ".parquet"
    table = read_csv(path, as_written=as_written) if is_csv else read_parquet(path)
    check_names(table, path)
    if not table.num_rows:
        raise DataError(f"{path} has no rows: at least one is needed", code="no-rows")
    notes = []
    if label is not None and label in table.column_names:
        table = table.drop_columns([label])
        notes.append(f"the label column {label!r} is not used for predictions")
    if not is_csv or not tidy:
        return table, notes
    table, more = tidied(table, as_written=as_written)
    return table, [*notes, *more]


def _read_rows(path: Path, expected: ExpectedInput) -> NewExamples:
    schema: TableSchema = expected.data.metadata
    label = None if expected.label in schema.names else expected.label
    words = [one.name for one in schema.columns if one.type is ColumnType.CATEGORY and _holds_text(one.arrow)]
    table, notes = _read_table(path, label, words)
    rows = read_rows_like(table, schema, origin=str(path))
    return NewExamples(rows.x, notes=(*notes, *rows.notes))


def _holds_text(arrow: str) -> bool:
    kind = arrow_type(arrow)
    return is_text(getattr(kind, "value_type", kind))


def _ignored(names: list[str], used: Sequence[str]) -> list[str]:
    """A note on the columns that are not used, if there are any."""
    others = [name for name in names if name not in used]
    return [f"columns that were not in the training data are ignored ({len(others)}): {listed(others)}"] * bool(others)


def _read_texts(path: Path, expected: ExpectedInput) -> NewExamples:
    table, notes = _read_table(path, expected.label, [expected.text or TEXT], tidy=False)
    names = list(table.column_names)
    text = expected.text or (names[0] if len(names) == 1 else TEXT)
    if text not in names:
        close = get_close_matches(text, names, n=1)
        hint = f"did you mean {close[0]!r}" if close else f"its columns are {listed(names)}"
        raise DataError(f"{path} has no text column {text!r}: {hint}? Name it with --text", code="missing-column")
    texts = store_texts(python_values(table.column(text), origin=path.name), origin=path.name, some_words=False)
    return NewExamples(texts.x, notes=(*notes, *_ignored(names, [text]), *texts.notes))


def _read_columns(path: Path, expected: ExpectedInput) -> NewExamples:
    """Vectors from the columns of a table: those with the names of the training data, or all, in their order."""
    table, notes = _read_table(path, expected.label)
    names, (width,) = list(table.column_names), expected.shape
    lacking = [name for name in expected.columns if name not in names]
    if lacking or (not expected.columns and len(names) != width):
        what = f"{listed(lacking)} are not there" if lacking else f"it has {listed(names)}"
        raise DataError(f"{path} must have the {width} columns of the training data, but {what}", code="missing-column")
    if expected.columns:
        notes += _ignored(names, expected.columns)
        names = list(expected.columns)
    else:
        notes.append("the columns of the training data had no names: columns are taken in the order of the file")
    for name in names:
        if not is_number(table.column(name).type) or table.column(name).null_count:
            raise DataError(f"{path}: column {name!r} has cells that are not numbers: fill them", code="not-a-number")
    raw = np.stack([table.column(name).to_numpy().astype(np.float64) for name in names], axis=1)
    return NewExamples(_numbers(raw, expected, path), notes=tuple(notes))


def _numbers(raw: np.ndarray, expected: ExpectedInput, path: Path) -> np.ndarray:
    """Rows of finite numbers as the training data are stored: float64 where they were a table, else float32."""
    if raw.ndim != 2 or raw.shape[1:] != expected.shape:
        raise DataError(
            f"{path} must have {expected.shape[0]} numbers a row, but has shape {raw.shape}", code="unlike-training"
        )
    finite = as_float32(raw, path.name)
    return raw.astype(np.float64) if expected.data.array else finite


def _read_embedded(path: Path, expected: ExpectedInput, features: Path | None, is_table: bool) -> NewExamples:
    """Embeddings that stand for the rows of a table."""
    problem = None
    if expected.data.kind != Kind.VECTOR:
        problem = f"the model was trained on examples of kind {expected.data.kind}, not embeddings: omit --features"
    elif features is None:
        problem = f"the model was trained on embeddings: give those of the rows of {path} with --features FILE.npy"
    elif not is_table:
        problem = f"--features needs the table whose rows it stands for, but {path} is not a table: omit --features"
    if problem or features is None:
        raise DataError(problem or "", code="features")
    table, notes = _read_table(path, expected.label)
    return NewExamples(read_paired(features, table, path), notes=tuple(notes))


def _read_media(path: Path, expected: ExpectedInput, progress: Progress) -> NewExamples | None:
    """The image or sound at `path`, or all below that folder; None where it is a file of arrays."""
    kind = expected.data.kind
    what = "sounds" if kind == Kind.SOUND else "images"
    files, notes = _files(path, what)
    if not files and path.is_file() and kind != Kind.SOUND:
        return None
    if not files or kind not in (Kind.SOUND, Kind.IMAGE):
        raise _unlike(path, kind)
    names = _relative_names(files, path)
    if kind == Kind.SOUND:
        from synthsieve.data.modalities.sound.reading import from_files

        return NewExamples(from_files(files, expected.data.metadata, progress), names, notes)
    from synthsieve.data.formats.image_folder import read_images_like

    x, more = read_images_like(files, expected.shape, progress)
    return NewExamples(x, names, (*notes, *more))


def _files(path: Path, what: str) -> tuple[list[Path], tuple[str, ...]]:
    """The file itself, or all images or sounds below a folder, sorted; and notes."""
    if path.is_file():
        return ([path] if path.suffix.lower() in SUFFIXES[what] else []), ()
    present = list(files_below(path))
    found = [file for file in present if file.suffix.lower() in SUFFIXES[what]]
    others, folders = len(present) - len(found), {file.parent for file in found} - {path}
    notes = [f"{others:,} files that are not {what} are ignored"] if others else []
    if folders:
        notes.append(f"{what} lie in {len(folders):,} folders; predictions do not use the names of folders")
    return sorted(found, key=lambda file: file.relative_to(path).parts), tuple(notes)


def _relative_names(files: Sequence[Path], root: Path) -> tuple[str, ...]:
    """Names below the given folder; bytes that are not UTF-8, which no table can hold, as \\udcff."""
    names = [file.name if file == root else file.relative_to(root).as_posix() for file in files]
    return tuple(name.encode("utf-8", errors="backslashreplace").decode() for name in names)


def _read_arrays(path: Path, expected: ExpectedInput) -> NewExamples:
    """The array of an .npz, .npy, .mat or idx file."""
    suffix, data, notes = path.suffix.lower(), expected.data, []
    if suffix == ".npz":
        arrays = read_npz(path)
        raw, span = require_x(arrays, path), value_range_in(arrays, path)
        if "y" in arrays:
            notes.append("the labels y are not used for predictions")
        others = [name for name in arrays if name not in ("x", "y", "range")]
        if others:
            notes.append(f"arrays other than x are ignored ({len(others)}): {listed(others)}")
        if data.images is not None and span is not None:
            data = replace(data, metadata=replace(data.images, value_range=span))
    elif suffix == ".npy":
        raw = read_npy(path)
    elif suffix == ".mat":
        from synthsieve.data.sources.svhn import read_mat_images

        raw = read_mat_images(path)
    else:
        raw = read_idx(path)
    if not raw.ndim or not len(raw):
        raise DataError(f"{path} has no rows: at least one is needed", code="no-rows")
    if data.array:
        return NewExamples(_numbers(raw, expected, path), notes=tuple(notes))
    if data.images is None:
        return NewExamples(encode_like(raw, data), notes=tuple(notes))
    features = read_features(raw, origin=path.name, value_range=data.images.range_for(raw))
    span = features.value_range
    if data.images.value_range is None and raw.dtype.kind == "f" and span is not None:
        notes.append(f"the model was trained on integer pixels: floats are taken to span [{span[0]:g}, {span[1]:g}]")
    else:
        notes += features.notes
    return NewExamples(features.x, notes=tuple(notes))
