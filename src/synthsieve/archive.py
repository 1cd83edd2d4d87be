"""Arrays out of an .npz that may hold anything: no claim is believed before the archive bears it out, nothing is
unpickled, and whatever is wrong is one kind of error."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

# Deflate cannot expand a byte to more than 1032 (zlib's technical details); a header that claims more is a lie.
MOST_EXPANSION = 1032
SLACK = 4096
LAST_CHARACTER = 0x10FFFF  # of Unicode
LONGEST_EMPTY = 1 << 20  # the longest side of an array that holds nothing at all


class ArchiveError(ValueError):
    """An archive is not whole, holds something else than plain arrays, or claims more than it holds."""


def read_arrays(path: Path, names: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of an .npz, or those of `names` that are there; an `ArchiveError` says what is wrong with it."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                name: _read_member(archive, member)
                for member in archive.infolist()
                if (name := member.filename.removesuffix(".npy")) and (names is None or name in names)
            }
    except (ArchiveError, OSError):
        raise
    except Exception as error:  # damaged archives and headers fail in a dozen ways, bare ones among them
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
    except Exception as error:  # numpy parses a header as Python text, which fails in as many ways
        raise ArchiveError(str(error).partition("\n")[0] or type(error).__name__) from None
    if dtype.hasobject:
        raise ArchiveError("it holds Python objects, which are refused")
    length = stream.tell() - start + np.lib.format.MAGIC_LEN
    if not all(type(side) is int and side >= 0 for side in shape) or length + math.prod(shape) * dtype.itemsize != size:
        raise ArchiveError(f"an array claims shape {shape} of {dtype} but has another number of bytes, {size}")
    # Nothing, any number of times, fills no byte: such a shape could claim rows without end.
    if length == size and max(shape, default=0) > LONGEST_EMPTY:
        raise ArchiveError(f"an array claims shape {shape} and type {dtype} but holds nothing")
    return shape, fortran, dtype


def checked_text(array: np.ndarray) -> np.ndarray:
    """The same array, if its text, where it is text, is made of characters that there are."""
    if array.dtype.kind == "U" and array.size:
        codes = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if codes.max() > LAST_CHARACTER:
            raise ArchiveError("its text holds characters that there are not")
    return array


def check_expansion(member: zipfile.ZipInfo) -> None:
    """Refuse a member that claims more bytes than packing can have taken away."""
    if member.file_size > member.compress_size * MOST_EXPANSION + SLACK:
        raise ArchiveError(f"{member.filename!r} claims an impossible {member.file_size:,} bytes")


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    check_expansion(member)
    with archive.open(member) as stream:
        read_header(stream, member.file_size)
    with archive.open(member) as stream:
        return checked_text(np.asarray(np.lib.format.read_array(stream, allow_pickle=False)))
