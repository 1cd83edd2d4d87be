"""Threads that share one task. The kernels release the GIL, so plain threads suffice.

Numba's threading layers are not used: plain threads work after a fork, in a spawned process and in any other pool.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

Result = TypeVar("Result")


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """`count` threads, including the caller's; closed on leaving the `with` block."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count - 1) if count > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def share(self, work: Callable[[int], Result], parts: int) -> list[Result]:
        """`[work(0), ..., work(parts - 1)]`, the last done by the caller while the pool does the others."""
        if self._pool is None or parts == 1:
            return [work(part) for part in range(parts)]
        others = [self._pool.submit(work, part) for part in range(parts - 1)]
        last = work(parts - 1)
        return [*(other.result() for other in others), last]
