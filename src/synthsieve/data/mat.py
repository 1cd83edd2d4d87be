"""Arrays of numbers in MATLAB's files of version 5 to 7, as SVHN's are; read here, for a library that reads all of the
format in C can be made to crash by a damaged file.

A file is a head of 128 bytes, then elements: a type, a length, the content. A matrix is an element of elements (its
class, its sides, its name, its numbers); a packed one is a matrix within a zlib stream.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from synthsieve.archive import LONGEST_EMPTY
from synthsieve.errors import DataError

HEAD = 128
MATRIX, PACKED = 14, 15
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
CLASSES = {
    6: "float64",
    7: "float32",
    8: "int8",
    9: "uint8",
    10: "int16",
    11: "uint16",
    12: "int32",
    13: "uint32",
    14: "int64",
    15: "uint64",
}
OTHER = {1: "cell", 2: "struct", 3: "object", 4: "char", 5: "sparse"}
DESCRIPTION = 4096  # bytes within which a matrix has told its class, sides and name
MOST_SIDES = 16


@dataclass(frozen=True)
class Matrix:
    """What an array says of itself, and where in its element the numbers begin."""

    name: str
    kind: str
    shape: tuple[int, ...]
    start: int


@dataclass(frozen=True)
class MatFile:
    """What a file holds: the kind and shape of each array by name, and those arrays that were asked for."""

    held: dict[str, tuple[str, tuple[int, ...]]]
    arrays: dict[str, np.ndarray]


def read_mat5(path: Path, wanted: Collection[str]) -> MatFile:
    """The arrays of plain real numbers among `wanted`; a ValueError, zlib.error or struct.error tells of damage."""
    held: dict[str, tuple[str, tuple[int, ...]]] = {}
    arrays = {}
    with path.open("rb") as file:
        order = _order(file, path)
        for packed, content in _elements(file, path.stat().st_size, order):
            unpacked = _Unpacked(content) if packed else None
            start = content[:DESCRIPTION] if unpacked is None else unpacked.first(DESCRIPTION)
            if packed:
                start = _within_matrix(start, order)
            matrix = _described(start, order)
            held[matrix.name] = (matrix.kind, matrix.shape)
            if matrix.name in wanted and matrix.kind in CLASSES.values():
                whole = content if unpacked is None else unpacked.whole()[8:]
                arrays[matrix.name] = _numbers(whole, matrix, order)
    return MatFile(held, arrays)


def _order(file: BinaryIO, path: Path) -> str:
    head = file.read(HEAD)
    order = {b"IM": "<", b"MI": ">"}.get(head[126:128])
    if order is None or struct.unpack(f"{order}H", head[124:126])[0] >> 8 != 1:
        raise DataError(f"{path} is no .mat file of version 5 to 7: save it with MATLAB's -v7, or as .npz")
    return order


def _elements(file: BinaryIO, size: int, order: str) -> Iterator[tuple[bool, bytes]]:
    """Each matrix: whether it is packed, and its content."""
    while len(tag := file.read(8)) == 8:
        kind, length = struct.unpack(f"{order}II", tag)
        if length > size - file.tell():
            raise ValueError(f"an element claims {length:,} bytes, but only {size - file.tell():,} are left")
        if kind in (MATRIX, PACKED):
            yield kind == PACKED, file.read(length)
        else:
            file.seek(length, 1)


class _Unpacked:
    """A zlib stream, unpacked as far as it is asked for."""

    def __init__(self, packed: bytes) -> None:
        self._stream, self._start = zlib.decompressobj(), b""
        self._packed = packed

    def first(self, count: int) -> bytes:
        self._start = self._stream.decompress(self._packed, count)
        return self._start

    def whole(self) -> bytes:
        return self._start + self._stream.decompress(self._stream.unconsumed_tail) + self._stream.flush()


def _within_matrix(content: bytes, order: str) -> bytes:
    kind, _ = struct.unpack(f"{order}II", content[:8])
    if kind != MATRIX:
        raise ValueError(f"a packed element is of kind {kind}, not a matrix")
    return content[8:]


def _described(content: bytes, order: str) -> Matrix:
    """Class, sides and name, from the beginning of a matrix."""
    flags, at = _part(content, 0, order)
    sides, at = _part(content, at, order)
    name, at = _part(content, at, order)
    (word,) = struct.unpack(f"{order}I", flags[:4])
    code, is_complex = word & 0xFF, bool(word & 0x0800)
    kind = OTHER.get(code, "unknown") if code not in CLASSES else "complex" if is_complex else CLASSES[code]
    if not 8 <= len(sides) <= 4 * MOST_SIDES or len(sides) % 4:
        raise ValueError(f"an array of {len(sides) // 4} sides")
    shape = struct.unpack(f"{order}{len(sides) // 4}i", sides)
    if min(shape) < 0 or (not math.prod(shape) and max(shape) > LONGEST_EMPTY):
        raise ValueError(f"an array claims shape {shape}")
    return Matrix(name.decode("latin-1"), kind, shape, at)


def _numbers(content: bytes, matrix: Matrix, order: str) -> np.ndarray:
    """The array itself; what it claims and what is there must be the same."""
    kind, length, at, _ = _tag(content, matrix.start, order)
    if kind not in STORED:
        raise ValueError(f"numbers are stored as kind {kind}")
    stored = np.dtype(f"{order}{STORED[kind]}")
    if math.prod(matrix.shape) * stored.itemsize != length or length > len(content) - at:
        raise ValueError(f"array {matrix.name[:50]!r} claims shape {matrix.shape} but holds another number of bytes")
    values = np.frombuffer(content, stored, math.prod(matrix.shape), at) if length else np.empty(0, stored)
    return values.reshape(matrix.shape, order="F").astype(matrix.kind, copy=False)


def _part(content: bytes, at: int, order: str) -> tuple[bytes, int]:
    """The content of the element at `at`, and where the next one begins."""
    _, length, start, end = _tag(content, at, order)
    if start + length > len(content):
        raise ValueError("an array ends within its description")
    return content[start : start + length], end


def _tag(content: bytes, at: int, order: str) -> tuple[int, int, int, int]:
    """Type and length of the element at `at`, where its content begins and where the next element does.

    Up to four bytes of content stand within the tag itself.
    """
    if at + 8 > len(content):
        raise ValueError("an array ends within its description")
    (word,) = struct.unpack(f"{order}I", content[at : at + 4])
    if word >> 16:
        if word >> 16 > 4:
            raise ValueError("a short element claims more than four bytes")
        return word & 0xFFFF, word >> 16, at + 4, at + 8
    (length,) = struct.unpack(f"{order}I", content[at + 4 : at + 8])
    return word, length, at + 8, at + 8 + length + -length % 8
