"""Progress with time left: a bar on a terminal, plain lines elsewhere, nothing when quiet.

Slow functions accept a `Progress` and call it; only the command line decides which kind it is. Messages about
data and runs also go to the logger `synthsieve` (INFO; figures of training: DEBUG), which prints nothing by default.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TextIO

LOGGER = logging.getLogger("synthsieve")
LOGGER.addHandler(logging.NullHandler())


def info(message: str) -> None:
    """Log a message for the user."""
    LOGGER.info("%s", message)


class Progress(Protocol):
    """Receives how far a task has come."""

    def update(self, done: int, total: int, message: str = "") -> None: ...

    def close(self) -> None: ...


class NullProgress:
    """Prints nothing."""

    def update(self, done: int, total: int, message: str = "") -> None: ...

    def close(self) -> None: ...


def describe(seconds: float) -> str:
    """`75.2` -> `1 min 15 s`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


@dataclass
class PlainLines:
    """A line every `every` seconds, the first after two: quick work prints nothing. `ends` prints the end in any case.

    The time left follows from the pace since the first update, so that a resumed task does not count earlier steps.
    """

    label: str
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    every: float = 10.0
    first_after: float = 2.0
    ends: bool = False
    clock: Callable[[], float] = time.monotonic
    _start: tuple[float, int] | None = field(init=False, default=None)
    _next: float = field(init=False, default=0.0)

    def update(self, done: int, total: int, message: str = "") -> None:
        now = self.clock()
        if self._start is None:
            self._start, self._next = (now, done), now + self.first_after
        began, first = self._start
        at_end = self.ends and done >= total
        if done - first < max(1, total / 200) or (now < self._next and not at_end):  # too little to know the pace
            return
        self._next = now + self.every
        left = describe((now - began) / (done - first) * (total - done))
        print(f"{self.label}: {done}/{total}, {left} left{message and f', {message}'}", file=self.stream, flush=True)

    def close(self) -> None: ...


class Bar:
    """A rich progress bar for terminals."""

    def __init__(self, label: str) -> None:
        from rich import progress
        from rich.console import Console

        self._rich = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.fields[message]}"),
            console=Console(stderr=True),
            speed_estimate_period=600,
        )
        self._task = self._rich.add_task(label, total=None, message="")

    def update(self, done: int, total: int, message: str = "") -> None:
        self._rich.start()  # does nothing once it is started
        self._rich.update(self._task, completed=done, total=total, message=message)

    def close(self) -> None:
        self._rich.stop()


def for_stream(label: str, *, quiet: bool = False, stream: TextIO | None = None, always: bool = False) -> Progress:
    """A bar when standard error is a terminal, plain lines when it is not, nothing when `quiet`.

    With `always`, plain lines report the end of quick work too.
    """
    stream = stream or sys.stderr
    if quiet:
        return NullProgress()
    return Bar(label) if stream.isatty() else PlainLines(label, stream, ends=always)
