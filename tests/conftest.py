"""Fixed seeds everywhere, hypothesis included: a test that passes here passes there."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from tests.scratch import SESSION

settings.register_profile("fixed", derandomize=True)
settings.load_profile("fixed")


def pytest_configure(config):
    """A folder for what tests share, the same for all processes; the one that began it removes it."""
    if SESSION not in os.environ:
        os.environ[SESSION] = config.synthsieve_runs = tempfile.mkdtemp(prefix="synthsieve-runs-")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # begun by nohup, or by & in a script, as children would be
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.synthsieve_patch = pytest.MonkeyPatch()
    draw_alike(config.synthsieve_patch)


def pytest_unconfigure(config):
    config.synthsieve_patch.undo()
    if hasattr(config, "synthsieve_runs"):
        shutil.rmtree(config.synthsieve_runs, ignore_errors=True)
        del os.environ[SESSION]


def draw_alike(patch):
    """Hypothesis likes to draw the numbers that stand in our modules, so draws would depend on which are loaded.

    It has no setting for that. A version without these names draws as it likes, which our tests can bear.
    """
    try:
        from hypothesis.internal.conjecture import providers

        none = providers._local_constants
        patch.setattr(providers, "_get_local_constants", lambda: none)
    except (ImportError, AttributeError):
        pass


@pytest.fixture(scope="session")
def real_data(tmp_path_factory):
    """`$SYNTHSIEVE_TEST_DATA`, or the copies that lie beside the repository, unpacked."""
    if given := os.environ.get("SYNTHSIEVE_TEST_DATA"):
        return Path(given)
    unpack = Path(__file__).parents[2] / "shared" / "data" / "unpack.py"
    if not unpack.exists():
        pytest.skip("no real data here: set SYNTHSIEVE_TEST_DATA to a folder with svhn, mnist and adult in it")
    target = tmp_path_factory.mktemp("real")
    command = [sys.executable, str(unpack), str(target), "svhn", "mnist", "adult", "fsdd", "sst2"]
    subprocess.run(command, check=True, capture_output=True)
    return target
