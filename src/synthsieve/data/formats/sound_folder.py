"""Folders of sounds; their layout is described in `formats.folder`, or by a `metadata.csv`.

`metadata.csv` has the columns `file` or `file_name` (a path in the folder) and `label` (empty = unlabelled), and
perhaps `group` or `speaker`: sounds of one group stay on one side of a split.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np

from synthsieve.data.checks import brief
from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.formats.audio import SUFFIXES
from synthsieve.data.formats.folder import METADATA, Listing, list_classes, list_parts, read_folder_labels
from synthsieve.data.labels import check_lengths, listed
from synthsieve.data.modalities.sound.reading import format_of_files, from_files
from synthsieve.data.registry import Request
from synthsieve.errors import DataError

FILE_COLUMNS = ("file", "file_name")  # ours, and that of Hugging Face's audiofolder
GROUP_COLUMNS = ("group", "speaker")


def load_sound_folder(request: Request) -> Dataset:
    """Spectrograms float32 (n, 1, mels, frames), in order of folder and file name, or in that of the metadata."""
    root = request.path
    if (root / METADATA).is_file():
        listings, notes = {"train": _from_metadata(root)}, list[str]()
    else:
        listings, notes = list_parts(root, "sounds", _list_sounds)
    train = listings["train"]
    form = format_of_files(train.files)
    groups = None if train.groups is None else np.unique(train.groups, return_inverse=True)[1].reshape(-1)
    classes, parts = None, {}
    for part in ("train", "validation", "test"):
        if part in listings:
            labels = read_folder_labels(listings[part], root, classes)
            classes = labels.classes
            x = from_files(listings[part].files, form, request.progress)
            parts[part] = Examples(x, labels.y, groups if part == "train" else None)
    shape = f"{form.mels} x {form.frames} spectrograms at {form.rate:,} Hz, stretched to {form.seconds:.2f} s"
    return Dataset(
        root.resolve().name,
        Kind.SOUND,
        classes or (),
        parts["train"],
        parts.get("test"),
        notes=(f"sounds become {shape}", *notes),
        metadata=form,
        validation=parts.get("validation"),
    )


def _list_sounds(root: Path) -> Listing:
    return _from_metadata(root) if (root / METADATA).is_file() else list_classes(root, "sounds")


def _from_metadata(root: Path) -> Listing:
    """Sounds by the rows of the table."""
    table = root / METADATA
    rows = _read_rows(table)
    columns = list(rows[0])
    file = next((name for name in FILE_COLUMNS if name in columns), FILE_COLUMNS[0])
    missing = [name for name in (file, "label") if name not in columns]
    if missing:
        raise DataError(f"{table} has the columns {listed(columns)}: add {listed(missing)}", code="missing-column")
    files = [_inside(root, row[file], table) for row in rows]
    often, times = Counter(path.resolve() for path in files).most_common(1)[0]
    if times > 1:
        raise DataError(f"{table} names {often.name} {times} times: keep one row for each file", code="repeated-file")
    for name in ("label", *GROUP_COLUMNS):
        check_lengths((row.get(name, "") for row in rows), origin=f"{table}, column {name!r}")
    group = next((name for name in GROUP_COLUMNS if name in columns), None)
    groups = None if group is None else np.array([row[group] for row in rows], dtype=str)
    if groups is not None and (groups == "").any():
        raise DataError(
            f"{table}: every row needs a {group}, but row {int(np.argmax(groups == '')) + 2} has none", code="no-group"
        )
    return Listing(files, [row["label"] for row in rows], groups)


def _read_rows(table: Path) -> list[dict[str, str]]:
    try:
        with table.open(encoding="utf-8-sig", newline="") as stream:
            lines = list(csv.reader(stream, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"{table} cannot be read as CSV in UTF-8 ({brief(error)}): write it again", code="damaged-file"
        ) from None
    header, rows = [name.strip() for name in (lines or [[]])[0]], [line for line in lines[1:] if line]
    if len(set(header)) < len(header):
        raise DataError(
            f"{table}: every column needs a name of its own, but {listed(header)} came", code="repeated-column"
        )
    if not rows:
        raise DataError(f"{table} must have a header and a row for each sound, but has none", code="no-rows")
    for row in rows:
        if len(row) != len(header):
            raise DataError(f"{table}: a row needs {len(header)} cells, but {listed(row)} came", code="damaged-file")
    return [dict(zip(header, (cell.strip() for cell in row), strict=True)) for row in rows]


def _inside(root: Path, name: str, table: Path) -> Path:
    """The file of that name, which must lie in the folder."""
    path = root / name
    if not name or "\0" in name or not path.resolve().is_relative_to(root.resolve()):
        raise DataError(
            f"{table}: files must lie inside {root}, but {name!r} came: use paths relative to it", code="outside-folder"
        )
    if path.suffix.lower() not in SUFFIXES or not path.is_file():
        raise DataError(f"{table} names {name!r}, but {root} has no such audio file: correct it", code="missing-file")
    return path
