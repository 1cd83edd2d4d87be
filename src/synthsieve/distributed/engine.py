"""What runs the tasks: this process, or the workers of a cluster (`ray_engine`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol

Work = Callable[[int], dict[str, Any]]


class Engine(Protocol):
    """Runs numbered tasks. A task saves its arrays on disk and returns a few plain numbers and strings.

    A task may run twice, if its worker was lost: it must write the same bytes again.
    """

    def blocks(self, work: Work, count: int) -> Iterator[dict[str, Any]]:
        """`work(0)`, ..., `work(count - 1)`, in this order: short tasks, one per block of rows."""

    def parts(self, work: Work, count: int) -> Iterator[dict[str, Any]]:
        """The same for long tasks, one per part of a class."""


class InProcess:
    """This process, one task after the other."""

    def blocks(self, work: Work, count: int) -> Iterator[dict[str, Any]]:
        return (json.loads(json.dumps(work(number))) for number in range(count))  # as from another process

    parts = blocks
