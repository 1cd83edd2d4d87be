"""A folder of .wav files: a folder for each class and one named `unlabeled`; or any files with a `metadata.csv`.

`metadata.csv` has the columns `file` or `file_name` (its place under the folder) and `label` (empty = unlabelled), and
perhaps `group` or `speaker`: sounds of one stay on one side of a split. Where the folder holds `train`, `val` and
`test`, each laid out like that, they are the three sets.
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from synthsieve.data.dataset import UNLABELED, Dataset, Examples, Kind
from synthsieve.data.folder import is_unlabeled, part_folders
from synthsieve.data.labels import Labels, check_lengths, listed, read_labels
from synthsieve.data.reasons import brief
from synthsieve.data.sound_format import SoundFormat
from synthsieve.data.sources import Request
from synthsieve.data.spectrograms import format_of_files, from_files
from synthsieve.errors import DataError

METADATA = "metadata.csv"
FILE_COLUMNS = ("file", "file_name")  # ours, and that of Hugging Face's audiofolder
GROUP_COLUMNS = ("group", "speaker")
SUFFIX = ".wav"


@dataclass(frozen=True)
class Listing:
    """The sounds of a folder, before any is read.

    Attributes:
        files: where they lie.
        labels: text (n,), "" = unlabelled.
        groups: text (n,), or None where nobody says which sounds belong together.
        passed_over: how many other files there were.
    """

    files: list[Path]
    labels: np.ndarray
    groups: np.ndarray | None
    passed_over: int


def load_sound_folder(request: Request) -> Dataset:
    """Spectrograms float32 (n, 1, mels, frames), in order of folder and file name, or in that of the metadata."""
    root = request.path
    folders = {} if (root / METADATA).is_file() else part_folders(root, _holds_sounds)
    train_root = folders.get("train", root)
    listing = _list_sounds(train_root)
    labels = _labels(listing, train_root)
    form = format_of_files(listing.files)
    train = Examples(from_files(listing.files, form, request.progress), labels.y, _group_indices(listing))
    held_out: dict[str, Examples] = {}
    for part in ("validation", "test"):
        if part in folders:
            others = _list_sounds(folders[part])
            y = _labels(others, folders[part], labels.classes).y
            held_out[part] = Examples(from_files(others.files, form, request.progress), y)
    return Dataset(
        root.resolve().name,
        Kind.SOUND,
        labels.classes,
        train,
        held_out.get("test"),
        notes=_notes(listing, form),
        about=form,
        validation=held_out.get("validation"),
    )


def _holds_sounds(folder: Path) -> bool:
    return folder.is_dir() and ((folder / METADATA).is_file() or any(child.is_dir() for child in folder.iterdir()))


def _list_sounds(root: Path) -> Listing:
    return _from_metadata(root) if (root / METADATA).is_file() else _from_folders(root)


def _from_folders(root: Path) -> Listing:
    """Sounds by the folder each lies in."""
    files: list[Path] = []
    names: list[str] = []
    passed_over = 0
    for folder in sorted(child for child in root.iterdir() if child.is_dir() and not child.name.startswith(".")):
        inside = sorted(f for f in folder.iterdir() if f.is_file() and not f.name.startswith("."))
        sounds = [f for f in inside if f.suffix.lower() == SUFFIX]
        if not sounds and not is_unlabeled(folder.name):
            raise DataError(f"{folder} must hold sounds of one class, but holds none: fill or remove it")
        files += sounds
        names += [folder.name] * len(sounds)
        passed_over += len(inside) - len(sounds)
    if not files:
        raise DataError(
            f"{root} must hold a folder of .wav files for each class, or a {METADATA} that names the files, but holds"
            " neither: sort the files into folders, or write the table"
        )
    labels = np.array(["" if is_unlabeled(name) else name for name in names], dtype=str)
    return Listing(files, labels, None, passed_over)


def _from_metadata(root: Path) -> Listing:
    """Sounds by the rows of the table."""
    table = root / METADATA
    rows = _read_rows(table)
    columns = list(rows[0])
    file = next((name for name in FILE_COLUMNS if name in columns), FILE_COLUMNS[0])
    missing = [name for name in (file, "label") if name not in columns]
    if missing:
        raise DataError(f"{table} needs the columns file and label, but has {listed(columns)}: add {listed(missing)}")
    files = [_inside(root, row[file], table) for row in rows]
    often, times = Counter(path.resolve() for path in files).most_common(1)[0]
    if times > 1:
        raise DataError(f"{table} names {often.name} {times} times: keep one row for each file")
    for name in ("label", *GROUP_COLUMNS):
        check_lengths((row.get(name, "") for row in rows), origin=f"{table}, column {name!r}")
    group = next((name for name in GROUP_COLUMNS if name in columns), None)
    groups = None if group is None else np.array([row[group] for row in rows], dtype=str)
    if groups is not None and (groups == "").any():
        raise DataError(f"{table}: every row needs a {group}, but row {int(np.argmax(groups == '')) + 2} has none")
    return Listing(files, np.array([row["label"] for row in rows], dtype=str), groups, 0)


def _read_rows(table: Path) -> list[dict[str, str]]:
    try:
        with table.open(encoding="utf-8-sig", newline="") as stream:
            lines = list(csv.reader(stream, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{table} cannot be read as CSV in UTF-8 ({brief(error)}): write it anew") from None
    header, rows = [name.strip() for name in (lines or [[]])[0]], [line for line in lines[1:] if line]
    if len(set(header)) < len(header):
        raise DataError(f"{table}: every column needs a name of its own, but {listed(header)} came")
    if not rows:
        raise DataError(f"{table} must have a header and a row for each sound, but has none")
    for row in rows:
        if len(row) != len(header):
            raise DataError(f"{table}: every row needs {len(header)} cells, as the header, but {listed(row)} came")
    return [dict(zip(header, (cell.strip() for cell in row), strict=True)) for row in rows]


def _inside(root: Path, name: str, table: Path) -> Path:
    """The file of that name, which must lie under the folder."""
    path = root / name
    if not name or "\0" in name or not path.resolve().is_relative_to(root.resolve()):
        raise DataError(f"{table}: files must lie inside {root}, but {name!r} came: name them from there")
    if path.suffix.lower() != SUFFIX or not path.is_file():
        raise DataError(
            f"{table} names {name!r}, but no such .wav file lies in {root}: correct the row, or add the file"
        )
    return path


def _labels(listing: Listing, root: Path, classes: tuple[str, ...] | None = None) -> Labels:
    if str(UNLABELED) in listing.labels:
        raise DataError(f"{root}: -1 could mean unlabelled or a class: leave the label empty, or name it otherwise")
    return read_labels(listing.labels, origin=root.name, classes=classes)


def _group_indices(listing: Listing) -> np.ndarray | None:
    if listing.groups is None:
        return None
    indices: np.ndarray = np.unique(listing.groups, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return indices


def _notes(listing: Listing, form: SoundFormat) -> tuple[str, ...]:
    notes = [
        f"sounds become {form.mels} x {form.frames} spectrograms at {form.rate:,} Hz, stretched to {form.seconds:.2f} s"
    ]
    if listing.passed_over:
        notes.append(f"{listing.passed_over} files that are not sounds were passed over")
    return tuple(notes)
