"""Who knows whom: the rooms at the bottom know the common modules and themselves, and never each other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import synthsieve

ROOT = Path(synthsieve.__file__).parent
COMMON = {
    "archive", "config", "errors", "files", "layout", "natural_order", "parquet_claims", "pool", "printable",
    "progress", "randomness", "sharing", "waveforms",
}  # fmt: skip
MAY_KNOW = {
    "charts": COMMON,
    "data": COMMON,
    "export": COMMON,
    "networks": COMMON,
    "sampling": COMMON,
    "selection": COMMON,
    "model": COMMON | {"networks"},
}
IMPORT = re.compile(r"^\s*(?:from|import) synthsieve\.(\w+)", re.MULTILINE)


@pytest.mark.parametrize("room", MAY_KNOW)
def test_a_room_knows_only_whom_it_may(room: str) -> None:
    for path in (ROOT / room).rglob("*.py"):
        strangers = set(IMPORT.findall(path.read_text(encoding="utf-8"))) - MAY_KNOW[room] - {room}
        assert not strangers, path


def test_only_the_command_line_knows_the_cluster() -> None:
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0] not in ("cli", "distributed"):
            assert "distributed" not in IMPORT.findall(path.read_text(encoding="utf-8")), path
