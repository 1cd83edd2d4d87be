"""The idx format of MNIST: two zero bytes, a type, the number of dimensions, each as a big-endian word, then the data.

Plain or gzipped. Images and labels are two files whose names differ in one word.
"""

from __future__ import annotations

import gzip
import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from synthsieve.data.checks import check, reading
from synthsieve.data.dataset import Dataset, Request
from synthsieve.data.formats.arrays import ArraySet, array_dataset
from synthsieve.errors import DataError
from synthsieve.io.npz import MAX_EMPTY_LENGTH, MAX_EXPANSION, SLACK

DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MAX_DIMENSIONS = 4
BLOCK = 1 << 20


def load_idx(request: Request) -> Dataset:
    """An idx pair given by its images file; `t10k-` or `test-` next to `train-` is the test set."""
    images = request.path
    with _open(images) as stream:
        _read_header(stream, images)  # before any labels are looked for: it may be no idx file at all
    files = [images, _labels_beside(images)]
    if images.name.startswith("train"):
        names = (word + images.name.removeprefix("train") for word in ("t10k", "test"))
        test = next((found for name in names if (found := _plain_or_gz(images.with_name(name)))), None)
        files += [test, _labels_beside(test)] if test else []
    return idx_dataset(images.name.split(".")[0], files)


def idx_dataset(name: str, files: list[Path]) -> Dataset:
    """The data set of training images and labels and, where there are four files, test images and labels."""
    sets = [ArraySet(read_idx(x), read_idx(y), x.name, y.name) for x, y in zip(files[::2], files[1::2], strict=True)]
    return array_dataset(name, sets[0], sets[1] if len(sets) > 1 else None)


def _labels_beside(images: Path) -> Path:
    name = images.name.replace("images", "labels")
    for dimensions in ("idx2", "idx3", "idx4"):
        name = name.replace(dimensions, "idx1")
    found = _plain_or_gz(images.with_name(name)) if name != images.name else None
    if found is None:
        raise DataError(
            f"{images} is read as an idx images file, whose labels should lie next to it in {name.removesuffix('.gz')}"
            " or the same with .gz, but neither exists: name the pair ...images-idx3-ubyte and ...labels-idx1-ubyte",
            code="missing-file",
        )
    return found


def _plain_or_gz(path: Path) -> Path | None:
    plain = path.with_name(path.name.removesuffix(".gz"))
    return next((p for p in (path, plain, plain.with_name(plain.name + ".gz")) if p.is_file()), None)


def read_idx(path: Path) -> np.ndarray:
    """The array of an idx file, in the machine's byte order; memory grows with what the file holds, not with claims."""
    data = bytearray()
    with _open(path) as stream:
        shape, dtype = _read_header(stream, path)
        claimed, size = math.prod(shape) * dtype.itemsize, path.stat().st_size
        most = size * MAX_EXPANSION + SLACK if isinstance(stream, gzip.GzipFile) else size
        possible = claimed <= most and (claimed or max(shape) <= MAX_EMPTY_LENGTH)
        check(possible, f"{path}: its header claims shape {shape}, but it has only {size:,} bytes", "damaged-file")
        while len(data) <= claimed and (block := stream.read(min(BLOCK, claimed + 1 - len(data)))):
            data += block
    got = "more" if len(data) > claimed else f"only {len(data):,}"
    check(len(data) == claimed, f"{path} claims {claimed:,} bytes, but has {got}: download it again", "damaged-file")
    return np.frombuffer(data, dtype=dtype, count=math.prod(shape)).reshape(shape).astype(dtype.newbyteorder("="))


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    """The content, unzipped where it is zipped."""
    with reading(path, "an idx file", "it may be cut short, download it again"):
        with path.open("rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
        with cast(BinaryIO, gzip.open(path, "rb") if compressed else path.open("rb")) as stream:
            yield stream


def _read_header(stream: BinaryIO, path: Path) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of the array."""
    head = stream.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in DTYPES or not 1 <= head[3] <= MAX_DIMENSIONS:
        raise DataError(f"{path} must be an idx, .npz, .mat, .csv or .parquet file, or a folder", code="unknown-format")
    words = stream.read(4 * head[3])
    check(len(words) == 4 * head[3], f"{path} ends inside its header: download it again", "damaged-file")
    return struct.unpack(f">{head[3]}I", words), np.dtype(DTYPES[head[2]])
