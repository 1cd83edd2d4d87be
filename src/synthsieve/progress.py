"""Progress with time left: a bar on a terminal, plain lines elsewhere, silence when nobody asked.

Work rooms take a `Progress` and call it; only the command line decides which kind it is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TextIO


class Progress(Protocol):
    """Told how far a task has come."""

    def update(self, done: int, total: int, message: str = "") -> None: ...

    def close(self) -> None: ...


class Silent:
    """Says nothing."""

    def update(self, done: int, total: int, message: str = "") -> None:
        pass

    def close(self) -> None:
        pass


@dataclass
class Estimate:
    """Time left, from the pace of this process alone (a resumed task starts its clock where it resumed)."""

    clock: Callable[[], float] = time.monotonic
    started: float | None = None
    first: int = 0

    def seconds_left(self, done: int, total: int) -> float | None:
        """Seconds until `total` at the pace seen so far; None before there is one to speak of: a two hundredth done."""
        now = self.clock()
        if self.started is None:
            self.started, self.first = now, done
        if done <= self.first or done - self.first < total / 200:
            return None
        return (now - self.started) / (done - self.first) * (total - done)


def in_words(seconds: float) -> str:
    """`75.2` -> `1 min 15 s`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


@dataclass
class PlainLines:
    """A line every `every` seconds, the first after two: quick work stays silent. `ends` tells the end in any case."""

    label: str
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    every: float = 10.0
    first_after: float = 2.0
    ends: bool = False
    clock: Callable[[], float] = time.monotonic
    _estimate: Estimate = field(init=False)
    _next: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._estimate = Estimate(self.clock)

    def update(self, done: int, total: int, message: str = "") -> None:
        now = self.clock()
        left = self._estimate.seconds_left(done, total)
        if self._next is None:
            self._next = now + self.first_after
        at_end = self.ends and done >= total
        if left is None or (now < self._next and not at_end):
            return
        self._next = now + self.every
        tail = f", {message}" if message else ""
        print(f"{self.label}: {done}/{total}, {in_words(left)} left{tail}", file=self.stream, flush=True)

    def close(self) -> None:
        pass


class Bar:
    """A rich progress bar for terminals."""

    def __init__(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._estimate = Estimate()
        self._rich = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.fields[message]}"),
            console=Console(stderr=True),
            transient=False,
        )
        self._task = self._rich.add_task(label, total=None, left="", message="")
        self._started = False

    def update(self, done: int, total: int, message: str = "") -> None:
        if not self._started:
            self._rich.start()
            self._started = True
        left = self._estimate.seconds_left(done, total)
        words = "" if left is None else f"{in_words(left)} left"
        self._rich.update(self._task, completed=done, total=total, left=words, message=message)

    def close(self) -> None:
        if self._started:
            self._rich.stop()


def for_stream(label: str, *, quiet: bool = False, stream: TextIO | None = None, always: bool = False) -> Progress:
    """A bar when standard error is a terminal, plain lines when it is not, silence when `quiet`.

    With `always` plain lines tell the end of quick work too.
    """
    stream = stream or sys.stderr
    if quiet:
        return Silent()
    return Bar(label) if stream.isatty() else PlainLines(label, stream, ends=always)
