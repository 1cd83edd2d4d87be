"""Networks that are not on the CPU learn the same; a device that is not there is refused; mixed precision is tested."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import synthsieve
from synthsieve import CoresetSelector, LatentEBMClassifier
from synthsieve.api.run import reproduce
from synthsieve.data.origin import Origin
from synthsieve.errors import ConfigError, InputError
from synthsieve.io import precision
from synthsieve.io.devices import device_of
from synthsieve.io.precision import PrecisionTest, measure, try_bfloat16
from synthsieve.settings import Precision
from synthsieve.training.defaults import settings_for
from synthsieve.training.history import read
from synthsieve.training.loop import fit
from synthsieve.training.run_dir import RunDirectory
from tests.contracts.test_modalities import CASES, settings
from tests.errors import raises

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
KINDS = ("image", "vector", "table", "sound", "text")


def run_far_job(folder, *kinds):
    job = [sys.executable, "-m", "tests.training.far_job", folder, *kinds]
    done = subprocess.run(job, env=ENVIRONMENT, cwd=ROOT, check=False, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("kind", ["digits", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS)])
def test_another_device_learns_the_same(kind, tmp_path):
    run_far_job(tmp_path, kind)
    here, far = (read(tmp_path / kind / place / "history.jsonl") for place in ("here", "far"))
    assert len(here) == len(far) > 0
    for one, other in zip(here, far, strict=True):
        assert other == pytest.approx(one, rel=1e-3, abs=1e-3)
    pools = [sorted((tmp_path / kind / place).glob("pool-*.npz")) for place in ("here", "far")]
    assert [path.name for path in pools[0]] == [path.name for path in pools[1]] != []
    for one, other in zip(*pools, strict=True):
        np.testing.assert_array_equal(np.load(other)["weight"], np.load(one)["weight"])
    ours, other_values = (load_file(tmp_path / kind / place / "last.safetensors") for place in ("here", "far"))
    assert {name: value.shape for name, value in ours.items()} == {name: v.shape for name, v in other_values.items()}
    assert not any(value.is_floating_point() and not value.isfinite().all() for value in other_values.values())


@pytest.mark.slow
def test_every_method_of_the_benchmark_learns_the_same_on_another_device(tmp_path):
    run_far_job(tmp_path, "benchmark")


def test_tensors_on_another_device_are_selected_there(tmp_path):
    run_far_job(tmp_path, "select")


def with_gpus(monkeypatch, count, *, mps=False, processes=1):
    monkeypatch.setattr("torch.cuda.is_available", lambda: count > 0)
    monkeypatch.setattr("torch.cuda.device_count", lambda: count)
    monkeypatch.setattr("torch.cuda.set_device", lambda place: None)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: mps)
    monkeypatch.setenv("LOCAL_RANK", str(processes - 1))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(processes))


@pytest.mark.parametrize(
    ("name", "machine", "expected"),
    [
        ("auto", {"count": 0}, "cpu"),
        ("auto", {"count": 2}, "cuda:0"),
        ("auto", {"count": 0, "mps": True}, "mps"),
        ("auto", {"count": 2, "processes": 2}, "cuda:1"),
        ("auto", {"count": 1, "processes": 2}, "cpu"),
        ("auto", {"count": 0, "mps": True, "processes": 2}, "cpu"),
        ("cpu", {"count": 2}, "cpu"),
        ("cuda", {"count": 2, "processes": 2}, "cuda:1"),
        ("cuda:1", {"count": 2}, "cuda:1"),
        (torch.device("cuda", 1), {"count": 2}, "cuda:1"),
        ("mps", {"count": 0, "mps": True}, "mps"),
    ],
)
def test_device_of(name, machine, expected, monkeypatch):
    with_gpus(monkeypatch, **machine)
    assert str(device_of(name)) == expected


@pytest.mark.parametrize(
    ("name", "machine", "code"),
    [
        ("cuda", {"count": 0}, "no-gpu"),
        ("cuda", {"count": 1, "processes": 2}, "no-gpu"),
        ("cuda:1", {"count": 1}, "no-gpu"),
        ("mps", {"count": 1}, "no-gpu"),
        ("cuda:0", {"count": 2, "processes": 2}, "device-in-parallel"),
        ("mps", {"count": 0, "mps": True, "processes": 2}, "device-in-parallel"),
        ("gpu", {"count": 1}, "unknown-device"),
    ],
)
def test_a_device_that_is_not_there_is_refused(name, machine, code, monkeypatch):
    with_gpus(monkeypatch, **machine)
    with raises(ConfigError, code):
        device_of(name)


@pytest.mark.parametrize(
    "call",
    [
        lambda device: synthsieve.run("no-file.csv", "out", device=device),
        lambda device: synthsieve.fit("no-file.csv", "out", device=device),
        lambda device: synthsieve.sample("no-run", device=device),
        lambda device: synthsieve.evaluate("no-run", device=device),
        lambda device: synthsieve.predict("no-run", "no-file.csv", device=device),
        lambda device: synthsieve.label("no-run", "no-file.csv", "to.csv", device=device),
        lambda device: synthsieve.load("no-run", device=device),
        lambda device: synthsieve.open_run("no-run", device=device),
        lambda device: synthsieve.benchmark("no-file.csv", "out", device=device),
        lambda device: reproduce("digits", "out", device=device),
        lambda device: synthsieve.export("no-run", "to", device=device),
        lambda device: synthsieve.report("no-run", device=device),
        lambda device: synthsieve.serve("no-run", device=device),
        lambda device: synthsieve.select_file("no-file.npy", "out", device=device),
        lambda device: synthsieve.select(embeddings=np.ones((4, 2)), device=device),
        lambda device: CoresetSelector(embeddings=True, device=device).fit(np.ones((4, 2))),
    ],
)
def test_every_function_refuses_a_missing_device_before_any_work(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with_gpus(monkeypatch, 0)
    with raises(ConfigError, "no-gpu"):
        call("cuda")
    assert not list(tmp_path.iterdir())


def test_the_estimator_refuses_a_missing_device(monkeypatch):
    with_gpus(monkeypatch, 0)
    with raises(InputError, "no-gpu"):
        LatentEBMClassifier(device="cuda").fit(np.ones((4, 2)), [0, 1, 0, 1])


def test_mixed_precision_that_ends_the_process_is_reported(tmp_path, monkeypatch):
    try_bfloat16.cache_clear()
    killed = subprocess.CompletedProcess([], -4, "", "")
    monkeypatch.setattr(precision.subprocess, "run", lambda *_, **__: killed)
    assert not try_bfloat16("cpu").usable
    assert "SIGILL" in str(try_bfloat16("cpu"))
    with raises(ConfigError, "no-bfloat16"):
        synthsieve.fit("digits", tmp_path / "run", overrides=["training.precision=bfloat16"], device="cpu")
    assert not (tmp_path / "run").exists()
    try_bfloat16.cache_clear()


def test_mixed_precision_is_usable_only_if_right_and_faster():
    assert PrecisionTest(0.004, 1.5).usable
    assert not PrecisionTest(0.004, 0.9).usable
    assert PrecisionTest(0.004, 0.9).is_right
    assert not PrecisionTest(0.1, 1.5).usable
    assert not PrecisionTest(failure="it failed").usable


def test_precision_is_tried_in_another_process():
    try_bfloat16.cache_clear()
    found = try_bfloat16("cpu")
    assert found.failure or (found.error is not None and found.speedup is not None)
    assert str(found).startswith(("usable", "not usable here"))


@pytest.mark.parametrize("kind", ["image", "vector", "table", "sound"])
def test_training_in_bfloat16_is_near_that_in_float32(kind, tmp_path, monkeypatch):
    if try_bfloat16("cpu").error is None:
        pytest.skip("products in bfloat16 cannot be computed on this machine")
    monkeypatch.setattr("synthsieve.training.state.require_bfloat16", lambda device, faster: None)
    dataset, rows = CASES[kind].dataset(), {}
    for name in ("float32", "bfloat16"):
        requested = settings(dataset).changed("training", precision=Precision(name))
        run = RunDirectory.create(tmp_path / name, Origin("made up"), requested, dataset)
        fit(run, dataset)
        assert all(value.dtype is torch.float32 for value in run.load_model().parameters())
        rows[name] = read(run.history)
    first, last = (rows[name][0] for name in rows)
    assert first != last
    assert last["cross_entropy"] == pytest.approx(first["cross_entropy"], rel=0.2)
    assert last["elbo"] == pytest.approx(first["elbo"], rel=0.2)


def test_text_is_not_trained_in_bfloat16(tmp_path, monkeypatch):
    monkeypatch.setattr("synthsieve.training.state.require_bfloat16", lambda device, faster: None)
    dataset = CASES["text"].dataset()
    with raises(ConfigError, "no-bfloat16"):
        RunDirectory.create(
            tmp_path / "run",
            Origin("made up"),
            settings(dataset).changed("training", precision=Precision.BFLOAT16),
            dataset,
        )


def test_the_error_of_bfloat16_is_measured():
    if try_bfloat16("cpu").error is None:
        pytest.skip("products in bfloat16 cannot be computed on this machine")
    assert 0 < measure("cpu").error < 0.02


def test_precision_is_a_setting():
    assert settings_for("digits", overrides=["training.precision=bfloat16"]).training.precision == "bfloat16"
