"""File locks: a second command that would write into the same folder is refused at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from synthsieve.errors import ConfigError, SynthsieveError
from synthsieve.io.files import remove_stale_partials


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold FOLDER/.lock, and remove partial files of killed writers; a folder that stays empty is removed again."""
    folder = Path(folder)
    check_links(folder)
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not existing.is_dir():
        problem = f"cannot write to {folder}: {existing} is not a folder: choose another path"
        raise ConfigError(problem, code="not-a-folder")
    created = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with hold_lock(folder / ".lock", _busy(folder)):
            remove_stale_partials(folder)
            yield
    finally:
        with suppress(OSError):  # not empty, as expected
            for parent in created:
                parent.rmdir()


@contextmanager
def locked_beside(path: Path) -> Iterator[None]:
    """The same for a file or folder that is replaced as a whole: holds .NAME.lock next to it."""
    path = Path(path).absolute()
    check_links(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with hold_lock(path.with_name(f".{path.name}.lock"), _busy(path)):
        remove_stale_partials(path.parent, of=path.stem)
        yield


def check_links(path: Path) -> None:
    """Refuse a path that is, or lies below, a broken symbolic link."""
    for parent in (path, *path.absolute().parents):
        if parent.is_symlink() and not parent.exists():
            raise ConfigError(f"{parent} is a link to {os.readlink(parent)}, which does not exist", code="broken-link")


@contextmanager
def hold_lock(lock: Path, busy: SynthsieveError) -> Iterator[None]:
    """Hold the lock file `lock`, or raise `busy` at once. The lock ends with its process, however that ends."""
    held = FileLock(lock)
    try:
        held.acquire(timeout=0)
    except Timeout:
        raise busy from None
    try:
        yield
    finally:
        if os.name == "posix":  # elsewhere an open file cannot be removed
            with suppress(OSError):
                lock.unlink()
        held.release()


def _busy(path: Path) -> ConfigError:
    advice = "wait for it to finish, or choose another folder"
    return ConfigError(f"{path} is being written by another command: {advice}", code="locked")
