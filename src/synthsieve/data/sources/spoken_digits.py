"""Free Spoken Digit Dataset: 3,000 recordings DIGIT_SPEAKER_TAKE.wav of six speakers, 8 kHz; a group is a speaker."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from synthsieve.data.dataset import Dataset, Examples, Kind, Request
from synthsieve.data.download import cache_dir
from synthsieve.data.labels import read_labels
from synthsieve.data.modalities.sound.format import SoundFormat
from synthsieve.data.modalities.sound.reading import from_files
from synthsieve.errors import DataError

NAME = re.compile(r"(?P<digit>\d)_(?P<speaker>[^_]+)_(?P<take>\d+)\.wav")
PUBLISHER = "github.com/Jakobovski/free-spoken-digit-dataset"
FOLDERS = ("", "recordings", "spoken-digits/recordings", "spoken-digits", "fsdd/recordings", "fsdd")
FORM = SoundFormat()


def load_spoken_digits(request: Request) -> Dataset:
    """Spectrograms in order of file name; the source has no test set, so whole speakers are held out."""
    folder = find_recordings(request.data_dir)
    found = [(path, match) for path in sorted(folder.iterdir()) if (match := NAME.fullmatch(path.name))]
    digits = read_labels(np.array([match["digit"] for _, match in found]), origin=folder.name)
    _, speakers = np.unique([match["speaker"] for _, match in found], return_inverse=True)
    x = from_files([path for path, _ in found], FORM, request.progress)
    train = Examples(x, digits.y, speakers.astype(np.int64))
    return Dataset("spoken-digits", Kind.SOUND, digits.classes, train, metadata=FORM)


def find_recordings(data_dir: Path | None) -> Path:
    """The folder of recordings under `data_dir` or the cache.

    It is not downloaded: the publisher ships a git repository, whose archives have no fixed checksum.
    """
    roots = [cache_dir()] if data_dir is None else [Path(data_dir), cache_dir()]
    for folder in (root / name for root in roots for name in FOLDERS):
        if folder.is_dir() and any(NAME.fullmatch(path.name) for path in folder.iterdir()):
            return folder
    problem = f"no recordings named DIGIT_SPEAKER_TAKE.wav lie in {roots[0] / 'spoken-digits' / 'recordings'}"
    advice = f"unpack the folder `recordings` of {PUBLISHER} there, or name it with --data-dir"
    raise DataError(f"{problem}: {advice}", code="missing-data")
