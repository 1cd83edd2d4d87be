"""Two commands never write into one folder at the same time: the second is refused at once.

The lock is the system's (flock): it ends with its process, however that dies; a .lock that lies there says nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from synthsieve.errors import ConfigError
from synthsieve.files import remove_stale_partials

NO_LOCKS_HERE = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)  # what some network disks answer


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold FOLDER/.lock, and sweep what killed writers left half written there.

    A folder that was made for it and is still empty at the end is removed.
    """
    folder = Path(folder)
    check_links(folder)
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    if not there.is_dir():
        raise ConfigError(f"cannot write to {folder}: {there} is no folder: check the path, or choose another")
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _held(folder / ".lock", folder):
            remove_stale_partials(folder)
            yield
    finally:
        with suppress(OSError):  # not empty, as it should be
            for one in made:
                one.rmdir()


@contextmanager
def locked_beside(path: Path) -> Iterator[None]:
    """The same for a file or a folder that is replaced as a whole: .NAME.lock beside it is held."""
    path = Path(path).absolute()
    check_links(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _held(path.with_name(f".{path.name}.lock"), path):
        remove_stale_partials(path.parent, of=path.stem)
        yield


def check_links(path: Path) -> None:
    """Refuse a path that is, or lies below, a link that leads nowhere."""
    for one in (path, *path.absolute().parents):
        if one.is_symlink() and not one.exists():
            raise ConfigError(
                f"{one} is a link to {os.readlink(one)}, which does not exist: make that folder, or choose another"
            )


@contextmanager
def _held(lock: Path, what: Path) -> Iterator[None]:
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        if not _is_free(descriptor):
            os.close(descriptor)
            raise ConfigError(f"{what} is being written by another command: wait for its end, or choose another folder")
        if _has_name(descriptor, lock):
            break
        os.close(descriptor)  # its last holder removed it between our two calls
    try:
        yield
    finally:
        with suppress(OSError):  # before it is let go: whoever holds the file of this name holds the lock
            lock.unlink()
        os.close(descriptor)


def _is_free(descriptor: int) -> bool:
    """Take the lock; False if somebody has it. True where there are no locks (Windows, some network disks)."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except ModuleNotFoundError:
        return True
    except OSError as error:
        if error.errno not in NO_LOCKS_HERE:
            raise
    return True


def _has_name(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
