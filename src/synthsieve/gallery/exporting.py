"""The current choice taken home: an export in the background, one at a time, into a folder of its own inside OUT."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from synthsieve.errors import InputError

NAME = "export"
MOST_FILES = 40  # told by name


@dataclass(frozen=True)
class Told:
    """How an export stands. `state`: idle, running, done or failed; `path` and `files` once it is done."""

    state: str = "idle"
    done: int = 0
    total: int = 0
    message: str = ""
    path: str = ""
    files: tuple[str, ...] = ()
    more_files: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "files": list(self.files)}


class Exports:
    """Exports of one run's folder."""

    def __init__(self, out: Path) -> None:
        self._out, self._told, self._lock = out, Told(), threading.Lock()

    @property
    def told(self) -> Told:
        return self._told

    def begin(self, write: Callable[[Path, Exports], None]) -> Told:
        """Let `write` fill a new folder, in a thread of its own; refused while another export runs."""
        with self._lock:
            if self._told.state == "running":
                raise InputError("expected one export at a time, but another is still being written: wait for its end")
            self._told = Told("running", message="choosing")
        to = self._free_folder()
        threading.Thread(target=self._work, args=(write, to), name="exporting", daemon=True).start()
        return self._told

    def update(self, done: int, total: int, message: str = "") -> None:
        """Told by whoever writes: this is a `Progress`."""
        self._told = replace(self._told, done=done, total=total, message=message)

    def close(self) -> None:
        pass

    def _work(self, write: Callable[[Path, Exports], None], to: Path) -> None:
        try:
            write(to, self)
            files = sorted(path.relative_to(to).as_posix() for path in to.rglob("*") if path.is_file())
        except Exception as error:  # the page tells it; the thread has nobody else to tell
            self._told = Told("failed", message=str(error) or repr(error))
            return
        self._told = Told("done", path=str(to), files=tuple(files[:MOST_FILES]), more_files=len(files[MOST_FILES:]))

    def _free_folder(self) -> Path:
        number = 1
        while (self._out / f"{NAME}-{number}").exists():
            number += 1
        return self._out / f"{NAME}-{number}"
