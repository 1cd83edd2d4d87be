"""SST-2: phrases of film reviews, negative or positive (Socher et al. 2013, as GLUE divides them)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from synthsieve.data.checks import check, reading
from synthsieve.data.dataset import Dataset, Examples, Kind, Request
from synthsieve.data.download import cache_dir
from synthsieve.data.labels import read_labels
from synthsieve.data.modalities.text.encoding import Texts, store_texts
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
    train_set, test_set = Examples(train.x.astype(dtype), train_y), Examples(test.x.astype(dtype), test_y)
    return Dataset("sst2", Kind.TEXT, CLASSES, train_set, test_set, notes=train.notes + test.notes)


def find_files(data_dir: Path | None) -> Path:
    """The folder of the two files, `data_dir` or the cache; a DataError where they are in neither."""
    given = [] if data_dir is None else [Path(data_dir), Path(data_dir) / "sst2"]
    folders = [*given, cache_dir() / "sst2"]
    for folder in folders:
        if all((folder / name).is_file() for name in FILES):
            return folder
    problem = f"sst2 needs {FILES[0]} and {FILES[1]}, found in none of {', '.join(map(str, folders))}"
    advice = f"download SST-2 from {PAGE} and name its folder with --data-dir"
    raise DataError(f"{problem}: {advice}", code="missing-data")


def _read(path: Path) -> tuple[Texts, np.ndarray]:
    """The sentences and their classes, int64 (n,)."""
    with reading(path, "text in UTF-8", "download it again"):
        lines = path.read_text(encoding="utf-8").split("\n")
    header = lines[0].strip().split("\t")
    valid = len(header) == 2 and "label" in header
    check(valid, f"{path} needs a header with label and sentence, but has {header}", "missing-column")
    rows = [line.rstrip("\r").split("\t") for line in lines[1:] if line.strip()]
    wrong = next((number for number, row in enumerate(rows, start=2) if len(row) != 2), None)
    check(wrong is None, f"{path}: row {wrong} is not a label and a sentence: download it again", "damaged-file")
    column = header.index("label")
    labels = read_labels(np.array([row[column] for row in rows], dtype=str), origin=path.name, classes=("0", "1"))
    return store_texts([row[1 - column] for row in rows], origin=path.name), labels.y
