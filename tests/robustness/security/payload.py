"""A pickle that leaves a file behind where somebody loads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Payload:
    """Unpickling it creates the file `mark`."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)
