"""Folders of sounds; their layout is described in `formats.folder`, or by a `metadata.csv`.

`metadata.csv` has the columns `file` or `file_name` (a path in the folder) and `label` (empty = unlabelled), and
perhaps `group` or `speaker`: sounds of one group stay on one side of a split.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np

from synthsieve.data.checks import check, check_unique, reading
from synthsieve.data.dataset import Dataset, Kind, Request
from synthsieve.data.formats.audio import SUFFIXES
from synthsieve.data.formats.folder import METADATA, Listing, folder_dataset, list_classes, list_parts
from synthsieve.data.labels import check_lengths
from synthsieve.data.modalities.sound.reading import format_of_files, from_files
from synthsieve.io.printable import listed

FILE_COLUMNS = ("file", "file_name")  # ours, and that of Hugging Face's audiofolder
GROUP_COLUMNS = ("group", "speaker")


def load_sound_folder(request: Request) -> Dataset:
    """Spectrograms float32 (n, 1, mels, frames), in order of folder and file name, or in that of the metadata."""
    root = request.path
    if (root / METADATA).is_file():
        listings, notes = {"train": _list_sounds(root)}, list[str]()
    else:
        listings, notes = list_parts(root, "sounds", _list_sounds)
    form = format_of_files(listings["train"].files)
    shape = f"{form.mels} x {form.frames} spectrograms at {form.rate:,} Hz, stretched to {form.seconds:.2f} s"
    notes.insert(0, f"sounds become {shape}")
    return folder_dataset(
        root, Kind.SOUND, listings, lambda files: from_files(files, form, request.progress), notes, form
    )


def _list_sounds(root: Path) -> Listing:
    """Sounds by the rows of the metadata, or by class folders where there are none."""
    table = root / METADATA
    if not table.is_file():
        return list_classes(root, "sounds")
    rows = _read_rows(table)
    columns = list(rows[0])
    file = next((name for name in FILE_COLUMNS if name in columns), FILE_COLUMNS[0])
    missing = [name for name in (file, "label") if name not in columns]
    check(not missing, f"{table} has the columns {listed(columns)}: add {listed(missing)}", "missing-column")
    files = [_inside(root, row[file], table) for row in rows]
    often, times = Counter(path.resolve() for path in files).most_common(1)[0]
    check(times == 1, f"{table} names {often.name} {times} times: keep one row for each file", "repeated-file")
    for name in ("label", *GROUP_COLUMNS):
        check_lengths((row.get(name, "") for row in rows), origin=f"{table}, column {name!r}")
    group = next((name for name in GROUP_COLUMNS if name in columns), None)
    groups = None if group is None else np.array([row[group] for row in rows], dtype=str)
    if groups is not None:
        empty = int(np.argmax(groups == "")) + 2
        check((groups != "").all(), f"{table}: every row needs a {group}, but row {empty} has none", "no-group")
    return Listing(files, [row["label"] for row in rows], groups)


def _read_rows(table: Path) -> list[dict[str, str]]:
    with reading(table, "CSV in UTF-8", "write it again"), table.open(encoding="utf-8-sig", newline="") as stream:
        lines = [[cell.strip() for cell in line] for line in csv.reader(stream, strict=True)]
    header, rows = (lines or [[]])[0], [line for line in lines[1:] if line]
    check_unique(header, str(table))
    check(rows, f"{table} must have a header and a row for each sound, but has none", "no-rows")
    wrong = next((row for row in rows if len(row) != len(header)), [])
    check(not wrong, f"{table}: a row needs {len(header)} cells, got {listed(wrong)}", "damaged-file")
    return [dict(zip(header, row, strict=True)) for row in rows]


def _inside(root: Path, name: str, table: Path) -> Path:
    """The file of that name, which must lie in the folder."""
    path = root / name
    inside = name and "\0" not in name and path.resolve().is_relative_to(root.resolve())
    advice = "use paths relative to it"
    check(inside, f"{table}: files must lie inside {root}, got {name!r}: {advice}", "outside-folder")
    is_sound = path.suffix.lower() in SUFFIXES and path.is_file()
    check(is_sound, f"{table} names {name!r}, but {root} has no such audio file: correct it", "missing-file")
    return path
