"""A finished run of digits, opened."""

import pytest

from synthsieve import open_run
from tests.finished import CRAIG, finished_run


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return finished_run("digits", tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="module")
def view(out):
    return open_run(out).pool(CRAIG.name)
