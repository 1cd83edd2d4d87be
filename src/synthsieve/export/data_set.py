"""A whole export: every file asked for in one pass over the samples, then the card and the manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthsieve.errors import ConfigError
from synthsieve.export.block import About, Block
from synthsieve.export.card import Described, write_card
from synthsieve.export.class_folders import class_folders
from synthsieve.export.csv_file import csv_file
from synthsieve.export.formats import Format, Which
from synthsieve.export.npz_file import npz_file
from synthsieve.export.parquet_file import Sink, parquet_file, parquet_shards
from synthsieve.export.place import FORMAT, MANIFEST, check_place
from synthsieve.export.sheet import sheet
from synthsieve.files import folder_written_atomically, write_text
from synthsieve.progress import Progress, Silent

# What each format is called in the folder.
NAMES = {
    Format.PARQUET: "data.parquet",
    Format.NPZ: "arrays.npz",
    Format.IMAGES: "images",
    Format.SOUNDS: "sounds",
    Format.HF: "data",
    Format.CSV: "data.csv",
}
TOLD_EVERY = 1000  # files


@dataclass(frozen=True)
class Plan:
    """What is to be written.

    Attributes:
        about: what the samples are.
        formats: how they are written.
        which: which of them.
        meanings: what is known of each sample -> what it means, in words.
    """

    about: About
    formats: tuple[Format, ...]
    which: Which
    meanings: Mapping[str, str]

    def rows(self, format: Format) -> int:
        """How many samples go into the files of a format."""
        return self.about.total if self.which.is_all(format) else self.about.selected

    @property
    def sample_files(self) -> int:
        """How many files hold one sample each."""
        return sum(self.rows(format) for format in self.formats if format in (Format.IMAGES, Format.SOUNDS))


def write_export(
    to: Path,
    blocks: Iterable[Block],
    plan: Plan,
    facts: Mapping[str, Any],
    words: Mapping[str, Any],
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write an export to the folder `to`, whole or not at all; returns its manifest.

    `facts` are the manifest but for what is known only of the written files; the card tells them, and `words`.
    """
    check_place(to)
    try:
        with folder_written_atomically(to) as folder:
            manifest = _fill(folder, blocks, plan, facts, words, progress or Silent())
    except OSError as error:
        raise ConfigError(
            f"cannot write to {to} ({error.strerror or error}): make room, check its rights, or give another folder "
            "with --to"
        ) from error
    return manifest


def _fill(
    folder: Path,
    blocks: Iterable[Block],
    plan: Plan,
    facts: Mapping[str, Any],
    words: Mapping[str, Any],
    progress: Progress,
) -> dict[str, Any]:
    """Write everything into an empty folder."""
    described, done = None, 0
    total = max(plan.rows(format) for format in plan.formats) + plan.sample_files
    with ExitStack() as stack:
        sinks = {format: stack.enter_context(_sink(folder, format, plan)) for format in plan.formats}
        for block in blocks:
            described = described or _described(block, plan)
            _hand_round(block, sinks, plan.which)
            done += len(block)
            progress.update(done, total, "writing")
    assert described is not None
    manifest = {
        "format": FORMAT,
        **facts,
        "formats": list(plan.formats),
        "which": plan.which,
        "rows": {NAMES[format]: plan.rows(format) for format in plan.formats},
        "columns": described.columns,
    }
    write_card(folder / "README.md", manifest, words, described)
    manifest["files"] = _files(folder, lambda number: progress.update(min(done + number, total), total, "checksums"))
    write_text(folder / MANIFEST, _as_json(manifest))
    return manifest


def _sink(folder: Path, format: Format, plan: Plan) -> AbstractContextManager[Sink]:
    path, about = folder / NAMES[format], plan.about
    if format is Format.PARQUET:
        return parquet_file(path, about)
    if format is Format.NPZ:
        return npz_file(path, about, plan.rows(format))
    if format is Format.CSV:
        return csv_file(path, about)
    return parquet_shards(path, about) if format is Format.HF else class_folders(path, about)


def _hand_round(block: Block, sinks: Mapping[Format, Sink], which: Which) -> None:
    """Give each sink its samples of a block."""
    chosen = block.only_selected()
    for format, add in sinks.items():
        mine = block if which.is_all(format) else chosen
        if len(mine):
            add(mine)


def _described(block: Block, plan: Plan) -> Described:
    page = sheet(block, plan.about)
    return Described(plan.about, page.table.schema, page.called, plan.meanings)


def _files(folder: Path, tell: Callable[[int], None]) -> dict[str, dict[str, Any]]:
    """Bytes and SHA-256 of every file, by its place in the folder; `tell` hears how many are done."""
    found = {}
    for number, path in enumerate(sorted(path for path in folder.rglob("*") if path.is_file())):
        if number % TOLD_EVERY == 0:
            tell(number)
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        found[path.relative_to(folder).as_posix()] = {"bytes": path.stat().st_size, "sha256": digest}
    return found


def _as_json(manifest: Mapping[str, Any]) -> str:
    """Indented, but for the files: a line each, for there may be many."""
    files = manifest["files"]
    lines = [f"    {json.dumps(name)}: {json.dumps(file)}" for name, file in files.items()]
    text = json.dumps({**manifest, "files": {}}, indent=2, allow_nan=False)
    return text.removesuffix("{}\n}") + "{\n" + ",\n".join(lines) + "\n  }\n}\n"


def sizes(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Bytes of each file, or of each folder of samples, of an export."""
    found: dict[str, int] = {}
    for name, file in manifest["files"].items():
        top = name.partition("/")[0]
        found[top] = found.get(top, 0) + file["bytes"]
    return found
