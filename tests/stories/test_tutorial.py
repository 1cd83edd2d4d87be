"""docs/tutorial.md, followed word by word: each file it shows is saved, and each command is run, in order."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)(?: title=\"(\S+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks():
    """(language, file name, text) of each block of the page."""
    return BLOCK.findall(PAGE.read_text(encoding="utf-8"))


def follow(folder):
    """Do what the page says; what each command printed, by its first words."""
    printed = {}
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    for language, name, text in blocks():
        if language == "python":
            assert name, "a block of Python without the name of its file"
            (folder / name).write_text(text, encoding="utf-8")
            continue
        assert language == "sh"
        for line in text.strip().splitlines():
            first, *words = line.split()
            assert first in ("python", "synthsieve")
            start = [sys.executable] if first == "python" else [sys.executable, "-m", "synthsieve"]
            done = subprocess.run(
                [*start, *words], cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8"
            )
            assert done.returncode == 0, f"{line}\n{done.stderr}"
            printed[words[0]] = done.stdout
    return printed


def check(folder, printed, at_least):
    correct, _, total, *_ = printed["check.py"].split()
    assert total == "150"
    assert int(correct) >= at_least
    assert "benign" in printed["in_python.py"]
    assert "malignant" in (folder / "malignant.csv").read_text(encoding="utf-8")
    assert len((folder / "labelled.csv").read_text(encoding="utf-8").splitlines()) == 151
    assert {"report.html", "dataset.csv", "model"} <= {path.name for path in (folder / "out").iterdir()}


def test_the_page_has_every_step():
    commands = [text.split()[1] for language, _, text in blocks() if language == "sh"]
    assert commands == ["make_table.py", "run", "predict", "check.py", "label", "sample", "in_python.py"]


@pytest.mark.slow
def test_the_tutorial(tmp_path):
    check(tmp_path, follow(tmp_path), at_least=125)  # 136 of 150 were measured; three standard errors are ten rows
