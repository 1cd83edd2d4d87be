"""A finished run of digits and its pool, shared by the tests of the gallery, the report and exports."""

import pytest

from synthsieve import open_run
from tests.finished import CRAIG, finished_run


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return finished_run("digits", tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="module")
def view(out):
    return open_run(out).pool(CRAIG.name)
