"""Whether a folder may be written to, or be replaced by a new export."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synthsieve.errors import ConfigError

FORMAT = "synthsieve export 1"
MANIFEST = "manifest.json"
NOBODYS = {".DS_Store", "Thumbs.db", "desktop.ini"}  # what looking at a folder leaves in it


def check_place(folder: Path) -> None:
    """Refuse what is no folder, what is no export of ours, and an export to which somebody added or changed files."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"expected a folder to write to, but {folder} is a file: give another with --to")
    if not folder.exists() or not any(folder.iterdir()):
        return
    listed = _listed(folder)
    if listed is None:
        raise ConfigError(f"{folder} holds something else than an export: give another folder with --to, or empty it")
    for path in sorted(_files(folder)):
        name = path.relative_to(folder).as_posix()
        if name != MANIFEST and not _is_as_listed(path, name, listed):
            raise ConfigError(
                f"{folder} holds an export, but {name} was added or changed since: move it away, or give another "
                "folder with --to"
            )


def _is_as_listed(path: Path, name: str, listed: Mapping[str, Any]) -> bool:
    """By size and checksum; files in folders of classes, of which there may be very many, by size alone."""
    known = listed.get(name)
    if known is None or path.stat().st_size != known["bytes"]:
        return False
    if name.count("/") > 1:
        return True
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == known["sha256"]


def _listed(folder: Path) -> dict[str, Any] | None:
    """Bytes and SHA-256 of the files that an export's manifest lists; None where there is no such manifest."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = {name: {part: file[part] for part in ("bytes", "sha256")} for name, file in manifest["files"].items()}
        return files if manifest["format"] == FORMAT else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _files(folder: Path) -> list[Path]:
    return [Path(at) / name for at, _, names in os.walk(folder) for name in names if name not in NOBODYS]
