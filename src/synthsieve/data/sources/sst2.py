"""SST-2: phrases of film reviews, negative or positive (Socher et al. 2013, as GLUE divides them)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from synthsieve.data.checks import brief
from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.download import cache_dir
from synthsieve.data.labels import read_labels
from synthsieve.data.modalities.text.sentences import Texts, store_texts
from synthsieve.data.registry import Request
from synthsieve.errors import DataError

FILES = ("train.tsv", "dev.tsv")
CLASSES = ("negative", "positive")
PAGE = "https://gluebenchmark.com/tasks"


def load_sst2(request: Request) -> Dataset:
    """`train.tsv` and, as the test set, `dev.tsv`: a header, then a label (0 or 1) and a sentence in each row.

    They are looked for in `data_dir`, its folder `sst2`, and the cache. The two columns may come in either order. In
    the training file most rows are phrases cut out of a whole sentence; rows of one sentence resemble each other.
    """
    folder = find_files(request.data_dir)
    (train, train_y), (test, test_y) = (_read(folder / name) for name in FILES)
    dtype = max(train.x.dtype, test.x.dtype, key=lambda one: one.itemsize)
    return Dataset(
        "sst2",
        Kind.TEXT,
        CLASSES,
        Examples(train.x.astype(dtype), train_y),
        Examples(test.x.astype(dtype), test_y),
        notes=(*train.notes, *test.notes),
    )


def find_files(data_dir: Path | None) -> Path:
    """The folder of the two files, `data_dir` or the cache; a DataError where they are in neither."""
    given = [] if data_dir is None else [Path(data_dir), Path(data_dir) / "sst2"]
    folders = [*given, cache_dir() / "sst2"]
    for folder in folders:
        if all((folder / name).is_file() for name in FILES):
            return folder
    raise DataError(
        f"sst2 needs {FILES[0]} and {FILES[1]}, found in none of {', '.join(map(str, folders))}: download SST-2 from"
        f" {PAGE} and name its folder with --data-dir",
        code="missing-data",
    )


def _read(path: Path) -> tuple[Texts, np.ndarray]:
    """The sentences and their classes, int64 (n,)."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read ({brief(error)}): download it again", code="damaged-file") from None
    header = lines[0].strip().split("\t")
    if len(header) != 2 or "label" not in header:
        raise DataError(f"{path} needs a header with label and sentence, but has {header}", code="missing-column")
    rows = [line.rstrip("\r").split("\t") for line in lines[1:] if line.strip()]
    wrong = next((number for number, row in enumerate(rows, start=2) if len(row) != 2), None)
    if wrong is not None:
        raise DataError(f"{path}: row {wrong} is not a label and a sentence: download it again", code="damaged-file")
    column = header.index("label")
    labels = read_labels(np.array([row[column] for row in rows], dtype=str), origin=path.name, classes=("0", "1"))
    return store_texts([row[1 - column] for row in rows], origin=path.name), labels.y
