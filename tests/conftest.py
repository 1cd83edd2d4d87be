"""Fixed seeds everywhere, hypothesis included: a test that passes here passes there."""

import os
import shutil
import tempfile

from hypothesis import settings
from hypothesis.internal.conjecture import providers

settings.register_profile("fixed", derandomize=True)
settings.load_profile("fixed")
# Else numbers that stand in our modules are drawn more often, and so draws depend on which of them are loaded.
providers._get_local_constants = lambda: providers._local_constants


def pytest_configure(config):
    """A folder for runs that tests look at, the same for all processes; the one that began it removes it."""
    if "SYNTHSIEVE_TEST_RUNS" not in os.environ:
        os.environ["SYNTHSIEVE_TEST_RUNS"] = config.synthsieve_runs = tempfile.mkdtemp(prefix="synthsieve-runs-")


def pytest_unconfigure(config):
    if hasattr(config, "synthsieve_runs"):
        shutil.rmtree(config.synthsieve_runs, ignore_errors=True)
        del os.environ["SYNTHSIEVE_TEST_RUNS"]
