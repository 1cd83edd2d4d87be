"""What networks must know of the examples they are built for: the kind, the shape, and what is particular to the kind.

An encoding describes its examples by a `Layout`; the model chooses networks and likelihood by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Layout:
    """One example as networks see it.

    Attributes:
        kind: the modality, such as `image`, `vector`, `table`, `sound`, `text`, or one of the user's own.
        shape: of the array that `Encoding.encode` makes of one example.
        details: what else the networks of that kind need (the columns of a table, the size of a vocabulary): numbers,
            text, and tuples of them.
    """

    kind: str
    shape: tuple[int, ...]
    details: tuple[Any, ...] = ()

    @classmethod
    def of(cls, given: Layout | Sequence[int]) -> Layout:
        """The layout itself, or that of a plain array: three sides are an image, anything else is a vector."""
        if isinstance(given, Layout):
            return given
        return cls("image" if len(given) == 3 else "vector", tuple(given))
