"""More examples, read in the same way as the training data: to predict, or as a separate test or validation set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.checks import check, check_unique
from synthsieve.data.dataset import UNLABELED, Dataset, Examples, Kind
from synthsieve.data.formats.arrays import as_float32, read_features
from synthsieve.data.formats.folder import SUFFIXES, files_below
from synthsieve.data.formats.idx import read_idx
from synthsieve.data.formats.npz import read_npy, read_npz, require_array, value_range_in
from synthsieve.data.formats.table import python_values, read_csv, read_paired, read_parquet, tidied
from synthsieve.data.in_memory import InMemoryData, encode_like
from synthsieve.data.modalities.table.rows import read_rows_like
from synthsieve.data.modalities.table.schema import ColumnType, TableSchema, arrow_type, is_number, is_text
from synthsieve.data.modalities.text.encoding import store_texts
from synthsieve.data.registry import load
from synthsieve.errors import DataError
from synthsieve.io.printable import did_you_mean, listed
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
    """What a model was trained on, as far as new examples must agree with it."""

    data: InMemoryData  # the kind, and what is needed to read more of the same
    shape: tuple[int, ...]  # of one example
    columns: tuple[str, ...] = ()  # of vectors, where their columns have names
    label: str | None = None  # the label column, where it is known
    text: str | None = None  # the text column, where it is known
    embedded: bool = False  # whether vectors stood for the rows of a table


@dataclass(frozen=True)
class NewExamples:
    """Examples in the order of their source."""

    x: np.ndarray  # as `data.dataset.Examples` stores them
    files: tuple[str, ...] | None = None  # the name of each file below the given folder; None where examples are rows
    notes: tuple[str, ...] = ()  # messages for the user: what was ignored, what was unknown in training


def with_separate_set(
    dataset: Dataset,
    part: str,
    path: Path,
    *,
    label: str | None = None,
    text: str | None = None,
    features: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """The data set with the labelled examples at `path` as its `test` or `validation` part.

    Columns are read by the schema of the training data; rows without a label are left out.
    """
    is_free = getattr(dataset, part) is None
    check(is_free, f"{dataset.name} already has a {part} set: omit --{part}, or remove that set", "has-set")
    supported = not features and dataset.kind != Kind.SOUND
    advice = f"put others into {part}/ next to train/"
    check(supported, f"--{part} takes a table, an .npz or images: {advice}", "unsupported-set")
    size = f"{dataset.shape[2]}x{dataset.shape[1]}" if dataset.kind == Kind.IMAGE and path.is_dir() else None
    separate = load(str(path), label=label, text=text, image_size=size, progress=progress)
    same = separate.kind == dataset.kind
    check(same, f"{path} must hold {dataset.kind}s, but holds {separate.kind}s", "unlike-training")
    x = separate.train.x
    if not path.is_dir():
        data, columns = InMemoryData(x[:0], dataset.kind, dataset.metadata), dataset.feature_names or ()
        x = read_new(path, ExpectedInput(data, dataset.shape, columns, label, text), progress=progress).x
    got = f"got {x.shape[1:]}"
    fits = x.shape[1:] == dataset.train.x.shape[1:]
    check(fits, f"examples of {path} must have shape {dataset.shape}, {got}", "unlike-training")
    unknown = [name for name in separate.classes if name not in dataset.classes]
    expected = f"labels must be among the training classes {listed(dataset.classes)}"
    check(not unknown, f"{path}: {expected}, got {listed(unknown)}: remove these rows", "unknown-class")
    index = np.array([*map(dataset.classes.index, separate.classes), UNLABELED], dtype=np.int64)
    y = index[separate.train.y]
    known = y != UNLABELED
    notes = (f"{path.name}: {int((~known).sum()):,} rows without a label are left out",) if not known.all() else ()
    more: dict[str, Any] = {part: Examples(x[known], y[known]), "notes": (*dataset.notes, *notes)}
    return replace(dataset, **more)


def read_new(
    path: Path, expected: ExpectedInput, *, features: Path | None = None, progress: Progress | None = None
) -> NewExamples:
    """The examples at `path`; `features` is a file of embeddings, a row for each row of the table at `path`."""
    progress, kind = progress or NullProgress(), Kind.VECTOR if expected.data.array else expected.data.kind
    form = EXPECTED.get(kind, "an .npz with x, or a .npy")
    unlike = DataError(
        f"the model was trained on examples of kind {kind}: expected {form}, got {path}", code="unlike-training"
    )
    check(path.exists(), f"{path} does not exist: expected {form}", "missing-file")
    check(path.is_dir() or path.stat().st_size, f"{path} is empty: copy or write it again", "empty-file")
    is_table = path.suffix.lower() in TABLES and path.is_file()
    if features is not None or (expected.embedded and is_table):
        return _read_embedded(path, expected, features, is_table)
    readers: dict[str, Callable[[Path, ExpectedInput], NewExamples]]
    readers = {Kind.TABLE: _read_rows, Kind.TEXT: _read_texts, Kind.VECTOR: _read_columns}
    if is_table and kind in readers:
        return readers[kind](path, expected)
    if is_table or kind in (Kind.TABLE, Kind.TEXT):
        raise unlike
    files, notes = _files(path, "sounds" if kind == Kind.SOUND else "images")
    if not files and path.is_file() and kind != Kind.SOUND:
        return _read_arrays(path, expected)
    if not files or kind not in (Kind.SOUND, Kind.IMAGE):
        raise unlike
    # Bytes of a name that are not UTF-8, which no table can hold, become \udcff.
    relative = (file.name if file == path else file.relative_to(path).as_posix() for file in files)
    names = tuple(name.encode("utf-8", errors="backslashreplace").decode() for name in relative)
    if kind == Kind.SOUND:
        from synthsieve.data.modalities.sound.reading import from_files

        return NewExamples(from_files(files, expected.data.metadata, progress), names, notes)
    from synthsieve.data.formats.image_folder import read_images_like

    x, more = read_images_like(files, expected.shape, progress)
    return NewExamples(x, names, (*notes, *more))


def _read_table(
    path: Path, label: str | None, as_written: Sequence[str] = (), *, tidy: bool = True
) -> tuple[Any, list[str]]:
    """A pyarrow table without the label, and notes; with `tidy`, a CSV's words for missing cells become null."""
    is_csv = path.suffix.lower() != ".parquet"
    table = read_csv(path, as_written=as_written) if is_csv else read_parquet(path)
    check_unique(table.column_names, str(path))
    check(table.num_rows, f"{path} has no rows: at least one is needed", "no-rows")
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
    types = {one.name: arrow_type(one.arrow) for one in schema.columns if one.type is ColumnType.CATEGORY}
    words = [name for name, kind in types.items() if is_text(getattr(kind, "value_type", kind))]
    table, notes = _read_table(path, label, words)
    rows = read_rows_like(table, schema, origin=str(path))
    return NewExamples(rows.x, notes=(*notes, *rows.notes))


