"""The wording of typical error messages and of the help, as text files in tests/snapshots.

After a deliberate change: SYNTHSIEVE_UPDATE_SNAPSHOTS=1 pytest tests/test_snapshots.py, and read the diff.
"""

import os
from pathlib import Path

import pytest
from typer.main import get_command

from synthsieve.cli.app import app
from synthsieve.data import registry
from tests.stories.test_command_line import synthsieve

SNAPSHOTS = Path(__file__).parent / "snapshots"
BUILT_IN = dict(registry._SOURCES)
VERBS = [command.callback.__name__ for command in app.registered_commands]
ERRORS = {
    "unknown-source": ["fit", "digit", "-o", "{tmp}/out"],
    "missing-file": ["fit", "{tmp}/absent.csv", "-o", "{tmp}/out"],
    "missing-label-option": ["run", "{tmp}/table.csv", "-o", "{tmp}/out"],
    "unknown-label-column": ["run", "{tmp}/table.csv", "-o", "{tmp}/out", "--label", "knid"],
    "too-few-labels": ["fit", "digits", "-o", "{tmp}/out", "--labels", "5"],
    "unknown-preset": ["fit", "digits", "-o", "{tmp}/out", "--config", "digits-hours"],
    "unknown-setting": ["fit", "digits", "-o", "{tmp}/out", "--set", "training.step=10"],
    "renamed-setting": ["fit", "digits", "-o", "{tmp}/out", "--set", "learning.steps=10"],
    "bad-setting": ["fit", "digits", "-o", "{tmp}/out", "--set", "training.steps=many"],
    "bad-override": ["fit", "digits", "-o", "{tmp}/out", "--set", "training.steps"],
    "unknown-device": ["fit", "digits", "-o", "{tmp}/out", "--device", "gpu"],
    "no-generator": ["fit", "digits", "-o", "{tmp}/out", "--augment", "--supervised"],
    "no-run-folder": ["evaluate", "{tmp}"],
    "unknown-method": ["benchmark", "digits", "-o", "{tmp}/out", "--methods", "vat,mixmach"],
    "unknown-part": ["evaluate", "{tmp}", "--part", "train"],
    "not-writable": ["fit", "digits", "-o", "/dev/null/out"],
}


def check(name, text):
    """Compare with the stored text, up to white space."""
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("SYNTHSIEVE_UPDATE_SNAPSHOTS"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n", encoding="utf-8")
    assert text.split() == path.read_text(encoding="utf-8").split()


@pytest.mark.parametrize("verb", VERBS)
def test_help(verb, monkeypatch):
    """The texts of a verb and its options; how they are laid out differs between versions of typer."""
    command = get_command(app).commands[verb]
    lines = [" ".join(command.help.split()), ""]
    for parameter in command.params:
        names = ", ".join([*parameter.opts, *parameter.secondary_opts])
        lines.append(f"{names}: {' '.join((parameter.help or '').split())}")
    check(f"help/{verb}", "\n".join(lines))
    monkeypatch.setenv("COLUMNS", "100")
    assert f"synthsieve {verb}" in synthsieve(verb, "--help").stdout


@pytest.mark.parametrize("name", ERRORS)
def test_error_message(name, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_SOURCES", BUILT_IN)  # other tests register more
    (tmp_path / "table.csv").write_text("a,b,kind\n" + "1,2,x\n3,4,y\n" * 20, encoding="utf-8")
    done = synthsieve(*[word.format(tmp=tmp_path) for word in ERRORS[name]], code=2)
    check(f"errors/{name}", done.stderr.replace(str(tmp_path), "TMP"))


def test_no_snapshot_is_left_over():
    expected = {f"help/{verb}.txt" for verb in VERBS} | {f"errors/{name}.txt" for name in ERRORS}
    assert {path.relative_to(SNAPSHOTS).as_posix() for path in SNAPSHOTS.rglob("*.txt")} == expected
