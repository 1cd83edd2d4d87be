"""Street View House Numbers: the publisher's .mat files of 32x32 RGB digits, and any .mat in the same form.

X is (height, width, channels, n) and y is (n, 1), with 10 standing for zero. `photo_id_train.npy` and
`photo_id_test.npy` beside the files, where present, say which photo each digit was cut from.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.download import SVHN, obtain
from synthsieve.data.formats.arrays import read_features
from synthsieve.data.formats.mat import read_mat5
from synthsieve.data.formats.npz import read_groups, read_npy
from synthsieve.data.labels import listed, read_labels
from synthsieve.data.modalities.image import ImageForm
from synthsieve.data.registry import Request
from synthsieve.errors import DataError


def load_svhn(request: Request) -> Dataset:
    """SVHN, from `data_dir`, the cache or its publisher."""
    train, test = obtain(SVHN, data_dir=request.data_dir, progress=request.progress)
    return _read_pair("svhn", train, test)


def load_mat(request: Request) -> Dataset:
    """A .mat in SVHN's form; for a name with `train` in it, the file with `test` in its place is the test set."""
    path = request.path
    test = path.with_name(path.name.replace("train", "test"))
    return _read_pair(path.stem, path, test if "train" in path.name and test.exists() else None)


def _read_pair(name: str, train: Path, test: Path | None) -> Dataset:
    images, digits, groups = read_mat(train)
    features = read_features(images, origin=train.name)
    labels = read_labels(digits, origin=train.name)
    test_set, notes = None, features.notes
    if test is not None:
        test_images, test_digits, test_groups = read_mat(test)
        found = read_features(test_images, origin=test.name, value_range=features.value_range)
        test_labels = read_labels(test_digits, origin=test.name, classes=labels.classes)
        test_set = Examples(found.x, test_labels.y, test_groups)
        notes += found.notes
    train_set = Examples(features.x, labels.y, groups)
    form = ImageForm.of(images, features)
    return Dataset(name, Kind.IMAGE, labels.classes, train_set, test_set, notes=notes, metadata=form)


def read_mat(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Images uint8 (n, channels, height, width), digits (n,) and photo ids (n,) or None."""
    found = _arrays(path, ("X", "y"))
    images, y = _images(found["X"], path), found["y"].reshape(-1)
    if y.dtype.kind not in "iuf" or not np.isin(y, np.arange(1, 11)).all():
        raise DataError(f"{path}: labels must be digits 1 to 10, with 10 for zero, but others came", code="label-range")
    if len(images) != len(y):
        raise DataError(f"{path} has {len(images)} images, but {len(y)} labels: download it again", code="label-count")
    return images, y.astype(np.int64) % 10, _photo_ids(path, len(y))


def read_mat_images(path: Path) -> np.ndarray:
    """Images uint8 (n, channels, height, width); y need not be there."""
    return _images(_arrays(path, ("X",))["X"], path)


def _arrays(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    found = read_mat5(path, names)
    if not set(names) <= found.arrays.keys() or found.contents["X"][0] != "uint8":
        came = listed([f"{name} ({kind} {shape})" for name, (kind, shape) in found.contents.items()])
        wanted = " and ".join(["X (uint8)", *names[1:]])
        raise DataError(
            f"{path} must hold {wanted} as SVHN's files do, but holds {came or 'nothing'}", code="missing-array"
        )
    return found.arrays


def _images(x: np.ndarray, path: Path) -> np.ndarray:
    if x.ndim != 4:
        raise DataError(f"{path}: X must be (height, width, channels, n), but has shape {x.shape}", code="example-type")
    return np.ascontiguousarray(x.transpose(3, 2, 0, 1))


def _photo_ids(path: Path, rows: int) -> np.ndarray | None:
    """`photo_id_train.npy` beside `train_32x32.mat`, and so on."""
    beside = path.with_name(f"photo_id_{path.stem.split('_')[0]}.npy")
    return read_groups(read_npy(beside), rows, origin=beside.name) if beside.exists() else None
