"""All is written beside its final name, then renamed: a reader sees what was there or what is new, never half.

What is read as JSON may have been written by anybody: it comes back as plain values, or as a ValueError.
"""

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


@contextmanager
def written_atomically(path: Path) -> Iterator[Path]:
    """Yield a name beside `path` to write to; on success it becomes `path`, on failure it is removed.

    The data reach the disk before the rename does, so a power cut cannot leave an empty file under the final name.
    """
    with written_together(path) as (partial,):
        yield partial


@contextmanager
def written_together(*paths: Path) -> Iterator[tuple[Path, ...]]:
    """Like `written_atomically`, for files that belong together: none takes its name before all are on the disk.

    The renames follow each other in the order given. A kill between two of them leaves the partial file of the last
    path behind, so that it can be told from files that are whole: see `was_cut_short`.
    """
    pairs = [(path.with_name(f".{path.name}.{_writer()}.partial"), path) for path in map(Path, paths)]
    for _, path in pairs:
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield tuple(partial for partial, _ in pairs)
        for partial, _ in pairs:
            _reach_disk(partial)
        for partial, path in pairs:
            os.replace(partial, path)
    finally:
        for partial, _ in pairs:
            partial.unlink(missing_ok=True)


def named_again(path: Path, name: Path) -> None:
    """Let what lies at `path` also lie at `name`, atomically: a link, or a copy where there are no links."""
    with written_atomically(name) as partial:
        try:
            os.link(path, partial)
        except OSError:
            shutil.copyfile(path, partial)


def _reach_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def was_cut_short(path: Path) -> bool:
    """Whether a process that no longer runs was killed before `path` had its name."""
    return bool(_left_behind(path.parent, f".{path.name}.", "partial"))


@contextmanager
def folder_written_atomically(path: Path) -> Iterator[Path]:
    """Yield a new folder beside `path` to fill; on success it takes the place of `path`, on failure it is removed.

    What `path` held before goes only when the new folder is whole and on the disk. What earlier writers of `path` left
    when they were killed is swept first.
    """
    path = Path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    restore_replaced(path)
    remove_stale_partials(path.parent, of=path.name)
    own = path.with_name(f".{path.name}.{threading.get_ident()}.{_writer()}")
    partial, replaced = own.with_name(f"{own.name}.partial"), own.with_name(f"{own.name}.replaced")
    partial.mkdir()
    try:
        yield partial
        getattr(os, "sync", lambda: None)()  # not on every system; there a power cut may cost the last seconds
        if path.exists():
            path.rename(replaced)
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if replaced.exists() and not path.exists():
            replaced.rename(path)
        shutil.rmtree(replaced, ignore_errors=True)


def restore_replaced(path: Path) -> None:
    """Put back what a process that was killed between two renames had moved aside from `path`."""
    for replaced in _left_behind(path.parent, f".{path.name}.", "replaced"):
        if path.exists():
            shutil.rmtree(replaced, ignore_errors=True)
        else:
            replaced.rename(path)


def remove_stale_partials(folder: Path, *, of: str = "") -> None:
    """Remove the partial files and folders in `folder` whose writer no longer runs: all, or those of the name `of`."""
    for partial in _left_behind(folder, f".{of}." if of else ".", "partial"):
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)


def _left_behind(folder: Path, start: str, end: str) -> list[Path]:
    """What lies in `folder` under a name START...WRITER.END whose writer no longer runs."""
    found = []
    for path in sorted(folder.glob(f".*.{end}")):
        writer = WRITER.fullmatch(path.name.removesuffix(f".{end}").rpartition(".")[2])
        if path.name.startswith(start) and writer and not _runs(int(writer[1]), writer[2]):
            found.append(path)
    return found


# A process number and, where it can be known, when that process was started: numbers are given again, and in every
# container the first process is number 1.
WRITER = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


def _writer() -> str:
    """This process, as the names of its partial files tell it."""
    process = os.getpid()
    started = _started(process)
    return str(process) if started is None else f"{process}-{started}"


def _runs(process: int, started: str | None) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    now = _started(process)
    return started is None or now is None or started == now


def _started(process: int) -> str | None:
    """When a process was started, in ticks since the machine was; None where the system does not tell (not Linux)."""
    try:
        told = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return None
    return told.rpartition(b")")[2].split()[19].decode("ascii")  # field 22; the name before it may hold anything


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, atomically; halves of characters, which names of files and JSON may hold, as \\udcff."""
    with written_atomically(path) as partial:
        partial.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically; NaN and infinity are refused, since JSON has no word for them."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def json_of(text: str | bytes) -> Any:
    """The value of JSON text as `write_json` writes it; a ValueError where it is none.

    Numbers that JSON has no word for are refused, as is what is nested too deeply to be read.
    """
    try:
        return json.loads(text, parse_constant=_finite, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is no number that JSON has")
    return number
