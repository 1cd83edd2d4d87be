"""Arrays of numbers in MATLAB's files of version 5 to 7.

scipy.io.loadmat is not used: a wrong byte in a file makes it (1.17) end the whole process, and the check that would
prevent that is as long as this reader. A file is a head of 128 bytes, then elements: a type, a length, the content. A
matrix is an element of elements (flags, shape, name, numbers); a compressed one is a matrix in a zlib stream.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from synthsieve.data.checks import check, reading

HEAD = 128
MATRIX, COMPRESSED = 14, 15
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
CLASSES = dict(zip(range(6, 16), ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), strict=True))
COMPLEX = 0x0800
MAX_BYTES = 1 << 31  # of one array; the largest of SVHN takes 225 MB


def read_mat5(
    path: Path, names: Collection[str]
) -> tuple[dict[str, tuple[str, tuple[int, ...]]], dict[str, np.ndarray]]:
    """Type and shape of each array in the file, and the arrays of real numbers among `names`.

    Text, structures, cells and objects are listed, but not read.
    """
    contents: dict[str, tuple[str, tuple[int, ...]]] = {}
    arrays: dict[str, np.ndarray] = {}
    data = memoryview(path.read_bytes())  # whose slices are no copies
    order = {b"IM": "<", b"MI": ">"}.get(bytes(data[126:HEAD]), "")
    is_mat = order and struct.unpack(f"{order}H", data[124:126])[0] >> 8 == 1
    check(is_mat, f"{path} is not a .mat of version 5 to 7: save it with MATLAB's -v7, or as .npz", "unknown-format")
    with reading(path, ".mat"):
        for matrix in _matrices(data, order):
            name, kind, shape, at = _read_head(matrix, order)
            contents[name] = ("not real numbers" if kind is None else np.dtype(kind).name, shape)
            if kind is not None and name in names:
                code, numbers, _ = _element(matrix, at, order)
                if code not in STORED or math.prod(shape) * int(STORED[code][1]) != len(numbers):
                    raise ValueError(f"array {name[:50]!r} claims shape {shape} but holds another number of bytes")
                values = np.frombuffer(numbers, f"{order}{STORED[code]}")
                arrays[name] = values.reshape(shape, order="F").astype(kind, copy=False)
    return contents, arrays


def _matrices(data: memoryview, order: str) -> Iterator[memoryview]:
    """The content of each matrix."""
    at = HEAD
    while at + 8 <= len(data):
        kind, length = struct.unpack(f"{order}II", data[at : at + 8])
        content, at = data[at + 8 : at + 8 + length], at + 8 + length
        if len(content) < length:
            raise ValueError(f"an element claims {length:,} bytes, but only {len(content):,} are left")
        if kind == COMPRESSED:
            stream = zlib.decompressobj()
            content = memoryview(stream.decompress(content, MAX_BYTES))
            if not stream.eof:
                raise ValueError(f"a compressed array is cut short, or takes more than {MAX_BYTES:,} bytes")
            kind, content = struct.unpack(f"{order}I", content[:4])[0], content[8:]
        if kind == MATRIX:
            yield content


def _read_head(matrix: memoryview, order: str) -> tuple[str, str | None, tuple[int, ...], int]:
    """Name, type (None for other than real numbers) and shape of a matrix, and where its numbers begin."""
    _, flags, at = _element(matrix, 0, order)
    _, sides, at = _element(matrix, at, order)
    _, title, at = _element(matrix, at, order)
    (word,) = struct.unpack(f"{order}I", flags[:4])
    shape = tuple(struct.unpack(f"{order}{len(sides) // 4}i", sides))
    if len(shape) < 2 or min(shape) < 0 or max(shape) > len(matrix):
        raise ValueError(f"an array claims shape {shape}")
    return bytes(title).decode("latin-1"), None if word & COMPLEX else CLASSES.get(word & 0xFF), shape, at


def _element(content: memoryview, at: int, order: str) -> tuple[int, memoryview, int]:
    """Type and content of the element at `at`, and where the next one begins."""
    (word,) = struct.unpack(f"{order}I", content[at : at + 4])
    if word >> 16:  # up to four bytes of content are part of the tag itself
        return word & 0xFFFF, content[at + 4 : at + 4 + min(4, word >> 16)], at + 8
    (length,) = struct.unpack(f"{order}I", content[at + 4 : at + 8])
    return word, content[at + 8 : at + 8 + length], at + 8 + length + -length % 8
