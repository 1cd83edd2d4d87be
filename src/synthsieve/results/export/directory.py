"""An export directory: all files in one pass over the samples, then the card and the manifest with checksums."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthsieve.errors import ConfigError
from synthsieve.io.files import atomic_folder, write_text
from synthsieve.io.progress import NullProgress, Progress
from synthsieve.results.export.block import Block, PoolInfo, block_table
from synthsieve.results.export.card import Schema, write_card
from synthsieve.results.export.formats import Format, Which
from synthsieve.results.export.writers import (
    AddBlock,
    class_folder_writer,
    csv_writer,
    npz_writer,
    parquet_writer,
    shard_writer,
)

FORMAT = "synthsieve export 1"
MANIFEST = "manifest.json"
IGNORED = {".DS_Store", "Thumbs.db", "desktop.ini"}  # created by file managers
NAMES = {
    Format.PARQUET: "data.parquet",
    Format.NPZ: "arrays.npz",
    Format.IMAGES: "images",
    Format.SOUNDS: "sounds",
    Format.HF: "data",
    Format.CSV: "data.csv",
}
REPORT_INTERVAL = 1000  # files

Values = Mapping[str, Any]


@dataclass(frozen=True)
class ExportPlan:
    """What is written."""

    info: PoolInfo
    formats: tuple[Format, ...]
    which: Which
    meanings: Mapping[str, str]  # the properties of a sample -> descriptions

    def rows(self, format: Format) -> int:
        """The number of samples in the files of a format."""
        return self.info.total if self.which.is_all(format) else self.info.selected

    def open_writer(self, folder: Path, format: Format) -> AbstractContextManager[AddBlock]:
        path, info = folder / NAMES[format], self.info
        if format is Format.NPZ:
            return npz_writer(path, info, self.rows(format))
        writers = {Format.PARQUET: parquet_writer, Format.CSV: csv_writer, Format.HF: shard_writer}
        return writers.get(format, class_folder_writer)(path, info)


def write_export(
    to: Path,
    blocks: Iterable[Block],
    plan: ExportPlan,
    facts: Values,
    words: Values,
    progress: Progress | None = None,
    *,
    real_rows: Sequence[Path] = (),
) -> dict[str, Any]:
    """Write an export to the directory `to`, atomically, and return its manifest.

    `facts` is the manifest without what is known only after writing; the card shows it, and `words`. The files
    `real_rows` are copied into it.
    """
    check_destination(to)
    try:
        with atomic_folder(to) as folder:
            for path in real_rows:
                shutil.copyfile(path, folder / path.name)
            facts = {**facts, "real_rows": [path.name for path in real_rows]}
            return _write_files(folder, blocks, plan, facts, words, progress or NullProgress())
    except OSError as error:
        problem = f"cannot write to {to} ({error.strerror or error})"
        hint = "free disk space, check permissions, or give another folder with --to"
        raise ConfigError(f"{problem}: {hint}", code="cannot-write") from error


def _write_files(
    folder: Path, blocks: Iterable[Block], plan: ExportPlan, facts: Values, words: Values, progress: Progress
) -> dict[str, Any]:
    schema, done = None, 0
    sample_files = sum(plan.rows(format) for format in plan.formats if format in (Format.IMAGES, Format.SOUNDS))
    total = max(plan.rows(format) for format in plan.formats) + sample_files
    with ExitStack() as stack:
        writers = {format: stack.enter_context(plan.open_writer(folder, format)) for format in plan.formats}
        for block in blocks:
            if schema is None:
                table, names = block_table(block, plan.info)
                schema = Schema(plan.info, table.schema, names, plan.meanings)
            selected = block.only_selected()
            for format, add in writers.items():
                part = block if plan.which.is_all(format) else selected
                if len(part):
                    add(part)
            done += len(block)
            progress.update(done, total, "writing")
    assert schema is not None
    manifest = {
        "format": FORMAT,
        **facts,
        "formats": list(plan.formats),
        "which": plan.which,
        "rows": {NAMES[format]: plan.rows(format) for format in plan.formats},
        "columns": schema.columns(),
    }
    write_card(folder / "README.md", manifest, words, schema)
    manifest["files"] = files = {}
    for number, path in enumerate(sorted(_files(folder))):
        if number % REPORT_INTERVAL == 0:
            progress.update(min(done + number, total), total, "checksums")
        files[path.relative_to(folder).as_posix()] = {"bytes": path.stat().st_size, "sha256": _sha256(path)}
    # Indented, except that each file has one line.
    lines = [f"    {json.dumps(name)}: {json.dumps(file)}" for name, file in files.items()]
    text = json.dumps({**manifest, "files": {}}, indent=2, allow_nan=False).removesuffix("{}\n}")
    write_text(folder / MANIFEST, text + "{\n" + ",\n".join(lines) + "\n  }\n}\n")
    return manifest


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_destination(folder: Path) -> None:
    """Refuse a file, a directory that is not an export, and an export with files that were added or changed."""
    if folder.exists() and not folder.is_dir():
        message = f"expected a folder to write to, but {folder} is a file: give another with --to"
        raise ConfigError(message, code="not-a-folder")
    if not folder.exists() or not any(folder.iterdir()):
        return
    listed = _listed_files(folder)
    if listed is None:
        message = f"{folder} contains something other than an export: give another folder with --to, or empty it"
        raise ConfigError(message, code="not-an-export")
    for path in sorted(_files(folder)):
        name = path.relative_to(folder).as_posix()
        known = listed.get(name, {"bytes": -1})
        # By size and checksum; files in class folders, of which there may be very many, by size only.
        same = path.stat().st_size == known["bytes"] and (name.count("/") > 1 or _sha256(path) == known["sha256"])
        if name != MANIFEST and not same:
            message = f"{name} in {folder} was added or changed since the export: move it, or give another folder"
            raise ConfigError(f"{message} with --to", code="changed-export")


def _listed_files(folder: Path) -> dict[str, Any] | None:
    """Size and SHA-256 of the files in an export's manifest; None without a valid manifest."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = {name: {key: file[key] for key in ("bytes", "sha256")} for name, file in manifest["files"].items()}
        return files if manifest["format"] == FORMAT else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _files(folder: Path) -> list[Path]:
    return [Path(at) / name for at, _, names in os.walk(folder) for name in names if name not in IGNORED]
