"""What `make test-matrix` makes of pytest's last line, of what a machine lacks, and of the order of tests."""

import itertools
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import matrix, random_order
from tests.matrix import Condition, Outcome, Python


@pytest.mark.parametrize(
    ("code", "last", "left", "expected"),
    [
        (0, "12 passed, 3 skipped, 40 deselected in 3.21s", [], Outcome({"passed": 12, "skipped": 3}, "")),
        (1, "1 failed, 2 passed in 3.21s (0:01:02)", [], Outcome({"failed": 1, "passed": 2}, "pytest ended with 1")),
        (2, "1 error in 0.1s", [], Outcome({"error": 1}, "pytest ended with 2")),
        (-9, "", [], Outcome({}, "pytest ended with -9")),
        (0, "1 passed in 1s", ["pytest-of-me"], Outcome({"passed": 1}, "")),
        (0, "1 passed in 1s", ["synthsieve-x"], Outcome({"passed": 1}, "left in the temporary folder: synthsieve-x")),
    ],
)
def test_a_condition_fails_if_a_test_does_or_if_folders_are_left(code, last, left, expected):
    assert matrix.outcome(code, f"....\nFAILED 7 passed\n{last}\n", left) == expected


@pytest.fixture
def here(monkeypatch, tmp_path):
    """A machine with one Python; what is run is noted, and nothing is."""
    ran = []
    python = Python("3.12", tmp_path / "python", shared=False)
    monkeypatch.setattr(matrix, "pythons", lambda: {"3.12": python})
    monkeypatch.setattr(matrix, "installed", lambda python, folder: python.path)

    def run(condition, python, log, *, workers, tests):
        ran.append(condition.name)
        return Outcome({"passed": 3}, "" if condition.name != "ascii" else "pytest ended with 1")

    monkeypatch.setattr(matrix, "run", run)
    return SimpleNamespace(ran=ran, folder=str(tmp_path / "matrix"))


