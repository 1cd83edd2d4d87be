"""A damaged file is refused with one of our errors, or read: no other error, no hang, no unbounded memory."""

from __future__ import annotations

import functools
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synthsieve.errors import SynthsieveError
from tests.robustness.fuzz.guard import refused_or_read
from tests.robustness.fuzz.mutations import spoiled
from tests.robustness.fuzz.targets import TARGETS, Ready
from tests.scratch import new_folder

EXAMPLES = 15  # of each target; `make fuzz` tries thousands
SLOW = {"weights": 5, "last-checkpoint": 5, "run-json": 8, "download": 8}
REFUSED = {("download", 2)}  # a good file that is not for us: a redirection


@functools.cache
def ready(name: str) -> Ready:
    return TARGETS[name](new_folder())


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_file(name: str) -> None:
    @settings(max_examples=SLOW.get(name, EXAMPLES), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**32 - 1))
    def tried(seed: int) -> None:
        target, random = ready(name), Random(seed)
        data = spoiled(target.seeds[random.randrange(len(target.seeds))], random)
        error = refused_or_read(lambda: target.feed(data))
        if isinstance(error, SynthsieveError):
            assert "\n" not in str(error).strip()
            assert len(str(error)) < 2000

    tried()


@pytest.mark.parametrize("name", TARGETS)
def test_good_file(name: str) -> None:
    for place, data in enumerate(ready(name).seeds):
        error = refused_or_read(lambda data=data: ready(name).feed(data))
        assert (error is not None) == ((name, place) in REFUSED), error
