"""Small files that ask for much are refused, or take a bounded amount of memory; in a process with a limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.robustness.security.bombs import BOMBS

MAX = 700 << 20  # bytes beyond those of the program itself
# What may be read nevertheless, and the memory it may take: 15 minutes at 16,000 samples a second; unused pixels; the
# bytes that are really there.
MAY_BE_READ = {
    "a WAV of 1 sample a second beside others of 16,000": 500 << 20,
    "a PNG whose rows never end": 50 << 20,
    "a WAV that claims 18 hours": 50 << 20,
}


@pytest.fixture(scope="module")
def became(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("peaks of memory are read from /proc")
    command = [sys.executable, "-m", "tests.robustness.security.bombs", str(tmp_path_factory.mktemp("bombs"))]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", BOMBS)
def test_bomb(name: str, became: dict[str, dict[str, object]]) -> None:
    one = became[name]
    assert str(one["became"]).startswith("refused: ") or (name in MAY_BE_READ and one["became"] == "read"), one
    assert int(str(one["bytes"])) < MAY_BE_READ.get(name, MAX), one
