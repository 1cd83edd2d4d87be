"""Arrays of an untrusted .npz: sizes are checked before memory is allocated, nothing is unpickled, and anything wrong
raises one kind of error."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

# Deflate cannot expand a byte to more than 1032 (zlib's technical details); a header that claims more is wrong.
MAX_EXPANSION = 1032
SLACK = 4096
LAST_CHARACTER = 0x10FFFF  # of Unicode
MAX_EMPTY_LENGTH = 1 << 20  # the longest side of an array that holds nothing at all


class ArchiveError(ValueError):
    """An archive is damaged, holds something other than plain arrays, or claims more than it holds."""


class PickledArrayError(ArchiveError):
    """An array holds Python objects; reading it would run code from the file."""


def read_arrays(path: Path, names: Collection[str] | None = None, *, mapped: bool = False) -> dict[str, np.ndarray]:
    """The arrays of an .npz, or those of `names` that are there; an `ArchiveError` says what is wrong with it.

    With `mapped`, arrays that are not compressed are memory-mapped.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                name: _map_member(path, member)
                if mapped and member.compress_type == zipfile.ZIP_STORED
                else _read_member(archive, member)
                for member in archive.infolist()
                if (name := member.filename.removesuffix(".npy")) and (names is None or name in names)
            }
    except (ArchiveError, OSError):
        raise
    except Exception as error:  # damaged archives raise many kinds, some without a message
        raise ArchiveError(str(error) or type(error).__name__) from None


def read_header(stream: BinaryIO | Any, size: int) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, Fortran order and type of the .npy in `stream`, once they agree with its `size` in bytes."""
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        start = stream.tell()
        shape, fortran, dtype = read(stream)
    except OSError:
        raise
    except Exception as error:  # numpy parses a header as Python text
        raise ArchiveError(str(error).partition("\n")[0] or type(error).__name__) from None
    if dtype.hasobject:
        raise PickledArrayError("it holds Python objects, which are refused")
    length = stream.tell() - start + np.lib.format.MAGIC_LEN
    if not all(type(side) is int and side >= 0 for side in shape) or length + math.prod(shape) * dtype.itemsize != size:
        raise ArchiveError(f"an array claims shape {shape} of {dtype} but has another number of bytes, {size}")
    # Any number of empty rows fills no byte.
    if length == size and max(shape, default=0) > MAX_EMPTY_LENGTH:
        raise ArchiveError(f"an array claims shape {shape} and type {dtype} but holds nothing")
    return shape, fortran, dtype


def checked_text(array: np.ndarray) -> np.ndarray:
    """The same array; text with invalid Unicode code points is refused."""
    if array.dtype.kind == "U" and array.size:
        codes = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if codes.max() > LAST_CHARACTER:
            raise ArchiveError("its text contains invalid Unicode code points")
    return array


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    if member.file_size > member.compress_size * MAX_EXPANSION + SLACK:
        raise ArchiveError(f"{member.filename!r} claims an impossible {member.file_size:,} bytes")
    with archive.open(member) as stream:
        read_header(stream, member.file_size)
    with archive.open(member) as stream:
        return checked_text(np.asarray(np.lib.format.read_array(stream, allow_pickle=False)))


def _map_member(path: Path, member: zipfile.ZipInfo) -> np.ndarray:
    with path.open("rb") as file:
        file.seek(member.header_offset + 26)
        name_length, extra_length = struct.unpack("<HH", file.read(4))
        file.seek(member.header_offset + 30 + name_length + extra_length)
        shape, fortran, dtype = read_header(file, member.file_size)
        if math.prod(shape) == 0:
            return np.empty(shape, dtype)
        return checked_text(np.memmap(path, dtype, "r", file.tell(), shape, order="F" if fortran else "C"))
