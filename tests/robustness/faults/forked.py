"""A command in a process of its own, forked from one that has everything loaded, so that killing it costs little."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from synthsieve.cli.app import main

Prepare = Callable[[], None]  # called in the new process, before the command


@dataclass(frozen=True)
class Ended:
    """How a command ended: `code` is its exit code, or minus the signal that killed it."""

    code: int
    out: str
    output: str
    seconds: float

    def failed_in_one_sentence(self) -> bool:
        """Whether it ended with exit code 2, and with one line on standard error."""
        return self.code == 2 and self.output.startswith("synthsieve: ") and self.output.count("\n") == 1


class Forked:
    """A command that runs beside this process."""

    def __init__(self, words: Sequence[object], *prepare: Prepare) -> None:
        self._out, self._said = (tempfile.TemporaryFile("w+", encoding="utf-8") for _ in range(2))  # noqa: SIM115
        self._begun = time.monotonic()
        self.pid = os.fork()
        if not self.pid:
            try:
                _be_the_command([str(word) for word in words], prepare, self._out, self._said)
            finally:  # whatever happens, it must not go on as a second run of the tests
                os._exit(70)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait_until_stopped(self) -> None:
        """Until it has stopped itself, as `stop_at` lets it."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), "the command ended before it came to where it was to stop"

    def wait(self) -> Ended:
        _, status = os.waitpid(self.pid, 0)
        output = []
        for stream in (self._out, self._said):
            stream.seek(0)
            output.append(stream.read())
            stream.close()
        return Ended(os.waitstatus_to_exitcode(status), output[0], output[1], time.monotonic() - self._begun)


def ended(words: Sequence[object], *prepare: Prepare) -> Ended:
    """The command, left alone until its end."""
    return Forked(words, *prepare).wait()


def ended_by(words: Sequence[object], number: signal.Signals, *, after: float) -> Ended:
    """The command, sent a signal after so many seconds; it may have come to its end before."""
    command = Forked(words)
    time.sleep(after)
    command.signal(number)
    return command.wait()


def _be_the_command(words: list[str], prepare: Sequence[Prepare], out: IO[str], output: IO[str]) -> None:
    code = 70
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.dup2(out.fileno(), 1)
        os.dup2(output.fileno(), 2)
        sys.stdout, sys.stderr = (open(stream, "w", encoding="utf-8", closefd=False) for stream in (1, 2))  # noqa: SIM115
        os.sync = lambda: None  # it would wait for the disks of everybody
        for one in prepare:
            one()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        main(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        _leave(code)


def _leave(code: int) -> None:
    """End this process; a signal that comes when the command has ended already changes nothing."""
    while True:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        except KeyboardInterrupt:
            continue