def test_one_line_for_each_run_and_1_if_any_failed(here, capsys):
    assert matrix.main(["--folder", here.folder, "--only", " ".join(matrix.KNOWN)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [condition.name for condition in matrix.CONDITIONS]
    messages = {line.split()[0]: line.partition(" ")[2].strip() for line in lines}
    assert messages["3.13"] == "skipped: no Python 3.13 with venv on this machine"
    assert messages["other-user"].startswith("skipped: ")
    assert messages["3.12"].startswith("3 passed, 0 failed, 0 skipped, ")
    assert "pytest ended with 1: see " in messages["ascii"]
    assert "3.13" not in here.ran


def test_the_usual_runs_are_three_and_cover_every_condition():
    for shared in (set(), {"3.11"}, {"3.12", "3.13"}):
        found = {version: Python(version, Path(version), shared=version in shared) for version in matrix.VERSIONS}
        runs = [name.split("+") for name in matrix.usual_runs(found)]
        assert len(runs) == 3
        assert sorted(part for parts in runs for part in parts) == sorted(matrix.KNOWN)
        assert not any(matrix.contradicting([matrix.KNOWN[part] for part in parts]) for parts in runs)
        (version,) = [parts[0] for parts in runs if "other-user" in parts]
        assert version in (shared or {"3.13"})


def test_what_a_machine_lacks_is_left_out_of_a_run(here, capsys):
    assert matrix.main(["--folder", here.folder]) == 0
    wanted = ("avx2+ascii+tokyo", "3.12+sse+random-order", "closed-home")
    assert here.ran == ["+".join(part for part in run.split("+") if not matrix.KNOWN[part].lacking()) for run in wanted]
    lines = capsys.readouterr().out.splitlines()
    assert "; left out 3.11: no Python 3.11 with venv on this machine" in lines[0]
    assert "Python 3.12" in lines[1]
    assert "3.12: " not in lines[1]
    assert "3.13: no Python 3.13" in lines[2]
    assert "; other-user: " in lines[2]


def test_conditions_together_have_all_their_variables_and_arguments():
    parts = [matrix.KNOWN[name] for name in ("3.12", "sse", "random-order", "other-user")]
    whole = matrix.combine(parts)
    assert whole.name == "3.12+sse+random-order+other-user"
    assert whole.version == "3.12"
    assert whole.environment == {**matrix.SSE, "SYNTHSIEVE_TEST_ORDER": "1"}
    assert whole.arguments == ("-p", "tests.random_order")
    assert whole.closed_home
    assert whole.other_user


def test_some_runs_only_and_0_if_none_failed(here, capsys):
    assert matrix.main(["--folder", here.folder, "--only", "random-order 3.11 tokyo+3.12"]) == 0
    assert here.ran == ["random-order", "tokyo+3.12"]
    assert "3.11         skipped: no Python 3.11" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        matrix.main(["--only", "windows"])
    assert "no condition is called windows: choose among 3.11" in capsys.readouterr().err
    for run in ("avx2+sse", "3.11+3.12"):
        with pytest.raises(SystemExit):
            matrix.main(["--only", run])
        assert f"{run} cannot hold at once" in capsys.readouterr().err


def test_environments_are_made_once_for_requirements_and_linked_to_the_tree(monkeypatch, tmp_path):
    ran = []

    def run(command, **given):
        ran.append([str(word) for word in command])
        if command[1:3] == ["-m", "venv"]:
            (command[3] / "bin").mkdir(parents=True)
            (command[3] / "bin" / "python").symlink_to(command[0])

    monkeypatch.setattr(subprocess, "run", run)
    one, other = tmp_path / "one", tmp_path / "other"
    for tree in (one, other):
        tree.mkdir()
        (tree / "pyproject.toml").write_text("requirements", encoding="utf-8")
        (tree / "constraints.txt").write_text("versions", encoding="utf-8")
    python = Python("3.12", tmp_path / "python", shared=True)
    python.path.touch()

    def commands(tree):
        ran.clear()
        monkeypatch.setattr(matrix, "ROOT", tree)
        matrix.installed(python, tmp_path)
        return [command[-1] for command in ran]

    assert commands(one)[1:] == ["pip>=25.1", f".[{matrix.EXTRAS}]"]
    assert commands(one) == []
    assert commands(other) == ["."]
    assert "--no-deps" in ran[0]
    (other / "constraints.txt").write_text("other versions", encoding="utf-8")
    assert commands(other)[1:] == ["pip>=25.1", f".[{matrix.EXTRAS}]"]


def test_an_installation_that_fails_is_a_failure(here, monkeypatch, capsys):
    def fail(python, folder):
        raise subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(matrix, "installed", fail)
    assert matrix.main(["--folder", here.folder, "--only", "3.12"]) == 1
    assert "failed: installing for Python 3.12 ended with 1" in capsys.readouterr().out


def test_another_user_needs_root_and_what_every_user_can_read(monkeypatch, tmp_path):
    (other,) = [condition for condition in matrix.CONDITIONS if condition.other_user]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "only root can" in matrix.why_not(other, Python("3.12", tmp_path, shared=True), tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "other users cannot run" in matrix.why_not(other, Python("3.12", tmp_path, shared=False), tmp_path)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert "other users cannot read" in matrix.why_not(other, Python("3.12", tmp_path, shared=True), closed)


def test_a_condition_gets_its_own_variables_and_none_that_undo_them(monkeypatch, tmp_path):
    seen = {}

    def run(command, *, env, stdout, **given):
        seen.update(env)
        stdout.write(b"1 passed in 1s")
        Path(env["TMPDIR"], "synthsieve-left").mkdir()
        return SimpleNamespace(returncode=0)

    for name in ("LC_ALL", "TZ", "PYTHONPATH", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "of the caller")
    monkeypatch.setattr(subprocess, "run", run)
    condition = Condition("x", {"LC_ALL": "C"}, closed_home=True)
    done = matrix.run(condition, tmp_path / "python", tmp_path / "log", workers=1, tests=[])
    assert done == Outcome({"passed": 1}, "left in the temporary folder: synthsieve-left")
    assert seen["LC_ALL"] == "C"
    assert "of the caller" not in seen.values()
    assert not Path(seen["TMPDIR"]).exists()


def ordered(seed, monkeypatch):
    monkeypatch.setenv("SYNTHSIEVE_TEST_ORDER", seed)
    names = [(module, f"{module}::{number}") for module in "abcdef" for number in range(8)]
    items = [SimpleNamespace(location=(module, 0, ""), nodeid=name) for module, name in names]
    random_order.pytest_collection_modifyitems(items)
    assert sorted(item.nodeid for item in items) == sorted(name for _, name in names)
    return [(item.location[0], item.nodeid) for item in items]


def test_a_seed_is_an_order_in_which_modules_stay_together(monkeypatch):
    first = ordered("1", monkeypatch)
    assert ordered("1", monkeypatch) == first
    assert ordered("2", monkeypatch) != first != sorted(first)
    modules = [module for module, _ in first]
    assert sum(one != other for one, other in itertools.pairwise(modules)) == 5
