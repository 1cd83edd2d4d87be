"""What a Parquet file says of its column chunks, read from its footer (Thrift's compact protocol) by ourselves.

pyarrow tells the same, but ends the whole process where a chunk's description is damaged.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAGIC = b"PAR1"
DEEPEST = 64  # structures within each other; a footer has five
# Fields by their numbers in parquet.thrift.
ROW_GROUPS, COLUMNS, META_DATA, NAME_PARTS, NUM_VALUES, UNCOMPRESSED = 4, 1, 3, 3, 5, 6


@dataclass(frozen=True)
class Chunk:
    """A column within a row group: its name, how many values it holds, and their bytes before packing."""

    column: str
    num_values: int
    uncompressed: int


def chunks(path: Path) -> list[Chunk]:
    """Every chunk of the file; a ValueError where its footer is none."""
    try:
        groups = _Reader(_footer(path)).structure().get(ROW_GROUPS, [])
        described = [column[META_DATA] for group in groups for column in group.get(COLUMNS, [])]
        found = [
            Chunk(b".".join(one[NAME_PARTS]).decode("utf-8", "replace"), int(one[NUM_VALUES]), int(one[UNCOMPRESSED]))
            for one in described
        ]
        if any(chunk.num_values < 0 or chunk.uncompressed < 0 for chunk in found):
            raise ValueError("its footer counts below nothing")
        return found
    except (LookupError, TypeError, AttributeError, struct.error) as error:
        raise ValueError(f"its footer is damaged ({error!r})") from None


def _footer(path: Path) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        length, magic = struct.unpack("<I4s", file.read(8))
        if magic != MAGIC or length > size - 12:
            raise ValueError("it has no footer")
        file.seek(size - 8 - length)
        return file.read(length)


class _Reader:
    """Values of the compact protocol, one after another: structures as {number of the field: value}."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.depth = data, 0, 0

    def structure(self) -> dict[int, Any]:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ValueError("its footer is nested too deeply")
        fields, number = {}, 0
        while header := self._byte():
            number = number + (header >> 4) if header >> 4 else self._signed()
            kind = header & 15
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind)  # truth is told by the header alone
        self.depth -= 1
        return fields

    def _value(self, kind: int) -> Any:
        readers: dict[int, Callable[[], Any]] = {
            1: self._byte,
            2: self._byte,
            3: self._byte,
            4: self._signed,
            5: self._signed,
            6: self._signed,
            7: lambda: self._take(8),
            8: lambda: self._take(self._unsigned()),
            9: lambda: list(self._items()),
            10: lambda: list(self._items()),
            11: lambda: list(self._pairs()),
            12: self.structure,
        }
        if kind not in readers:
            raise ValueError(f"its footer has a value of kind {kind}")
        return readers[kind]()

    def _items(self) -> Iterator[Any]:
        header = self._byte()
        count = header >> 4 if header >> 4 < 15 else self._unsigned()
        for _ in range(count):
            yield self._value(header & 15)

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        count = self._unsigned()
        kinds = self._byte() if count else 0
        for _ in range(count):
            yield self._value(kinds >> 4), self._value(kinds & 15)

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise ValueError("its footer ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def _unsigned(self) -> int:
        value = 0
        for place in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << place
            if byte < 128:
                return value
        raise ValueError("its footer has a number without an end")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
