"""Progress with time left: a bar on a terminal, plain lines elsewhere, nothing when quiet.

Slow functions accept a `Progress` and call it; only the command line decides which kind it is. Messages about
data and runs also go to the logger `synthsieve` (INFO; figures of training: DEBUG), which prints nothing by default.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TextIO

LOGGER = logging.getLogger("synthsieve")
LOGGER.addHandler(logging.NullHandler())
NOTHING = (0, 0)


def info(message: str) -> None:
    """Log a message for the user."""
    LOGGER.info("%s", message)


class Progress(Protocol):
    """Receives how far a task has come.

    `beside` is further work, done and in all, that the time left includes and the count leaves out.
    """

    def update(self, done: int, total: int, message: str = "", beside: tuple[int, int] = NOTHING) -> None: ...

    def close(self) -> None: ...


class NullProgress:
    """Prints nothing."""

    def update(self, done: int, total: int, message: str = "", beside: tuple[int, int] = NOTHING) -> None: ...

    def close(self) -> None: ...


def describe(seconds: float) -> str:
    """`75.2` -> `1 min 15 s`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Pace:
    """Predicts the time left from the recent half of the work.

    The time before the first step does not count (workers start, kernels are compiled), nor do steps of an earlier
    process. Until a hundredth of the work and three seconds are known, it predicts nothing.
    """

    SHARE, SECONDS, RECENT = 0.01, 3.0, 30.0

    def __init__(self) -> None:
        self._before: int | None = None  # steps done at the first update
        self._known: deque[tuple[float, int]] = deque()  # when how many steps were done, at most one a second
        self._began = 0.0

    def update(self, now: float, done: int) -> None:
        if self._before is None:
            self._before = done
        if not self._known:
            if done > self._before:
                self._began = now
                self._known.append((now, done))
            return
        if now - self._known[-1][0] >= 1.0:
            self._known.append((now, done))
        recent = now - max(self.RECENT, (now - self._began) / 2)
        while len(self._known) > 1 and self._known[1][0] <= recent:
            self._known.popleft()

    def seconds_left(self, now: float, done: int, total: int) -> float | None:
        """Seconds until `total` steps are done; None where too little is known."""
        if done >= total:
            return 0.0
        since, first = self._known[0] if self._known else (now, done)
        if now - since < self.SECONDS or done - first < max(1.0, self.SHARE * total):
            return None
        return (now - since) / (done - first) * (total - done)


@dataclass
class PlainLines:
    """A line every `every` seconds, the first as soon as the time left can be told: quick work prints nothing.

    `ends` prints the end in any case.
    """

    label: str
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    every: float = 10.0
    ends: bool = False
    clock: Callable[[], float] = time.monotonic
    _pace: Pace = field(init=False, default_factory=Pace)
    _next: float | None = field(init=False, default=None)
    _printed: bool = field(init=False, default=False)

    def update(self, done: int, total: int, message: str = "", beside: tuple[int, int] = NOTHING) -> None:
        now, work = self.clock(), (done + beside[0], total + beside[1])
        self._pace.update(now, work[0])
        if self._next is None:
            self._next = now + self.every
        left = self._pace.seconds_left(now, *work)
        at_end = work[0] >= work[1]
        is_first = not self._printed and not at_end and left is not None
        if not (now >= self._next or is_first or (self.ends and at_end)):
            return
        self._next, self._printed = now + self.every, True
        words = [f"{self.label}: {done}/{total}", "" if left is None else f"{describe(left)} left", message]
        print(", ".join(word for word in words if word), file=self.stream, flush=True)

    def close(self) -> None: ...


class Bar:
    """A rich progress bar for terminals."""

    def __init__(self, label: str) -> None:
        from rich import progress
        from rich.console import Console

        self._rich = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(bar_width=20),  # leaves room for the message on 80 columns
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[left]}"),
            progress.TextColumn("{task.fields[message]}"),
            console=Console(stderr=True),
        )
        self._pace = Pace()
        self._task = self._rich.add_task(label, total=None, message="", left="")

    def update(self, done: int, total: int, message: str = "", beside: tuple[int, int] = NOTHING) -> None:
        self._rich.start()  # does nothing once it is started
        now, work = time.monotonic(), (done + beside[0], total + beside[1])
        self._pace.update(now, work[0])
        seconds = self._pace.seconds_left(now, *work)
        left = "" if seconds is None else f"{describe(seconds)} left"
        self._rich.update(self._task, completed=done, total=total, message=message, left=left)

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
