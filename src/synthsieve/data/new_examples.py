"""Examples to be predicted, read from files as those that a model learned from were; no labels are needed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.arrow_types import arrow_type, is_number, is_text
from synthsieve.data.dataset import Kind
from synthsieve.data.embeddings import read_embeddings
from synthsieve.data.features import as_float32, read_features
from synthsieve.data.idx import read_idx
from synthsieve.data.in_memory import Held, read_alike
from synthsieve.data.labels import listed
from synthsieve.data.npz import read_npy, read_npz, value_range_in
from synthsieve.data.rows import read_more_rows
from synthsieve.data.schema import ColumnType, TableSchema, repeated_names
from synthsieve.data.table import python_values, read_csv, read_parquet, tidied
from synthsieve.data.text import store_texts
from synthsieve.errors import DataError
from synthsieve.progress import Progress, Silent

TABLES = (".csv", ".tsv", ".parquet")
SOUNDS = (".wav",)
TEXT = "text"  # the column that is looked for where nobody named one
EXPECTED: dict[str, str] = {
    Kind.TABLE: "a .csv, .tsv or .parquet file",
    Kind.TEXT: "a .csv, .tsv or .parquet file with a column of texts",
    Kind.VECTOR: "an .npz with x, a .npy, an idx file, or a table of numbers",
    Kind.IMAGE: "a folder of images, an image, an .npz with x, a .npy, a .mat or an idx file",
    Kind.SOUND: "a folder of .wav files or a .wav file",
}


@dataclass(frozen=True)
class Learned:
    """What a model learned from, as far as new examples must be like it.

    Attributes:
        held: the kind, and what is needed to read more of the same.
        shape: of one example.
        columns: names of the columns of vectors, where they have names.
        label: the label column, where it is known.
        text: the column of the texts, where it is known.
        embedded: whether vectors stood for the rows of a table.
    """

    held: Held
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
        files: the name of each below the folder that was given; None where examples are rows.
        notes: sentences worth telling the user: what was ignored, what was never seen.
    """

    x: np.ndarray
    files: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


def read_new(
    path: Path, learned: Learned, *, features: Path | None = None, progress: Progress | None = None
) -> NewExamples:
    """The examples at `path`; `features` is a file of embeddings, a row for each row of the table at `path`."""
    progress, kind = progress or Silent(), Kind.VECTOR if learned.held.array else learned.held.kind
    if not path.exists():
        raise DataError(f"{path} does not exist: expected {_expected(kind)}")
    if path.is_file() and path.stat().st_size == 0:
        raise DataError(f"{path} is empty: copy or write it again")
    is_table = path.suffix.lower() in TABLES and path.is_file()
    if features is not None or (learned.embedded and is_table):
        return _read_embedded(path, learned, features, is_table)
    if kind in (Kind.TABLE, Kind.TEXT):
        if not is_table:
            raise _unlike(path, kind)
        return _read_rows(path, learned) if kind == Kind.TABLE else _read_texts(path, learned)
    if kind == Kind.VECTOR and is_table:
        return _read_columns(path, learned)
    if kind == Kind.SOUND:
        return _read_sounds(path, learned, progress)
    if is_table:
        raise _unlike(path, kind)
    return _read_images(path, learned, progress) or _read_arrays(path, learned)


def _expected(kind: str) -> str:
    return EXPECTED.get(kind, "an .npz with x, or a .npy")


def _unlike(path: Path, kind: str) -> DataError:
    return DataError(f"the model learned from examples of kind {kind}: expected {_expected(kind)}, but {path} came")


def _read_table(
    path: Path, label: str | None, as_written: Sequence[str] = (), *, tidy: bool = True
) -> tuple[Any, list[str]]:
    """A pyarrow table without the label, and what is to be told; with `tidy` a CSV's words for missing are null."""
    is_csv = path.suffix.lower() != ".parquet"
    table = read_csv(path, as_written=as_written) if is_csv else read_parquet(path)
    repeated = repeated_names(list(table.column_names))
    if repeated:
        raise DataError(f"{path}: every column needs a name of its own, but {listed(repeated)} came more than once")
    if not table.num_rows:
        raise DataError(f"{path} has no rows: at least one is needed")
    notes = []
    if label is not None and label in table.column_names:
        table = table.drop_columns([label])
        notes.append(f"the label column {label!r} is there; predictions do not use it")
    if not is_csv or not tidy:
        return table, notes
    table, more = tidied(table, as_written=as_written)
    return table, [*notes, *more]


