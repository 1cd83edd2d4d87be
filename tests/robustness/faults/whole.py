"""What a folder holds, and whether each file that has its name is whole."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
from PIL import Image
from pyarrow import parquet

from synthsieve.io.tensors import read_tensors
from synthsieve.training import checkpoint, reference_file

UNFINISHED = re.compile(r"\..+\.\d+(-\d+)?\.(partial|replaced)|\.lock|\..+\.lock")
TEXTS = {".csv": "\n", ".md": "\n", ".html": "</html>\n", ".svg": "</svg>\n"}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by its path, without the seconds that some of them tell."""
    return {
        path.relative_to(folder).as_posix(): _timeless(path) for path in sorted(folder.rglob("*")) if path.is_file()
    }


def same(one: dict[str, bytes], other: dict[str, bytes]) -> bool:
    """Whether two folders hold the same; says which files differ where they do not."""
    names = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    assert not names, f"differ: {', '.join(names)}"
    return True


def all_whole(folder: Path) -> bool:
    """Whether every file under a final name can be read whole; what is unfinished has a name that says so."""
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if any(part.startswith(".") for part in parts):
            assert any(UNFINISHED.fullmatch(part) for part in parts), path
        elif path.is_file():
            _read(path)
    return True


def nothing_unfinished(folder: Path) -> bool:
    left = list(folder.rglob(".*"))
    assert not left, left
    return True


def step_of(folder: Path) -> int:
    """How far the last checkpoint of a run is; 0 without one."""
    path = folder / "last.safetensors"
    return int(read_tensors(path, checkpoint.FORMAT)[0]["step"]) if path.is_file() else 0


def _read(path: Path) -> None:
    kind = path.suffix
    if kind == ".json":
        json.loads(path.read_text(encoding="utf-8"))
    elif kind == ".jsonl":
        text = path.read_text(encoding="utf-8")
        assert not text or text.endswith("\n"), path  # without a row so far it is empty
        [json.loads(line) for line in text.splitlines()]
    elif kind == ".npz":
        with np.load(path, allow_pickle=False) as stored:
            assert [stored[name] for name in stored.files], path
    elif kind == ".safetensors":
        read_tensors(path, reference_file.FORMAT if path.stem == "reference" else checkpoint.FORMAT)
    elif kind == ".parquet":
        parquet.ParquetFile(path).read(use_threads=False)
    elif kind == ".png":
        with Image.open(path) as picture:
            picture.load()
    else:
        assert path.read_text(encoding="utf-8").endswith(TEXTS[kind]), path


def _timeless(path: Path) -> bytes:
    if path.name == "selections.jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return json.dumps([{name: row[name] for name in row if name != "seconds"} for row in rows]).encode()
    if path.name == "summary.json":
        value = json.loads(path.read_text(encoding="utf-8"))
        return json.dumps({name: value[name] for name in value if "seconds" not in name}).encode()
    return path.read_bytes()
