"""Two processes with half of each batch train as one does with all of it; a lost process is an error."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from synthsieve.errors import CheckpointError, ConfigError
from synthsieve.io.random_streams import draw_rows, randn
from synthsieve.training import checkpoint
from synthsieve.training.history import read
from synthsieve.training.parallel import SINGLE_PROCESS, ProcessGroup, backend, shard_rng
from synthsieve.training.run_dir import RunDirectory
from tests.errors import raises
from tests.training.conftest import QUICK

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
# Sums of float64 in another order, through eight steps of Adam, whose division makes small gradients large.
TOLERANCE = 1e-9


def torchrun(*words, processes=2, **more):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return subprocess.Popen(
        [*command, *more.pop("launch", ()), *map(str, words)],
        env=ENVIRONMENT,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        **more,
    )


def test_two_processes_with_half_the_batch_are_one_with_the_whole(tmp_path):
    alone = subprocess.run(
        [sys.executable, "-m", "tests.training.parallel_job", tmp_path / "one"], env=ENVIRONMENT, cwd=ROOT, check=False
    )
    assert alone.returncode == 0
    done = torchrun("-m", "tests.training.parallel_job", tmp_path / "two")
    _, err = done.communicate(timeout=600)
    assert done.returncode == 0, err
    one, two = load_file(tmp_path / "one"), load_file(tmp_path / "two")
    assert torch.equal(one.pop("latents"), two.pop("latents"))
    for name, value in one.items():
        assert value.dtype in (torch.float64, torch.int64)
        assert torch.allclose(value, two[name], rtol=TOLERANCE, atol=TOLERANCE), name


def words(out, *more):
    settings = [word for setting in (*QUICK, *more) for word in ("--set", setting)]
    return ["-m", "synthsieve", "fit", "digits", "-o", out, "--threads", "1", "--quiet", *settings]


def test_the_shards_of_the_ranks_are_all_rows():
    for shape in ((6, 3), (8, 2, 5), (4,)):
        whole = randn(shape, rng=torch.Generator().manual_seed(1))
        for size in (1, 2):
            parts = [
                randn(
                    (shape[0] // size, *shape[1:]),
                    rng=shard_rng(torch.Generator().manual_seed(1), ProcessGroup(rank, size)),
                )
                for rank in range(size)
            ]
            for rank, part in enumerate(parts):
                assert torch.equal(part, whole[rank::size])
    rng = shard_rng(torch.Generator().manual_seed(2), ProcessGroup(1, 3))
    assert draw_rows(lambda size: torch.arange(size[0]), (2,), rng).tolist() == [1, 4]
    assert shard_rng(rng, ProcessGroup()) is rng


def test_alone_nothing_is_sent():
    loss, weight = torch.ones(()), torch.nn.Parameter(torch.ones(2))
    (2 * weight).sum().backward()
    SINGLE_PROCESS.average_gradients([weight, torch.nn.Parameter(torch.ones(1))])
    assert weight.grad.tolist() == [2, 2]
    assert SINGLE_PROCESS.mean(loss) is loss
    SINGLE_PROCESS.wait()
    assert SINGLE_PROCESS.first


def test_batches_that_cannot_be_divided_are_refused():
    with raises(ConfigError, "indivisible-batch"):
        ProcessGroup(0, 2).check_sizes({"training.batch_unlabeled": 4, "training.batch_labeled": 25})


def test_processes_that_stand_at_different_steps_are_refused():
    class Beside(ProcessGroup):
        """One of two, the other of which stands at step 8."""

        def max(self, value):
            return torch.maximum(value, torch.tensor([8, -8]))

    Beside(0, 2).check_step(8)
    SINGLE_PROCESS.check_step(3)
    for step in (0, 12):
        with raises(CheckpointError, "different-steps"):
            Beside(0, 2).check_step(step)


def test_means_over_a_batch_are_refused_where_no_process_has_it():
    with raises(ConfigError, "batch-norm-in-parallel"):
        ProcessGroup(0, 2).check_model(torch.nn.Sequential(torch.nn.BatchNorm2d(3)))


def test_numbers_in_main_memory_never_need_a_gpu():
    """The networks are there, and so are the pools that processes share: nccl alone could send neither."""
    assert backend(gpu=False) == "gloo"
    assert dict(pair.split(":") for pair in backend(gpu=True).split(",")) == {"cpu": "gloo", "cuda": "nccl"}


def test_a_slow_process_does_not_take_the_run_of_the_first_for_another_s(quick_run, digits):
    run = quick_run()
    with raises(ConfigError, "run-exists"):
        RunDirectory.create(run.path, run.origin, run.settings, digits)
    again = RunDirectory.create(run.path, run.origin, run.settings, digits, write=False)
    assert again.split.hash == run.split.hash


@pytest.mark.slow
def test_all_processes_train_the_same_generator_after_the_last_step(tmp_path):
    job = torchrun(*words(tmp_path / "run", "training.generator_ratio=5"))
    _, err = job.communicate(timeout=600)
    assert job.returncode == 0, err
    assert checkpoint.read_notes(tmp_path / "run" / "best.safetensors")["generator_finished"]
    again = torchrun(*words(tmp_path / "run", "training.generator_ratio=5"), "--resume")
    _, err = again.communicate(timeout=600)
    assert again.returncode == 0, err


@pytest.mark.slow
def test_a_killed_process_ends_the_job_with_a_sentence_and_resume_goes_on(tmp_path):
    long = ("training.steps=400", "training.checkpoint_every=10", "training.evaluate_every=10")
    job = torchrun(*words(tmp_path / "run", *long))
    _wait_for(tmp_path / "run" / "last.safetensors", job)
    os.kill(_child(job.pid), signal.SIGKILL)
    _, err = job.communicate(timeout=600)
    assert job.returncode != 0
    assert "stopped because another process of this training ended" in err
    assert "--resume" in err
    again = torchrun(*words(tmp_path / "run", *long), "--resume")
    _, err = again.communicate(timeout=600)
    assert again.returncode == 0, err
    assert read(tmp_path / "run" / "history.jsonl")[-1]["step"] == 400
    unbroken = torchrun(*words(tmp_path / "unbroken", *long))
    _, err = unbroken.communicate(timeout=600)
    assert unbroken.returncode == 0, err
    for name in ("last.safetensors", "previous.safetensors", "best.safetensors", "history.jsonl"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "unbroken" / name).read_bytes(), name


@pytest.mark.slow
def test_an_elastic_restart_goes_on_by_itself(tmp_path):
    long = ("training.steps=300", "training.checkpoint_every=10")
    run = tmp_path / "run"
    job = torchrun(*words(run, *long), launch=("--max-restarts", "1"))
    _wait_for(run / "last.safetensors", job)
    os.kill(_child(job.pid, 0), signal.SIGKILL)  # the one that holds the lock
    _, err = job.communicate(timeout=600)
    assert job.returncode == 0, err
    assert read(run / "history.jsonl")[-1]["step"] == 300

    by_two = load_file(run / "last.safetensors")
    (run / "previous.safetensors").replace(run / "last.safetensors")  # ten steps before the end
    command = [sys.executable, *map(str, words(run, *long)), "--resume"]
    assert subprocess.run(command, env=ENVIRONMENT, cwd=ROOT, check=False).returncode == 0
    by_one = load_file(run / "last.safetensors")
    assert by_one.keys() == by_two.keys()
    for name, value in by_one.items():
        if name.startswith("generator"):
            assert torch.equal(value, by_two[name]), name
        elif name.startswith("averaged"):
            assert torch.allclose(value, by_two[name], rtol=1e-3, atol=1e-3), name  # ten steps in float32


@pytest.mark.slow
def test_one_process_goes_on_with_what_two_began(tmp_path):
    long = ("training.steps=300", "training.checkpoint_every=10", "training.evaluate_every=10")
    job = torchrun(*words(tmp_path / "run", *long))
    _wait_for(tmp_path / "run" / "last.safetensors", job)
    job.terminate()
    job.communicate(timeout=600)
    before = read(tmp_path / "run" / "history.jsonl")
    assert before[-1]["step"] < 300
    alone = [sys.executable, *map(str, words(tmp_path / "run", *long)), "--resume"]
    done = subprocess.run(
        alone, env=ENVIRONMENT, cwd=ROOT, check=False, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    after = read(tmp_path / "run" / "history.jsonl")
    assert [row["step"] for row in after] == list(range(10, 301, 10))
    with safe_open(tmp_path / "run" / "previous.safetensors", "pt") as kept:
        assert json.loads(kept.metadata()["synthsieve"])["step"] == 290
    assert after[0] == before[0]


def _wait_for(path, job):
    for _ in range(600):
        if path.is_file():
            return
        assert job.poll() is None, job.communicate()
        time.sleep(0.1)
    raise AssertionError(f"{path} never came")


def _child(parent, rank=1):
    """The process of that rank that torchrun started."""
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="utf-8").split():
        if f"RANK={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            return int(child)
    raise AssertionError(f"no process of rank {rank}")
