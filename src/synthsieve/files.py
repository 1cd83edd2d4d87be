"""Every file is written beside its final name, then renamed: a reader sees the old file or the new one, never half."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def written_atomically(path: Path) -> Iterator[Path]:
    """Yield a name beside `path` to write to; on success it becomes `path`, on failure it is removed.

    The data reach the disk before the rename does, so a power cut cannot leave an empty file under the final name.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        descriptor = os.open(partial, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def remove_stale_partials(folder: Path) -> None:
    """Remove the partial files in `folder` whose writer no longer runs."""
    for partial in folder.glob(".*.partial"):
        process = partial.name.removesuffix(".partial").rpartition(".")[2]
        if process.isdecimal() and not _runs(int(process)):
            partial.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with written_atomically(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically; NaN and infinity are refused, since JSON has no word for them."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")
