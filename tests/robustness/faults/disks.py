"""Small disks of memory that fill up or become read-only; only root may mount them."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ENOUGH = "20m"


@dataclass(frozen=True)
class Disk:
    """A mounted disk."""

    path: Path

    def leave(self, gallery: int) -> None:
        """Leave room for so many kB more."""
        at = os.statvfs(self.path)
        _mount("-o", f"remount,size={(at.f_blocks - at.f_bfree) * at.f_frsize + 1024 * gallery}", self.path)

    def grow(self) -> None:
        """Make room enough again."""
        _mount("-o", f"remount,size={ENOUGH}", self.path)

    def make_read_only(self) -> None:
        _mount("-o", "remount,ro", self.path)


@contextmanager
def small_disk() -> Iterator[Disk]:
    """A disk with room enough, for now."""
    with tempfile.TemporaryDirectory(prefix="synthsieve-disk-") as folder:
        _mount("-t", "tmpfs", "-o", f"size={ENOUGH}", "tmpfs", folder)
        try:
            yield Disk(Path(folder))
        finally:
            subprocess.run(["umount", folder], check=True)


def why_not() -> str | None:
    """Why no disk can be mounted here; None where one can."""
    if os.geteuid() != 0:
        return "only root may mount a small disk"
    try:
        with small_disk():
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no disk can be mounted here ({error})"


def _mount(*words: object) -> None:
    subprocess.run(["mount", *map(str, words)], check=True, capture_output=True)
