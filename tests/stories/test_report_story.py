"""`synthsieve report` as a user types it."""

import json

import pytest
from tests.finished import CRAIG, finished_run
from tests.stories.test_command_line import synthsieve


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return finished_run("vector", tmp_path_factory.mktemp("story"))


def test_report_writes_one_file_and_says_the_answer(out):
    done = synthsieve("report", out)
    path = out / "report.html"
    assert done.stdout.splitlines()[-1].startswith(f"report: {path} (0.")
    assert done.stdout.split(":")[0] in ("Yes", "No", "Cannot tell", "Cannot tell from 24 labels")
    assert path.read_text(encoding="utf-8").lstrip().startswith("<!doctype html>")
    assert not list(out.rglob("*.partial"))


def test_report_of_an_arm_to_a_place_of_ones_own_as_json(out, tmp_path):
    done = synthsieve(
        "report", out, "--arm", CRAIG.name, "--to", tmp_path / "here.html", "--seed", 0, "--json", "--quiet"
    )
    report = json.loads(done.stdout)
    assert report["arm"] == CRAIG.name
    assert report["bytes"] == (tmp_path / "here.html").stat().st_size
    assert report["notes"] == []
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--arm", "craig"], "expected an arm with a pool (entropy, L=60; entropy + CRAIG, L=60), got 'craig'"),
        (["--seed", 7], "expected a seed of the run (0), got 7"),
        (["--to", "/dev/null/report.html"], "/dev/null"),
    ],
)
def test_bad_input_gets_one_sentence(out, words, sentence):
    done = synthsieve("report", out, *words, "--quiet", code=2)
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_a_folder_without_a_run_is_refused(tmp_path):
    assert "holds no run" in synthsieve("report", tmp_path, code=2).stderr
