"""A folder of examples: images or sounds, by the files that lie in it."""

from __future__ import annotations

import os
from pathlib import Path

from synthsieve.data.dataset import Dataset
from synthsieve.data.sources import Request
from synthsieve.errors import DataError

SOUND_SUFFIX = ".wav"
DEPTH = 2  # train, then a class


def load_folder(request: Request) -> Dataset:
    """The data set in a folder, read as what its files are."""
    # Imported here: who has images alone needs no scipy for them, and the other way round.
    from synthsieve.data.image_folder import SUFFIXES, load_image_folder
    from synthsieve.data.sound_folder import load_sound_folder

    sound = _first(request.path, (SOUND_SUFFIX,))
    if sound is None:
        return load_image_folder(request)
    image = _first(request.path, SUFFIXES)
    if image is not None:
        raise DataError(
            f"{request.path} must hold images or sounds, but holds both, such as {image.relative_to(request.path)} and"
            f" {sound.relative_to(request.path)}: give each a folder of its own"
        )
    return load_sound_folder(request)


def _first(root: Path, suffixes: tuple[str, ...]) -> Path | None:
    """A file with one of these endings, in the folder, its folders or theirs; hidden ones are passed over."""
    for folder, inside, files in os.walk(root):
        depth = len(Path(folder).relative_to(root).parts)
        inside[:] = sorted(name for name in inside if not name.startswith(".")) if depth < DEPTH else []
        for name in sorted(files):
            if not name.startswith(".") and name.lower().endswith(suffixes):
                return Path(folder) / name
    return None
