"""Whether a folder may be written to, or be replaced by a new export."""

from __future__ import annotations

import json
import os
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
        if name != MANIFEST and path.stat().st_size != listed.get(name):
            raise ConfigError(
                f"{folder} holds an export, but {name} was added or changed since: move it away, or give another "
                "folder with --to"
            )


def _listed(folder: Path) -> dict[str, Any] | None:
    """The sizes of the files that an export's manifest lists; None where there is no such manifest."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return (
            {name: file["bytes"] for name, file in manifest["files"].items()} if manifest["format"] == FORMAT else None
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _files(folder: Path) -> list[Path]:
    return [Path(at) / name for at, _, names in os.walk(folder) for name in names if name not in NOBODYS]
