"""NumPy's files: `.npz` with x and y (and optionally groups, x_test, y_test, range), and single `.npy` arrays.

Pickled arrays are refused: reading one would run code from the file.
"""

from __future__ import annotations

import zipfile
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from synthsieve.data.checks import brief
from synthsieve.data.dataset import Dataset, Examples
from synthsieve.data.formats.arrays import Features, read_features
from synthsieve.data.labels import check_classes, listed, read_labels
from synthsieve.data.modalities.image import ImageForm
from synthsieve.data.registry import Request
from synthsieve.errors import DataError
from synthsieve.io.npz import checked_text, read_arrays, read_header

KNOWN = ("x", "y", "groups", "x_test", "y_test", "range")


def load_npz(request: Request) -> Dataset:
    """A data set from an `.npz`; y is integers (-1 = unlabelled) or text (empty = unlabelled)."""
    path = request.path
    arrays = read_npz(path)
    x, y = require_x(arrays, path), require_x(arrays, path, "y")
    if ("x_test" in arrays) != ("y_test" in arrays):
        raise DataError(f"{path}: x_test and y_test belong together, but only one of them came", code="missing-array")
    features = read_features(x, origin=f"{path.name}, x", value_range=value_range_in(arrays, path))
    labels = read_labels(y, origin=f"{path.name}, y")
    groups = read_groups(arrays["groups"], len(labels.y), origin=f"{path.name}, groups") if "groups" in arrays else None
    test, notes = None, list(features.notes)
    if "x_test" in arrays:
        test, more = _read_test(arrays, path, features, labels.classes)
        notes += more
    return Dataset(
        path.stem,
        features.kind,
        labels.classes,
        Examples(features.x, labels.y, groups),
        test,
        notes=(*check_classes(labels, origin=f"{path.name}: y"), *(f"{path.name}: {note}" for note in notes)),
        metadata=ImageForm.of(x, features),
    )


def require_x(arrays: dict[str, np.ndarray], path: Path, name: str = "x") -> np.ndarray:
    """The array of that name; where there is none, the error says which others there are."""
    if name not in arrays:
        close = get_close_matches(name, [key.lower() for key in arrays], n=1, cutoff=0.1)
        raise DataError(
            f"{path} must hold an array {name!r}, but holds {listed(list(arrays)) or 'none'}"
            + (f": rename the right one, perhaps {close[0]!r}" if close else ""),
            code="missing-array",
        )
    return arrays[name]


def _read_test(
    arrays: dict[str, np.ndarray], path: Path, train: Features, classes: tuple[str, ...]
) -> tuple[Examples, list[str]]:
    features = read_features(arrays["x_test"], origin=f"{path.name}, x_test", value_range=train.value_range)
    if features.kind is not train.kind:
        raise DataError(
            f"{path}: x_test must be {train.kind}s like x, but holds {features.kind}s", code="unlike-training"
        )
    y = read_labels(arrays["y_test"], origin=f"{path.name}, y_test", classes=classes).y
    return Examples(features.x, y), [f"x_test: {note}" for note in features.notes]


def value_range_in(arrays: dict[str, np.ndarray], path: Path) -> tuple[float, float] | None:
    """What float images span, by the array `range` of the file; None where it has none."""
    if "range" not in arrays:
        return None
    given = arrays["range"]
    if given.shape != (2,) or given.dtype.kind not in "iuf" or not given[0] < given[1]:
        raise DataError(
            f"{path}: range must be two numbers, low and high, but came as {given.tolist()}", code="value-range"
        )
    return float(given[0]), float(given[1])


def read_groups(raw: np.ndarray, rows: int, *, origin: str) -> np.ndarray:
    """Groups int64 (n,), numbered by order of their integer or text names."""
    if raw.shape != (rows,) or raw.dtype.kind not in "iuU":
        raise DataError(
            f"{origin} must be {rows} integers or texts, but came as {raw.dtype} {raw.shape}", code="group-shape"
        )
    return np.unique(raw, return_inverse=True)[1].reshape(-1).astype(np.int64)


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The known arrays of an `.npz`, each header checked against the archive before its array is read; others empty."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [member.filename.removesuffix(".npy") for member in archive.infolist()]
        return {**dict.fromkeys(names, np.zeros(0)), **read_arrays(path, KNOWN)}
    except Exception as error:  # zipfile raises many kinds for damaged files
        raise _refused(path, error, ".npz") from None


def _refused(path: Path, error: Exception, kind: str) -> DataError:
    if "Python objects" in str(error):
        return DataError(f"{path} holds a pickled array, which is refused: save plain numbers or text", code="pickled")
    return DataError(
        f"{path} cannot be read as {kind} ({brief(error)}): it may be cut short, write it again", code="damaged-file"
    )


def read_npy(path: Path) -> np.ndarray:
    """One `.npy` array; its header is checked against the size of the file before anything is allocated."""
    try:
        with path.open("rb") as stream:
            if stream.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:  # numpy would try others
                raise DataError(
                    f"{path} is not a .npy array: write it with numpy.save, as plain numbers", code="unknown-format"
                )
            stream.seek(0)
            read_header(stream, path.stat().st_size)
            stream.seek(0)
            return checked_text(np.lib.format.read_array(stream, allow_pickle=False))
    except DataError:
        raise
    except Exception as error:  # as above
        raise _refused(path, error, ".npy") from None
