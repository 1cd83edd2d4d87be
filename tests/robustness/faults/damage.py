"""Files that were cut off or that lost a bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[bytes], bytes]


def _flipped(seed: int) -> Damage:
    def flip(data: bytes) -> bytes:
        place = random.Random(seed).randrange(8 * len(data))
        changed = bytearray(data)
        changed[place // 8] ^= 1 << place % 8
        return bytes(changed)

    return flip


CUTS: dict[str, Damage] = {"empty": lambda data: b"", "half": lambda data: data[: len(data) // 2]}
FLIPS: dict[str, Damage] = {f"bit {seed}": _flipped(seed) for seed in range(4)}


def damage(path: Path, kind: Damage) -> None:
    path.write_bytes(kind(path.read_bytes()))