def _read_rows(path: Path, learned: Learned) -> NewExamples:
    schema: TableSchema = learned.held.about
    label = None if learned.label in schema.names else learned.label
    words = [one.name for one in schema.columns if one.type is ColumnType.CATEGORY and _holds_text(one.arrow)]
    table, notes = _read_table(path, label, words)
    rows = read_more_rows(table, schema, origin=str(path))
    return NewExamples(rows.x, notes=(*notes, *rows.notes))


def _holds_text(arrow: str) -> bool:
    kind = arrow_type(arrow)
    return is_text(getattr(kind, "value_type", kind))


def _read_texts(path: Path, learned: Learned) -> NewExamples:
    table, notes = _read_table(path, learned.label, [learned.text or TEXT], tidy=False)
    names = list(table.column_names)
    text = learned.text or (names[0] if len(names) == 1 else TEXT)
    if text not in names:
        close = get_close_matches(text, names, n=1)
        hint = f"did you mean {close[0]!r}" if close else f"its columns are {listed(names)}"
        raise DataError(f"{path} has no column {text!r} of texts: {hint}? Name it with --text")
    if len(names) > 1:
        others = [name for name in names if name != text]
        notes.append(f"columns that were never learned from are ignored ({len(others)}): {listed(others)}")
    texts = store_texts(python_values(table.column(text), origin=path.name), origin=path.name, some_words=False)
    return NewExamples(texts.x, notes=(*notes, *texts.notes))


def _read_columns(path: Path, learned: Learned) -> NewExamples:
    """Vectors from the columns of a table: those of the names that were learned from, or all, in their order."""
    table, notes = _read_table(path, learned.label)
    names, (width,) = list(table.column_names), learned.shape
    if learned.columns:
        lacking = [name for name in learned.columns if name not in names]
        if lacking:
            raise DataError(f"{path} must have the columns that were learned from, but {listed(lacking)} are not there")
        extra = [name for name in names if name not in learned.columns]
        if extra:
            notes.append(f"columns that were never learned from are ignored ({len(extra)}): {listed(extra)}")
        names = list(learned.columns)
    elif len(names) != width:
        raise DataError(f"{path} must have the {width} columns of the vectors learned from, but has {listed(names)}")
    else:
        notes.append("the vectors that were learned from had no names: columns are taken in the order of the file")
    for name in names:
        if not is_number(table.column(name).type) or table.column(name).null_count:
            raise DataError(f"{path}: every cell must be a number, but column {name!r} has others: fill or remove them")
    raw = np.stack([table.column(name).to_numpy().astype(np.float64) for name in names], axis=1)
    return NewExamples(_numbers(raw, learned, path), notes=tuple(notes))


def _numbers(raw: np.ndarray, learned: Learned, path: Path) -> np.ndarray:
    """Rows of finite numbers as the model's own are stored: float64 where they were a table, else float32."""
    if raw.ndim != 2 or raw.shape[1:] != learned.shape:
        raise DataError(f"{path} must have rows of {learned.shape[0]} numbers, but came with shape {raw.shape}")
    finite = as_float32(raw, path.name)
    return raw.astype(np.float64) if learned.held.array else finite


def _read_embedded(path: Path, learned: Learned, features: Path | None, is_table: bool) -> NewExamples:
    """Embeddings that stand for the rows of a table."""
    if learned.held.kind != Kind.VECTOR:
        raise DataError(
            f"the model learned from examples of kind {learned.held.kind}, not embeddings: leave --features out"
        )
    if features is None:
        raise DataError(f"the model learned from embeddings: give those of the rows of {path} with --features FILE.npy")
    if not is_table:
        raise DataError(f"--features goes with the table that it stands for, but {path} is none: leave --features out")
    table, notes = _read_table(path, learned.label)
    x = read_embeddings(features)
    if len(x) != table.num_rows:
        raise DataError(
            f"{features} must have a row for each row of {path}, but {len(x):,} came for {table.num_rows:,}: make it"
            " from the same rows"
        )
    return NewExamples(x, notes=tuple(notes))


