"""Digits as images: scikit-learn's, MNIST, and Street View House Numbers, with any .mat in the same form.

An SVHN file holds X (height, width, channels, n) and y (n, 1), with 10 standing for zero. `photo_id_train.npy` and
`photo_id_test.npy` next to the files, where present, say which photo each digit was cut from.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from synthsieve.data.checks import check
from synthsieve.data.dataset import Dataset, Examples, Kind, Request
from synthsieve.data.download import MNIST, SVHN, obtain
from synthsieve.data.formats.arrays import ArraySet, array_dataset
from synthsieve.data.formats.idx import idx_dataset
from synthsieve.data.formats.mat import read_mat5
from synthsieve.data.formats.npz import read_groups, read_npy
from synthsieve.data.labels import read_labels
from synthsieve.io.printable import listed


def load_digits(request: Request) -> Dataset:
    """The 1,797 digits inside scikit-learn: uint8 (1797, 1, 8, 8), 0..16 scaled to 0..255; no test set, no download."""
    from sklearn.datasets import load_digits as read

    bunch = read()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)[:, None]
    labels = read_labels(bunch.target, origin="digits")
    return Dataset("digits", Kind.IMAGE, labels.classes, Examples(images, labels.y))


def load_mnist(request: Request) -> Dataset:
    """MNIST, 70,000 digits of 28x28 pixels, 10,000 of them the test set."""
    return idx_dataset("mnist", obtain(MNIST, data_dir=request.data_dir, progress=request.progress))


def load_svhn(request: Request) -> Dataset:
    """SVHN, RGB digits of 32x32 pixels."""
    train, test = obtain(SVHN, data_dir=request.data_dir, progress=request.progress)
    return array_dataset("svhn", _read_set(train), _read_set(test))


def load_mat(request: Request) -> Dataset:
    """A .mat in SVHN's form; for a name with `train` in it, the file with `test` in its place is the test set."""
    path = request.path
    test = path.with_name(path.name.replace("train", "test"))
    has_test = "train" in path.name and test.exists()
    return array_dataset(path.stem, _read_set(path), _read_set(test) if has_test else None)


def _read_set(path: Path) -> ArraySet:
    """Images uint8 (n, channels, height, width), digits (n,) and photo ids (n,) or None."""
    images, y = _read_mat(path, ("X", "y"))
    y = y.reshape(-1)
    are_digits = y.dtype.kind in "iuf" and np.isin(y, np.arange(1, 11)).all()
    check(are_digits, f"{path}: labels must be digits 1 to 10, with 10 for zero, got others", "label-range")
    paired = len(images) == len(y)
    check(paired, f"{path} has {len(images)} images, but {len(y)} labels: download it again", "label-count")
    photo_file = path.with_name(f"photo_id_{path.stem.split('_')[0]}.npy")
    photos = read_groups(read_npy(photo_file), len(y), origin=photo_file.name) if photo_file.exists() else None
    return ArraySet(images, y.astype(np.int64) % 10, path.name, path.name, photos)


def read_mat_images(path: Path) -> np.ndarray:
    """Images uint8 (n, channels, height, width); y need not be there."""
    return _read_mat(path, ("X",))[0]


def _read_mat(path: Path, names: tuple[str, ...]) -> list[np.ndarray]:
    """The arrays of these names, of which X is images."""
    contents, arrays = read_mat5(path, names)
    got = listed([f"{name} ({kind} {shape})" for name, (kind, shape) in contents.items()]) or "nothing"
    expected = " and ".join(["X (uint8)", *names[1:]])
    complete = set(names) <= arrays.keys() and contents["X"][0] == "uint8"
    check(complete, f"{path} must hold {expected} as SVHN's files do, but holds {got}", "missing-array")
    x = arrays["X"]
    check(x.ndim == 4, f"{path}: X must be (height, width, channels, n), but has shape {x.shape}", "example-type")
    return [np.ascontiguousarray(x.transpose(3, 2, 0, 1)), *(arrays[name] for name in names[1:])]
