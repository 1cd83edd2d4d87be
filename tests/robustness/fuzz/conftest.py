import functools

import pytest

from synthsieve.data import registry


@pytest.fixture(autouse=True, scope="package")
def entry_points_are_read_once():
    """The program asks for plug-ins with each reading, which takes longer than most of the readings here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "entry_points", functools.cache(registry.entry_points))
        yield
