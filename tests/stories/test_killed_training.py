"""Training killed with SIGKILL, again and again, ends with the weights of an unbroken run, byte for byte."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tests.training.conftest import QUICK

STEPS = 60


def command(out):
    settings = [*QUICK, f"training.steps={STEPS}", "training.checkpoint_every=5", "training.evaluate_every=7"]
    words = [sys.executable, "-m", "synthsieve", "fit", "digits", "-o", str(out), "--resume", "--threads", "1"]
    return [*words, *(word for setting in settings for word in ("--set", setting))]


@pytest.mark.slow  # `make test-faults` kills quicker commands of the same kind
def test_killed_training_resumes_bit_for_bit(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    subprocess.run(command(whole), check=True, capture_output=True)

    chance = random.Random(0)
    kills = 0
    for _ in range(4):
        process = subprocess.Popen(command(broken), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_a_checkpoint_newer_than(broken / "last.safetensors", process)
        time.sleep(chance.random() * 0.15)
        os.kill(process.pid, signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    assert kills > 0
    subprocess.run(command(broken), check=True, capture_output=True)

    weights = {"last.safetensors", "previous.safetensors", "best.safetensors", "reference.safetensors"}
    for name in (*sorted(weights), "history.csv", "split.json"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), name
    finals = {"run.json", "split.json", "history.csv", "history.jsonl", *weights}
    assert {path.name for path in whole.iterdir()} == finals
    assert {path.name for path in broken.iterdir()} == finals


def wait_for_a_checkpoint_newer_than(path, process):
    before = path.stat().st_mtime_ns if path.exists() else 0
    while process.poll() is None and not (path.exists() and path.stat().st_mtime_ns > before):
        time.sleep(0.005)
