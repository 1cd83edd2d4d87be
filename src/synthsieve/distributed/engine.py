"""Who does the work: this process, or the workers of a cluster (`on_ray`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol

Work = Callable[[int], dict[str, Any]]


class Engine(Protocol):
    """Runs numbered pieces of work. A piece leaves its arrays on disk and returns a few plain numbers and words.

    A piece may run twice, when the worker that began it was lost: it must write the same bytes again.
    """

    def blocks(self, work: Work, count: int) -> Iterator[dict[str, Any]]:
        """`work(0)`, ..., `work(count - 1)`, in this order: short pieces, each over a block of rows."""

    def parts(self, work: Work, count: int) -> Iterator[dict[str, Any]]:
        """The same for long pieces, each over a part of a class."""


class InProcess:
    """This process, one piece after the other: what the laws are tested on."""

    def blocks(self, work: Work, count: int) -> Iterator[dict[str, Any]]:
        return (as_sent(work(number)) for number in range(count))

    parts = blocks


def as_sent(result: dict[str, Any]) -> dict[str, Any]:
    """A result as it arrives from elsewhere."""
    sent: dict[str, Any] = json.loads(json.dumps(result))
    return sent
