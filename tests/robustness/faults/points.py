"""What can befall a process: a signal at a chosen rename, the end of its files or memory, a clock that jumps."""

from __future__ import annotations

import itertools
import os
import random
import resource
import signal
import time
from collections.abc import Callable
from enum import Enum
from fnmatch import fnmatch
from pathlib import Path
from typing import Any


class When(Enum):
    BEFORE = "before"
    AFTER = "after"


def kill_at(name: str, when: When, *, nth: int = 1) -> Callable[[], None]:
    """SIGKILL just before or after the nth time that a file or a folder gets a name like `name`."""
    return lambda: _signal_at(name, when, nth, signal.SIGKILL)


def stop_at(name: str) -> Callable[[], None]:
    """SIGSTOP just before the first file with a name like `name` gets it: somebody else has all the time he needs."""
    return lambda: _signal_at(name, When.BEFORE, 1, signal.SIGSTOP)


def _signal_at(name: str, when: When, nth: int, number: signal.Signals) -> None:
    turns = itertools.count(1)

    def watched(rename: Callable[..., None]) -> Callable[..., None]:
        def instead(source: Any, target: Any, **more: Any) -> None:
            due = fnmatch(Path(target).name, name) and next(turns) == nth
            if due and when is When.BEFORE:
                os.kill(os.getpid(), number)
            rename(source, target, **more)
            if due and when is When.AFTER:
                os.kill(os.getpid(), number)

        return instead

    os.replace, os.rename = watched(os.replace), watched(os.rename)


def largest_file(size: int) -> Callable[[], None]:
    """No file may grow beyond `size` bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def more_memory(size: int) -> Callable[[], None]:
    """The process may take `size` bytes more than it has."""

    def limit() -> None:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + size
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    return limit


def jumping_clock(seed: int) -> Callable[[], None]:
    """The wall clock goes back and forth by years; the monotonic one goes on."""

    def jump() -> None:
        chance = random.Random(seed)
        time.time = lambda: 1e9 + chance.uniform(-3e8, 3e8)
        time.time_ns = lambda: int(time.time() * 1e9)

    return jump
