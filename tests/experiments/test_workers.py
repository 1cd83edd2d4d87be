"""Jobs: in an order that respects who waits for whom, never twice, and with one sentence when a worker fails."""

import multiprocessing
import os
import shutil
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from synthsieve.data.origin import Origin
from synthsieve.errors import CheckpointError, SynthsieveError
from synthsieve.experiments.arms import Arm, TableEntry, settings_of
from synthsieve.experiments.runner import answers_of, is_finished
from synthsieve.experiments.workers import Job, run_jobs
from synthsieve.training.defaults import settings_for
from tests.errors import raises
from tests.experiments.conftest import SMALL_SETTINGS

DIGITS = Origin("digits")
SETTINGS = settings_for("digits", overrides=SMALL_SETTINGS)
CRAIG = TableEntry(Arm.CRAIG, 40)


class Heard:
    """Progress that remembers."""

    def __init__(self):
        self.output, self.closed = [], 0

    def update(self, done, total, message=""):
        self.output.append((done, total, message))

    def close(self):
        self.closed += 1


def two_jobs(folder):
    """An arm, and pretraining it waits for: named in the wrong order."""
    first = Job("first", folder / "first", SETTINGS.pretrained())
    arm = Job("arm", folder / "arm", settings_of(CRAIG, SETTINGS), (first.folder,), first.folder)
    return [arm, first]


def contents(folder):
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


def test_a_job_waits_for_those_before_it_and_is_never_done_twice(tmp_path, in_process_pool):
    arm, first = two_jobs(tmp_path)
    heard = Heard()
    run_jobs([arm, first], DIGITS, workers=1, progress=heard)
    assert in_process_pool == ["first", "arm"]
    assert heard.closed == 1
    assert {total for _, total, _ in heard.output} == {12 + 6}
    assert [done for done, _, _ in heard.output] == sorted(done for done, _, _ in heard.output)
    assert heard.output[0] == (0, 18, "0 of 2 done")
    assert heard.output[-1] == (18, 18, "2 of 2 done")
    found = answers_of(arm.folder)
    assert {part: answers.probabilities.shape for part, answers in found.items()} == {
        "test": (359, 10),
        "validation": (143, 10),
    }
    np.testing.assert_allclose(found["test"].probabilities.sum(axis=1), 1, atol=1e-5)

    before = contents(tmp_path)
    run_jobs([arm, first], DIGITS, workers=1)
    assert in_process_pool == ["first", "arm"]
    assert contents(tmp_path) == before

    (arm.folder / "answers.npz").unlink()  # killed after the last step, before this was written
    assert not is_finished(arm.folder)
    heard = Heard()
    run_jobs([arm, first], DIGITS, workers=1, progress=heard)
    assert in_process_pool == ["first", "arm", "arm"]
    assert heard.output[0] == (12, 18, "1 of 2 done")
    after = contents(tmp_path)
    weights = arm.folder / "best.safetensors"
    assert after[weights] == before[weights]
    assert {path: content for path, (_, content) in after.items()} == {p: content for p, (_, content) in before.items()}


@pytest.mark.parametrize("harmed", [["first/last", "first/previous"], ["first/best"], ["arm/last", "arm/previous"]])
def test_damaged_checkpoints_are_made_again(tmp_path, in_process_pool, harmed):
    arm, first = two_jobs(tmp_path)
    run_jobs([arm, first], DIGITS, workers=1)
    before = {path: content for path, (_, content) in contents(tmp_path).items()}
    if harmed[0].startswith("first"):  # with the arm still to begin
        shutil.rmtree(arm.folder)
    else:
        (arm.folder / "answers.npz").unlink()
    for name in harmed:
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(path.read_bytes()[:-100])
    run_jobs([arm, first], DIGITS, workers=1)
    assert {path: content for path, (_, content) in contents(tmp_path).items() if path.name != "selections.jsonl"} == {
        path: content
        for path, content in before.items()
        if path.name != "selections.jsonl"  # it tells seconds
    }


@pytest.mark.parametrize("damage", [b"", b"not a zip", b"PK\x03\x04 cut short"])
def test_what_a_run_got_right_is_read_whole_or_not_at_all(tmp_path, damage):
    (tmp_path / "answers.npz").write_bytes(damage)
    with raises(CheckpointError, "damaged-answers"):
        answers_of(tmp_path)


def test_no_job_waits_for_ever(tmp_path, in_process_pool):
    arm, _ = two_jobs(tmp_path)
    with pytest.raises(AssertionError, match="arm"):
        run_jobs([arm], DIGITS, workers=1)


@pytest.fixture
def started():
    """A function: the child processes that were started since the test began."""
    before = {child.pid for child in multiprocessing.active_children()}
    return lambda: [child for child in multiprocessing.active_children() if child.pid not in before]


def test_an_error_in_a_worker_is_one_sentence_here(tmp_path, started):
    _, first = two_jobs(tmp_path)
    impossible = replace(
        first, settings=settings_for("digits", overrides=[*SMALL_SETTINGS, "data.labels=5"]).pretrained()
    )
    with raises(SynthsieveError, "worker-failed") as caught:
        run_jobs([impossible], DIGITS, workers=1)
    assert str(caught.value).startswith(f"{first.name}: digits: labels=5")
    assert not first.folder.exists()
    assert started() == []


def test_a_killed_worker_is_one_sentence_and_ends_the_others(tmp_path, started):
    long = settings_for("digits", overrides=[*SMALL_SETTINGS, "training.steps=100000"])
    jobs = [Job(f"seed {seed}", tmp_path / str(seed), long.model_copy(update={"seed": seed})) for seed in (0, 1)]

    def kill_one():
        while len(children := started()) < 2:
            time.sleep(0.01)
        os.kill(min(child.pid for child in children), signal.SIGKILL)

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    with raises(SynthsieveError, "worker-failed") as caught:
        run_jobs(jobs, DIGITS, workers=2)
    assert "SIGKILL" in str(caught.value)
    killer.join()
    assert started() == []