def _ignored(names: list[str], used: Sequence[str]) -> list[str]:
    """A note on the columns that are not used, if there are any."""
    others = [name for name in names if name not in used]
    return [f"columns that were not in the training data are ignored ({len(others)}): {listed(others)}"] * bool(others)


def _read_texts(path: Path, expected: ExpectedInput) -> NewExamples:
    table, notes = _read_table(path, expected.label, [expected.text or TEXT], tidy=False)
    names = list(table.column_names)
    text = expected.text or (names[0] if len(names) == 1 else TEXT)
    hint = f"{did_you_mean(text, names)} Name it with --text"
    check(text in names, f"{path} has no text column {text!r}: {hint}", "missing-column")
    texts = store_texts(python_values(table.column(text), origin=path.name), origin=path.name, some_words=False)
    return NewExamples(texts.x, notes=(*notes, *_ignored(names, [text]), *texts.notes))


def _read_columns(path: Path, expected: ExpectedInput) -> NewExamples:
    """Vectors from the columns of a table: those with the names of the training data, or all, in their order."""
    table, notes = _read_table(path, expected.label)
    names, (width,) = list(table.column_names), expected.shape
    lacking = [name for name in expected.columns if name not in names]
    what = f"{listed(lacking)} are not there" if lacking else f"it has {listed(names)}"
    complete = not lacking and (expected.columns or len(names) == width)
    check(complete, f"{path} must have the {width} columns of the training data, but {what}", "missing-column")
    if expected.columns:
        notes += _ignored(names, expected.columns)
        names = list(expected.columns)
    else:
        notes.append("the columns of the training data had no names: columns are taken in the order of the file")
    for name in names:
        numbers = is_number(table.column(name).type) and not table.column(name).null_count
        check(numbers, f"{path}: column {name!r} has cells that are not numbers: fill them", "not-a-number")
    raw = np.stack([table.column(name).to_numpy().astype(np.float64) for name in names], axis=1)
    return NewExamples(_numbers(raw, expected, path), notes=tuple(notes))


def _numbers(raw: np.ndarray, expected: ExpectedInput, path: Path) -> np.ndarray:
    """Rows of finite numbers as the training data are stored: float64 where they were a table, else float32."""
    fits = raw.ndim == 2 and raw.shape[1:] == expected.shape
    check(fits, f"{path} must have {expected.shape[0]} numbers a row, but has shape {raw.shape}", "unlike-training")
    finite = as_float32(raw, path.name)
    return raw.astype(np.float64) if expected.data.array else finite


def _read_embedded(path: Path, expected: ExpectedInput, features: Path | None, is_table: bool) -> NewExamples:
    """Embeddings that stand for the rows of a table."""
    kind = expected.data.kind
    problem = f"the model was trained on examples of kind {kind}, not embeddings: omit --features"
    check(kind == Kind.VECTOR, problem, "features")
    if features is None:
        problem = f"the model was trained on embeddings: give those of the rows of {path} with --features FILE.npy"
        raise DataError(problem, code="features")
    problem = f"--features needs the table whose rows it stands for, but {path} is not a table: omit --features"
    check(is_table, problem, "features")
    table, notes = _read_table(path, expected.label)
    return NewExamples(read_paired(features, table, path), notes=tuple(notes))


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


def _read_arrays(path: Path, expected: ExpectedInput) -> NewExamples:
    """The array of an .npz, .npy, .mat or idx file."""
    suffix, data, notes = path.suffix.lower(), expected.data, []
    if suffix == ".npz":
        arrays = read_npz(path)
        raw, span = require_array(arrays, path), value_range_in(arrays, path)
        if "y" in arrays:
            notes.append("the labels y are not used for predictions")
        others = [name for name in arrays if name not in ("x", "y", "range")]
        if others:
            notes.append(f"arrays other than x are ignored ({len(others)}): {listed(others)}")
        if data.images is not None and span is not None:
            data = replace(data, metadata=replace(data.images, value_range=span))
    elif suffix == ".mat":
        from synthsieve.data.sources.images import read_mat_images

        raw = read_mat_images(path)
    else:
        raw = read_npy(path) if suffix == ".npy" else read_idx(path)
    check(raw.ndim and len(raw), f"{path} has no rows: at least one is needed", "no-rows")
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
