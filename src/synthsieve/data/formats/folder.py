"""Folders of examples: a folder for each class, and one named `unlabeled` (or `Unlabelled`, ...) for the rest.

Where the folder holds `train`, laid out like that, `test` and `val` (`valid`, `validation`) next to it are the test set
and the validation set, and `unlabeled` next to it holds more training examples. Files may lie in subfolders of a class.
Hidden files and folders are ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from synthsieve.data.checks import check
from synthsieve.data.dataset import UNLABELED, Dataset, Examples, Kind
from synthsieve.data.formats.audio import SUFFIXES as SOUND_SUFFIXES
from synthsieve.data.labels import read_labels

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
SUFFIXES = {"images": IMAGE_SUFFIXES, "sounds": SOUND_SUFFIXES}
METADATA = "metadata.csv"
MAX_DEPTH = 2  # of the folders in which `folder_kind` looks for files: train, then a class
UNLABELED_FOLDERS = ("unlabeled", "unlabelled")  # in any case, and with any signs between the letters
PART_FOLDERS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}


@dataclass(frozen=True)
class Listing:
    """The files of a folder, before any is read."""

    files: list[Path]
    names: list[str]  # the class of each; "" = unlabelled
    groups: np.ndarray | None = None  # the group of each
    skipped: int = 0  # files of other types
    loose: int = 0  # files of this type outside of class folders


def folder_kind(root: Path) -> str:
    """`images` or `sounds`, by the files in the folder; `images` where there are none."""
    found: dict[str, Path] = {}
    for file in files_below(root, MAX_DEPTH):
        for kind, suffixes in SUFFIXES.items():
            if file.suffix.lower() in suffixes:
                found.setdefault(kind, file.relative_to(root))
    such = " and ".join(map(str, found.values()))
    check(len(found) < 2, f"{root} holds both images and sounds, such as {such}: separate them", "mixed-folder")
    return next(iter(found), "images")


def list_parts(
    root: Path, kind: str, list_part: Callable[[Path], Listing] | None = None
) -> tuple[dict[str, Listing], list[str]]:
    """The files of "train" and, where there are such folders, of "validation" and "test"; and notes for the user."""
    list_part = list_part or (lambda folder: list_classes(folder, kind))
    folders = _part_folders(root)
    listings, notes = {part: list_part(folder) for part, folder in folders.items()}, list[str]()
    if not folders:
        listings, loose = {"train": list_part(root)}, 0
    else:
        loose = _count_loose(root, kind)
        for folder in subfolders(root):
            if is_unlabeled(folder.name):
                listings["train"] = _joined(listings["train"], _list_class(folder, "", kind))
            elif folder not in folders.values():
                is_part = any(folder.name.casefold() in names for names in PART_FOLDERS.values())
                why = "has no class folders" if is_part else "is neither train, validation nor test"
                count = len(_list_class(folder, "", kind).files)
                notes.append(f"{folder.name}/ {why}: its {count:,} {kind} were skipped")
    loose += sum(listing.loose for listing in listings.values())
    if loose:
        notes.insert(0, f"{loose:,} {kind} outside of class folders were skipped")
    if "validation" in listings:
        count = len(listings["validation"].files)
        notes.append(f"the {count:,} {kind} of {folders['validation'].name}/ are the validation set")
    skipped = sum(listing.skipped for listing in listings.values())
    if skipped:
        notes.append(f"{skipped:,} files that are not {kind} were skipped")
    return listings, notes


def folder_dataset(
    root: Path,
    kind: Kind,
    listings: dict[str, Listing],
    read: Callable[[list[Path]], np.ndarray],
    notes: list[str],
    metadata: object = None,
) -> Dataset:
    """The data set of the listed files, which `read` turns into examples."""
    classes: tuple[str, ...] | None = None
    parts = {}
    for part in ("train", "validation", "test"):
        if part in listings:
            names, groups = listings[part].names, listings[part].groups if part == "train" else None
            problem = f"{root}: the name -1 could mean unlabelled or a class: rename it"
            check(str(UNLABELED) not in names, problem, "ambiguous-label")
            labels = read_labels(np.array(names, dtype=str), origin=root.name, classes=classes)
            classes = labels.classes
            numbers = None if groups is None else np.unique(groups, return_inverse=True)[1].reshape(-1)
            parts[part] = Examples(read(listings[part].files), labels.y, numbers)
    return Dataset(
        root.resolve().name,
        kind,
        classes or (),
        parts["train"],
        parts.get("test"),
        notes=tuple(notes),
        metadata=metadata,
        validation=parts.get("validation"),
    )


def list_classes(root: Path, kind: str) -> Listing:
    """Files by the class folder they lie in, at any depth."""
    files: list[Path] = []
    names: list[str] = []
    skipped = 0
    for folder in subfolders(root):
        unlabeled = is_unlabeled(folder.name)
        found = _list_class(folder, "" if unlabeled else folder.name, kind)
        problem = f"{folder} must hold {kind} of one class, but holds none: fill or remove it"
        check(found.files or unlabeled, problem, "empty-class-folder")
        files, names, skipped = files + found.files, names + found.names, skipped + found.skipped
    also = f", or a {METADATA} that names the files" if kind == "sounds" else ""
    check(files, f"{root} must hold a folder of {kind} for each class{also}, but holds neither", "no-class-folders")
    return Listing(files, names, None, skipped, _count_loose(root, kind))


def is_unlabeled(name: str) -> bool:
    """Whether a folder's name says that its files have no label."""
    return re.sub(r"[^a-z]", "", name.casefold()) in UNLABELED_FOLDERS


def subfolders(root: Path) -> list[Path]:
    """The folders in a folder, sorted, without hidden ones."""
    return sorted(child for child in root.iterdir() if child.is_dir() and not child.name.startswith("."))


def files_below(root: Path, max_depth: int | None = None) -> Iterator[Path]:
    """Files at any depth, those of the folder first, without hidden ones; folders behind links are not entered."""
    for parent, inside, _ in os.walk(root):
        folder = Path(parent)
        deep = max_depth is not None and len(folder.relative_to(root).parts) >= max_depth
        inside[:] = [] if deep else sorted(name for name in inside if not name.startswith("."))
        yield from sorted(child for child in folder.iterdir() if child.is_file() and not child.name.startswith("."))


def _count_loose(folder: Path, kind: str) -> int:
    return sum(file.suffix.lower() in SUFFIXES[kind] for file in files_below(folder, 0))


def _list_class(folder: Path, name: str, kind: str) -> Listing:
    inside = list(files_below(folder))
    files = [file for file in inside if file.suffix.lower() in SUFFIXES[kind]]
    return Listing(files, [name] * len(files), skipped=len(inside) - len(files))


def _joined(train: Listing, more: Listing) -> Listing:
    """Training files and files next to them, each a group of its own."""
    groups = None if train.groups is None else np.append(train.groups, [f"/{file}" for file in more.files])
    skipped = train.skipped + more.skipped
    return Listing(train.files + more.files, train.names + more.names, groups, skipped, train.loose)


def _part_folders(root: Path) -> dict[str, Path]:
    """The folders of train, validation and test that hold classes; none where there is no `train`."""
    found: dict[str, Path] = {}
    for folder in subfolders(root):
        for part, names in PART_FOLDERS.items():
            if folder.name.casefold() in names and (subfolders(folder) or (folder / METADATA).is_file()):
                found.setdefault(part, folder)
    return found if "train" in found else {}
