"""`synthsieve report` as a user types it."""

import json

import pytest

from synthsieve import report
from tests.finished import CRAIG, finished_run
from tests.stories.test_command_line import synthsieve


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return finished_run("vector", tmp_path_factory.mktemp("story"))


def test_report_writes_one_file(out):
    done = synthsieve("report", out)
    path = out / "report.html"
    assert done.stdout.splitlines()[-1].startswith(f"report: {path} (0.")
    assert done.stdout.split(":")[0] in ("Yes", "No", "Cannot tell", "Cannot tell from 24 labels")
    assert path.read_text(encoding="utf-8").lstrip().startswith("<!doctype html>")
    assert not list(out.rglob("*.partial"))


def test_report_options_and_json(out, tmp_path):
    done = synthsieve(
        "report", out, "--arm", CRAIG.name, "--to", tmp_path / "here.html", "--seed", 0, "--json", "--quiet"
    )
    printed = json.loads(done.stdout)
    assert printed["variant"] == CRAIG.name
    assert printed["bytes"] == (tmp_path / "here.html").stat().st_size
    assert printed["notes"] == []
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "keyword"),
    [
        (["--arm", "craig"], "entropy, L=60; entropy + CRAIG, L=60"),
        (["--seed", 7], "seed of the run (0)"),
        (["--to", "/dev/null/report.html"], "/dev/null"),
    ],
)
def test_bad_options(out, words, keyword):
    done = synthsieve("report", out, *words, "--quiet", code=2)
    assert keyword in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_directory_without_a_run(tmp_path):
    assert "no run" in synthsieve("report", tmp_path, code=2).stderr


def test_report_from_python(out, tmp_path):
    written = report(out, to=tmp_path / "python.html", variant=CRAIG.name)
    assert written.path == tmp_path / "python.html"
    assert written.size == written.path.stat().st_size
