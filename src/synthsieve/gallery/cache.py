"""The things used last, up to a number of bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """A cache that forgets what was used longest ago; safe from several threads."""

    def __init__(self, most_bytes: int) -> None:
        self._most, self._used, self._lock = most_bytes, 0, Lock()
        self._kept: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()

    def get(self, key: Hashable) -> Value | None:
        """What was put under `key`; None where it is no longer, or never was, there."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: Hashable, value: Value, size: int) -> Value:
        """Keep `value`, of `size` bytes; it comes back."""
        with self._lock:
            if key in self._kept:
                self._used -= self._kept.pop(key)[1]
            self._kept[key] = (value, size)
            self._used += size
            while self._used > self._most and self._kept:
                self._used -= self._kept.popitem(last=False)[1][1]
        return value
