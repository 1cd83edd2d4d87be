"""Atomic writes: files and folders are written under another name, then renamed; readers never see half of one."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# The process that writes a partial file, in its name: its number and, where the system tells it, its start time, since
# numbers are used again (in a container every command is process 1).
WRITER = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a name next to `path` to write to; on success it becomes `path`, on failure it is removed.

    The data are on disk before the rename, so a power cut cannot leave an empty file under the final name.
    """
    with atomic_write_all(path) as (partial,):
        yield partial


@contextmanager
def atomic_write_all(*paths: Path) -> Iterator[tuple[Path, ...]]:
    """Like `atomic_write`, for several files: none is renamed before all are on disk.

    They are renamed in the order given. A kill between two renames leaves the partial file of the last path behind: see
    `has_partial`.
    """
    partials = tuple(path.with_name(f".{path.name}.{_writer()}.partial") for path in map(Path, paths))
    for partial in partials:
        partial.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield partials
        for partial in partials:
            with partial.open("rb") as file:
                os.fsync(file.fileno())
        for partial, path in zip(partials, paths, strict=True):
            os.replace(partial, path)
    finally:
        for partial in partials:
            partial.unlink(missing_ok=True)


def link_or_copy(path: Path, name: Path) -> None:
    """Make the file at `path` available at `name` too, atomically: a hard link, or a copy where there are no links."""
    with atomic_write(name) as partial:
        try:
            os.link(path, partial)
        except OSError:
            shutil.copyfile(path, partial)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder next to `path` to fill; on success it replaces `path`, on failure it is removed.

    What `path` held before is removed only when the new folder is complete. Leftovers of killed writers are removed.
    """
    path = Path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    for replaced in _leftovers(path.parent, path.name, "replaced"):  # by a writer killed between two renames
        if path.exists():
            shutil.rmtree(replaced, ignore_errors=True)
        else:
            replaced.rename(path)
    remove_stale_partials(path.parent, of=path.name)
    stem = f".{path.name}.{threading.get_ident()}.{_writer()}"
    partial, replaced = path.with_name(f"{stem}.partial"), path.with_name(f"{stem}.replaced")
    partial.mkdir()
    try:
        yield partial
        getattr(os, "sync", lambda: None)()  # not on every system
        if path.exists():
            path.rename(replaced)
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if replaced.exists() and not path.exists():
            replaced.rename(path)
        shutil.rmtree(replaced, ignore_errors=True)


def has_partial(path: Path) -> bool:
    """Whether a writer was killed before `path` got its name."""
    return bool(_leftovers(path.parent, path.name, "partial"))


def remove_stale_partials(folder: Path, *, of: str = "") -> None:
    """Remove partial files and folders in `folder` whose writer no longer runs: all, or those of the name `of`."""
    for partial in _leftovers(folder, of, "partial"):
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)


def _leftovers(folder: Path, name: str, suffix: str) -> list[Path]:
    """Files .NAME...WRITER.SUFFIX in `folder` whose writer no longer runs."""
    found = []
    for path in sorted(folder.glob(f".*.{suffix}")):
        writer = WRITER.fullmatch(path.name.split(".")[-2])
        if path.name.startswith(f".{name}." if name else ".") and writer and not _runs(int(writer[1]), writer[2]):
            found.append(path)
    return found


def _writer() -> str:
    """This process, as in the names of its partial files."""
    return "-".join(filter(None, (str(os.getpid()), _start_time(os.getpid()))))


def _runs(process: int, started: str | None) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return started is None or _start_time(process) in (None, started)


def _start_time(process: int) -> str | None:
    """When a process started, in ticks since boot; None where the system does not tell (not Linux)."""
    try:
        status = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return None
    return status.rpartition(b")")[2].split()[19].decode("ascii")  # field 22, after a name that may hold anything


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, atomically; lone surrogates, which file names and JSON may hold, as \\udcff."""
    with atomic_write(path) as partial:
        partial.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically; NaN and infinity, which JSON does not have, are refused."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def parse_json(text: str | bytes) -> Any:
    """The value of untrusted JSON; a ValueError where it is invalid, holds NaN or infinity, or is nested too deeply."""
    try:
        return json.loads(text, parse_constant=_finite, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is not a number in JSON")
    return number