def _read_sounds(path: Path, learned: Learned, progress: Progress) -> NewExamples:
    from synthsieve.data.spectrograms import from_files

    files, notes = _files(path, SOUNDS, "sounds")
    if not files:
        raise _unlike(path, Kind.SOUND)
    return NewExamples(from_files(files, learned.held.about, progress), _named(files, path), notes)


def _read_images(path: Path, learned: Learned, progress: Progress) -> NewExamples | None:
    """The image at `path`, or all below that folder; None where it is another file."""
    from synthsieve.data.image_folder import SUFFIXES, read_images_alike

    files, notes = _files(path, SUFFIXES, "images")
    if not files and path.is_file():
        return None
    if not files or learned.held.kind != Kind.IMAGE:
        raise _unlike(path, learned.held.kind)
    x, more = read_images_alike(files, learned.shape, progress)
    return NewExamples(x, _named(files, path), (*notes, *more))


def _files(path: Path, suffixes: tuple[str, ...], what: str) -> tuple[list[Path], tuple[str, ...]]:
    """The file itself, or all files of these endings below a folder, sorted; hidden ones are passed over."""
    if path.is_file():
        return ([path] if path.suffix.lower() in suffixes else []), ()
    found, others, folders = [], 0, set()
    for folder, inside, names in os.walk(path):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        seen = [Path(folder) / name for name in names if not name.startswith(".")]
        ours = [file for file in seen if file.suffix.lower() in suffixes]
        found += ours
        others += len(seen) - len(ours)
        folders |= {folder} if ours and Path(folder) != path else set()
    notes = [f"{others:,} files that are not {what} are ignored"] if others else []
    if folders:
        notes.append(f"{what} lie in {len(folders):,} folders; predictions do not use the names of folders")
    return sorted(found, key=lambda file: file.relative_to(path).parts), tuple(notes)


def _named(files: Sequence[Path], root: Path) -> tuple[str, ...]:
    """Names below the folder that was given; halves of characters, which no table can hold, as \\udcff."""
    names = [file.name if file == root else file.relative_to(root).as_posix() for file in files]
    return tuple(name.encode("utf-8", errors="backslashreplace").decode() for name in names)


def _read_arrays(path: Path, learned: Learned) -> NewExamples:
    """The array of an .npz, .npy, .mat or idx file."""
    suffix, held, notes = path.suffix.lower(), learned.held, []
    if suffix == ".npz":
        arrays = read_npz(path)
        if "x" not in arrays:
            raise DataError(f"{path} must hold an array 'x', but holds {listed(list(arrays)) or 'none'}: rename it")
        if "y" in arrays:
            notes.append("the labels y are there; predictions do not use them")
        others = [name for name in arrays if name not in ("x", "y", "range")]
        if others:
            notes.append(f"arrays other than x are ignored ({len(others)}): {listed(others)}")
        raw, span = arrays["x"], value_range_in(arrays, path)
        if held.images is not None and span is not None:
            held = replace(held, about=replace(held.images, value_range=span))
    elif suffix == ".npy":
        raw = read_npy(path)
    elif suffix == ".mat":
        from synthsieve.data.svhn import read_mat_images

        raw = read_mat_images(path)
    else:
        raw = read_idx(path)
    if not raw.ndim or not len(raw):
        raise DataError(f"{path} has no rows: at least one is needed")
    if held.array:
        return NewExamples(_numbers(raw, learned, path), notes=tuple(notes))
    if held.images is None:
        return NewExamples(read_alike(raw, held), notes=tuple(notes))
    features = read_features(raw, origin=path.name, value_range=held.images.range_for(raw))
    span = features.value_range
    if held.images.value_range is None and raw.dtype.kind == "f" and span is not None:
        notes.append(f"the model learned from whole pixels: floats are taken to span [{span[0]:g}, {span[1]:g}]")
    else:
        notes += features.notes
    return NewExamples(features.x, notes=tuple(notes))
