"""How much to keep."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """How much to keep: a `fraction` of each class, a `count` over all classes, or the fewest with L <= `bound`."""

    fraction: float | None = None
    count: int | None = None
    bound: float | None = None
