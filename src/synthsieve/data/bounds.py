"""A header may claim any size; nothing is allocated before the claim is held against the size of the file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from synthsieve.archive import LONGEST_EMPTY, MOST_EXPANSION, SLACK
from synthsieve.errors import DataError


def check_claim(path: Path, shape: Sequence[int], item_size: int, *, what: str, compressed: bool = True) -> int:
    """The bytes that `shape` of `item_size` needs, if a file of this size can hold them at all."""
    claimed = math.prod(shape) * item_size
    size = path.stat().st_size
    most = size * MOST_EXPANSION + SLACK if compressed else size
    empty = not claimed and max(shape, default=0) > LONGEST_EMPTY  # nothing, any number of times, fills no byte
    if claimed > most or empty or any(side < 0 for side in shape):
        raise DataError(
            f"{path}: {what} claims shape {tuple(shape)}, {claimed:,} bytes, but the file has only {size:,}:"
            " it is damaged or cut short, fetch it again"
        )
    return claimed
