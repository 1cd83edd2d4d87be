"""A folder of examples: images or sounds, by the files that lie in it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from synthsieve.data.dataset import Dataset
from synthsieve.data.sources import Request
from synthsieve.errors import DataError

SOUND_SUFFIX = ".wav"
DEPTH = 2  # train, then a class
UNLABELED_FOLDERS = ("unlabeled", "unlabelled")  # in any case, and with any signs between the letters
PART_FOLDERS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}


def load_folder(request: Request) -> Dataset:
    """The data set in a folder, read as what its files are."""
    # Imported here: images need no scipy, which takes seconds to import.
    from synthsieve.data.image_folder import SUFFIXES, load_image_folder

    sound = _first(request.path, (SOUND_SUFFIX,))
    if sound is None:
        return load_image_folder(request)
    image = _first(request.path, SUFFIXES)
    if image is not None:
        raise DataError(
            f"{request.path} must hold images or sounds, but holds both, such as {image.relative_to(request.path)} and"
            f" {sound.relative_to(request.path)}: give each a folder of its own"
        )
    from synthsieve.data.sound_folder import load_sound_folder

    return load_sound_folder(request)


def is_unlabeled(name: str) -> bool:
    """Whether a folder's name says that what it holds has no label."""
    return re.sub(r"[^a-z]", "", name.casefold()) in UNLABELED_FOLDERS


def part_folders(root: Path, is_data: Callable[[Path], bool]) -> dict[str, Path]:
    """The folders of train, validation and test, among those that are data; none where there is no `train`."""
    found: dict[str, Path] = {}
    for folder in sorted(child for child in root.iterdir() if child.is_dir()):
        for part, names in PART_FOLDERS.items():
            if folder.name.casefold() in names and part not in found and is_data(folder):
                found[part] = folder
    return found if "train" in found else {}


def _first(root: Path, suffixes: tuple[str, ...]) -> Path | None:
    """A file with one of these endings, in the folder, its folders or theirs; hidden ones are passed over."""
    for folder, inside, files in os.walk(root):
        depth = len(Path(folder).relative_to(root).parts)
        inside[:] = sorted(name for name in inside if not name.startswith(".")) if depth < DEPTH else []
        for name in sorted(files):
            if not name.startswith(".") and name.lower().endswith(suffixes):
                return Path(folder) / name
    return None
