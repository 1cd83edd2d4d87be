"""NumPy's files: `.npz` with x and y (and optionally groups, x_test, y_test, range), and single `.npy` arrays.

Pickled arrays are refused: reading one would run code from the file.
"""

from __future__ import annotations

import zipfile
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from synthsieve.data.checks import check, reading
from synthsieve.data.dataset import Dataset, Request
from synthsieve.data.formats.arrays import ArraySet, array_dataset, read_features
from synthsieve.data.labels import Labels, check_classes
from synthsieve.errors import DataError
from synthsieve.io.npz import PickledArrayError, checked_text, read_arrays, read_header
from synthsieve.io.printable import listed

KNOWN = ("x", "y", "groups", "x_test", "y_test", "range")


def load_npz(request: Request) -> Dataset:
    """A data set from an `.npz`; y is integers (-1 = unlabelled) or text (empty = unlabelled)."""
    path, name = request.path, request.path.name
    arrays = read_npz(path)
    x, y = require_array(arrays, path, "x"), require_array(arrays, path, "y")
    paired = ("x_test" in arrays) == ("y_test" in arrays)
    check(paired, f"{path}: expected both x_test and y_test or neither, got one", "missing-array")
    groups = read_groups(arrays["groups"], len(y), origin=f"{name}, groups") if "groups" in arrays else None
    test = None
    if "x_test" in arrays:
        test = ArraySet(arrays["x_test"], arrays["y_test"], f"{name}, x_test", f"{name}, y_test")
    train = ArraySet(x, y, f"{name}, x", f"{name}, y", groups)
    dataset = array_dataset(path.stem, train, test, value_range_in(arrays, path))
    notes = check_classes(Labels(dataset.train.y, dataset.classes), origin=f"{name}: y")
    return replace(dataset, notes=notes + dataset.notes)


def require_array(arrays: dict[str, np.ndarray], path: Path, name: str = "x") -> np.ndarray:
    """The array of that name; where there is none, the error says which others there are."""
    if name not in arrays:
        close = get_close_matches(name, [key.lower() for key in arrays], n=1, cutoff=0.1)
        hint = f": rename the right one, perhaps {close[0]!r}" if close else ""
        got = listed(list(arrays)) or "none"
        raise DataError(f"{path} must hold an array {name!r}, but holds {got}{hint}", code="missing-array")
    return arrays[name]


def value_range_in(arrays: dict[str, np.ndarray], path: Path) -> tuple[float, float] | None:
    """What float images span, by the array `range` of the file; None where it has none."""
    if "range" not in arrays:
        return None
    given = arrays["range"]
    valid = given.shape == (2,) and given.dtype.kind in "iuf" and given[0] < given[1]
    check(valid, f"{path}: range must be two numbers, low and high, got {given.tolist()}", "value-range")
    return float(given[0]), float(given[1])


def read_groups(raw: np.ndarray, rows: int, *, origin: str) -> np.ndarray:
    """Groups int64 (n,), numbered by order of their integer or text names."""
    valid = raw.shape == (rows,) and raw.dtype.kind in "iuU"
    check(valid, f"{origin} must be {rows} integers or texts, got {raw.dtype} {raw.shape}", "group-shape")
    return np.unique(raw, return_inverse=True)[1].reshape(-1).astype(np.int64)


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The known arrays of an `.npz`, each header checked against the archive before its array is read; others empty."""
    with reading(path, ".npz"):
        try:
            with zipfile.ZipFile(path) as archive:
                names = [member.filename.removesuffix(".npy") for member in archive.infolist()]
            return {**dict.fromkeys(names, np.zeros(0)), **read_arrays(path, KNOWN)}
        except PickledArrayError:
            raise _pickled(path) from None


def read_npy(path: Path) -> np.ndarray:
    """One `.npy` array; its header is checked against the size of the file before anything is allocated."""
    magic = np.lib.format.MAGIC_PREFIX
    with reading(path, ".npy"), path.open("rb") as stream:
        is_npy = stream.read(len(magic)) == magic  # numpy would try other formats
        check(is_npy, f"{path} is not a .npy array: write it with numpy.save, as plain numbers", "unknown-format")
        stream.seek(0)
        try:
            read_header(stream, path.stat().st_size)
        except PickledArrayError:
            raise _pickled(path) from None
        stream.seek(0)
        return checked_text(np.lib.format.read_array(stream, allow_pickle=False))


def _pickled(path: Path) -> DataError:
    return DataError(f"{path} holds a pickled array, which is refused: save plain numbers or text", code="pickled")


def read_embeddings(path: Path) -> np.ndarray:
    """float32 (n, features): the array of a .npy, or the one named x of an .npz."""
    check(path.is_file(), f"{path} is not a file: give the .npy or .npz with the embeddings", "missing-file")
    raw = require_array(read_npz(path), path) if path.suffix.lower() == ".npz" else read_npy(path)
    check(raw.ndim == 2, f"{path}: embeddings must have shape (n, features), got {raw.shape}", "example-type")
    return read_features(raw, origin=path.name).x
