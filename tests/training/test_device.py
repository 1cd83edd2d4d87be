"""Networks that are not on the CPU are trained the same; asking for a GPU that the machine lacks is an error."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from synthsieve.errors import ConfigError
from synthsieve.io.devices import Device, device_of
from synthsieve.training.history import read

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


# The recurrent cells of text have kernels of their own on every device but the CPU: they cannot be tried here.
@pytest.mark.parametrize("kinds", [("digits",), pytest.param(("image", "table", "sound"), marks=pytest.mark.slow)])
def test_another_device_learns_the_same(kinds, tmp_path):
    job = [sys.executable, "-m", "tests.training.far_job", tmp_path, *kinds]
    done = subprocess.run(job, env=ENVIRONMENT, cwd=ROOT, check=False, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-3000:]
    for kind in kinds:
        here, far = (read(tmp_path / kind / place / "history.jsonl") for place in ("here", "far"))
        assert len(here) == len(far) > 0
        for one, other in zip(here, far, strict=True):
            assert other == pytest.approx(one, rel=1e-3, abs=1e-3)
        pools = [sorted((tmp_path / kind / place).glob("pool-*.npz")) for place in ("here", "far")]
        assert [path.name for path in pools[0]] == [path.name for path in pools[1]] != []
        for one, other in zip(*pools, strict=True):
            np.testing.assert_array_equal(np.load(other)["weight"], np.load(one)["weight"])
        ours, other_values = (load_file(tmp_path / kind / place / "last.safetensors") for place in ("here", "far"))
        assert {name: value.shape for name, value in ours.items()} == {
            name: v.shape for name, v in other_values.items()
        }
        assert not any(value.is_floating_point() and not value.isfinite().all() for value in other_values.values())


def test_a_missing_gpu_is_an_error(monkeypatch):
    assert device_of(Device.CPU).type == "cpu"
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("torch.cuda.set_device", lambda place: None)
    assert str(device_of(Device.CUDA)) == "cuda:0"
    monkeypatch.setenv("LOCAL_RANK", "1")
    with pytest.raises(ConfigError, match=r"--device cuda needs 2 GPUs"):
        device_of(Device.CUDA)
