"""What a reader may do with a bad file: refuse it in a sentence of ours, soon, and without taking much memory."""

from __future__ import annotations

import contextlib
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from synthsieve.errors import SynthsieveError

SECONDS = 300.0  # of one input: beyond it a reader hangs, however slow the machine
MAX_DECODED_BYTES = 3 << 30  # bytes of address space beyond what the process has
TOUCHED = 700 << 20  # bytes of memory that may really be used
_STATUS = Path("/proc/self/status")


class TooSlow(BaseException):
    """An input took longer than `SECONDS`; no reader's `except Exception` catches it."""


class Unbounded(AssertionError):
    """An input made a reader take, or ask for, more memory than any file of its size can need."""


def refused_or_read(read: Callable[[], Any], *, seconds: float = SECONDS) -> BaseException | None:
    """Run `read`; what it raised if that is an error of ours or of the file system, None if it read something.

    Anything else it raises comes out. So does `Unbounded` where memory ran out, even if the reader hid that.
    """
    with time_limit(seconds), room_limit(), touched_limit():
        try:
            read()
        except (SynthsieveError, OSError) as error:
            check_cause(error)
            return error
    return None


def check_cause(error: BaseException) -> None:
    """Refuse an error that a reader got because it requested memory on a mere claim."""
    cause: BaseException | None = error
    while cause is not None:
        # Python's own parser says MemoryError of text nested too deeply, without a word; nothing was taken then.
        if isinstance(cause, MemoryError) and "allocat" in str(cause).lower():
            raise Unbounded(f"memory was requested on a mere claim: {cause}") from error
        cause = cause.__context__


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """`TooSlow` after so many seconds, in the main thread."""

    def ring(*_: Any) -> None:
        raise TooSlow(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def room_limit(more: int = MAX_DECODED_BYTES) -> Iterator[None]:
    """Allocations that would take the address space `more` bytes further fail at once."""
    if not _STATUS.is_file():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (status("VmSize") + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextlib.contextmanager
def touched_limit(most: int = TOUCHED) -> Iterator[None]:
    """`Unbounded` where more than `most` bytes of memory were in use at once beyond those before."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # forget the peak so far
    except OSError:
        yield
        return
    before = status("VmRSS")
    yield
    taken = status("VmHWM") - before
    if taken > most:
        raise Unbounded(f"{taken / 1e6:.0f} MB were in use")


def status(name: str) -> int:
    """A figure of this process, in bytes."""
    line = next(line for line in _STATUS.read_text(encoding="utf-8").splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024
