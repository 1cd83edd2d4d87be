"""What networks must know of their input. An encoding gives an `InputSpec`; networks and likelihood depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class InputSpec:
    """One example as networks see it.

    `details` are what else the networks of that kind need (the columns of a table, the size of a vocabulary): numbers,
    text, and tuples of them.
    """

    kind: str  # the modality, such as `image`, `vector`, `table`, `sound`, `text`, or a registered one
    shape: tuple[int, ...]  # of the array that `Encoding.encode` makes of one example
    details: tuple[Any, ...] = ()

    @classmethod
    def of(cls, given: InputSpec | Sequence[int]) -> InputSpec:
        """The same, or that of a shape: three sides are an image, anything else is a vector."""
        if isinstance(given, InputSpec):
            return given
        return cls("image" if len(given) == 3 else "vector", tuple(given))
