"""The idx format of MNIST: two zero bytes, a type, the number of dimensions, each as a big-endian word, then the data.

Plain or gzipped. Images and labels are two files whose names differ in one word.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from synthsieve.data.checks import brief, check_declared_size
from synthsieve.data.dataset import Dataset, Examples
from synthsieve.data.formats.arrays import read_features
from synthsieve.data.labels import read_labels
from synthsieve.data.modalities.image import ImageForm
from synthsieve.data.registry import Request
from synthsieve.errors import DataError

DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MAX_DIMENSIONS = 4
BLOCK = 1 << 20


def load_idx(request: Request) -> Dataset:
    """An idx pair given by its images file; `t10k-` or `test-` beside `train-` is the test set."""
    images = request.path
    with _reading(images) as (stream, _):
        _read_shape(stream, images)  # before any labels are looked for: it may be no idx file at all
    test = None
    if images.name.startswith("train"):
        for word in ("t10k", "test"):
            test = test or _plain_or_gz(images.with_name(word + images.name.removeprefix("train")))
    return read_sets(
        images.name.split(".")[0], (images, _labels_beside(images)), (test, _labels_beside(test)) if test else None
    )


def read_sets(name: str, train: tuple[Path, Path], test: tuple[Path, Path] | None) -> Dataset:
    images = read_idx(train[0])
    features = read_features(images, origin=train[0].name)
    labels = read_labels(read_idx(train[1]), origin=train[1].name)
    test_set, notes = None, features.notes
    if test is not None:
        found = read_features(read_idx(test[0]), origin=test[0].name, value_range=features.value_range)
        test_set = Examples(found.x, read_labels(read_idx(test[1]), origin=test[1].name, classes=labels.classes).y)
        notes += found.notes
    train_set = Examples(features.x, labels.y)
    form = ImageForm.of(images, features)
    return Dataset(name, features.kind, labels.classes, train_set, test_set, notes=notes, metadata=form)


def _labels_beside(images: Path) -> Path:
    name = images.name.replace("images", "labels")
    for dimensions in ("idx2", "idx3", "idx4"):
        name = name.replace(dimensions, "idx1")
    found = _plain_or_gz(images.with_name(name)) if name != images.name else None
    if found is None:
        raise DataError(
            f"{images} is read as an idx images file, whose labels should lie beside it in {name.removesuffix('.gz')}"
            " or the same with .gz, but neither exists: name the pair ...images-idx3-ubyte and ...labels-idx1-ubyte",
            code="missing-file",
        )
    return found


def _plain_or_gz(path: Path) -> Path | None:
    plain = path.with_name(path.name.removesuffix(".gz"))
    return next((p for p in (path, plain, plain.with_name(plain.name + ".gz")) if p.is_file()), None)


def read_idx(path: Path) -> np.ndarray:
    """The array of an idx file, in the machine's byte order; its header is checked before anything is allocated."""
    with _reading(path) as (stream, compressed):
        shape, dtype = _read_shape(stream, path)
        claimed = check_declared_size(path, shape, dtype.itemsize, what="its header", compressed=compressed)
        data = _read_at_most(stream, claimed + 1)
    if len(data) != claimed:
        more = "more" if len(data) > claimed else f"only {len(data):,}"
        raise DataError(f"{path} claims {claimed:,} bytes, but {more} came: download it again", code="damaged-file")
    return np.frombuffer(data, dtype=dtype, count=math.prod(shape)).reshape(shape).astype(dtype.newbyteorder("="))


@contextmanager
def _reading(path: Path) -> Iterator[tuple[BinaryIO, bool]]:
    """The content, unzipped where it is zipped, and whether it was."""
    try:
        with path.open("rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
        with cast(BinaryIO, gzip.open(path, "rb") if compressed else path.open("rb")) as stream:
            yield stream, compressed
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read ({brief(error)}): it may be cut short, download it again", code="damaged-file"
        ) from None


def _read_shape(stream: BinaryIO, path: Path) -> tuple[tuple[int, ...], np.dtype]:
    head = stream.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in DTYPES or not 1 <= head[3] <= MAX_DIMENSIONS:
        raise DataError(f"{path} must be an idx, .npz, .mat, .csv or .parquet file, or a folder", code="unknown-format")
    words = stream.read(4 * head[3])
    if len(words) < 4 * head[3]:
        raise DataError(f"{path} ends inside its header: download it again", code="damaged-file")
    return struct.unpack(f">{head[3]}I", words), np.dtype(DTYPES[head[2]])


def _read_at_most(stream: BinaryIO, most: int) -> bytearray:
    """Up to `most` bytes, in blocks: memory grows with what is there, not with what a header claims."""
    data = bytearray()
    while len(data) < most and (block := stream.read(min(BLOCK, most - len(data)))):
        data += block
    return data
