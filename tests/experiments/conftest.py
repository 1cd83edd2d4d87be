"""Experiments small enough to be run whole, without other processes."""

import functools

import pytest
import torch

from synthsieve.experiments import jobs
from tests.learning.conftest import QUICK, digits

__all__ = ["digits"]  # the fixture

TINY = [
    *QUICK,
    "sampling.num_steps=5",
    "augmentation.steps=6",
    "augmentation.temperature=0.5",
    "implicit.num_steps=2",
    "proof.pool_sizes=[40,80]",
]


class CrewHere:
    """What workers do, done in this process: a worker takes seconds to import torch."""

    begun: list[str]

    def __init__(self, origin):
        self.origin, self.busy, self.load = origin, {}, functools.cache(origin.load)

    def begin(self, job):
        assert not self.busy
        self.busy[job.place] = job
        self.begun.append(job.name)

    def news(self, *, seconds):
        (job,) = self.busy.values()
        told, threads = [], torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            job.carry_out(self.origin, self.load(), tell=told.append)
        finally:
            torch.set_num_threads(threads)
        self.busy.clear()
        yield from ((job, steps) for steps in (*told, None))

    def close(self):
        pass


def work_here(monkeypatch):
    """From now on every job is done in this process, one at a time: the list of those begun."""
    monkeypatch.setattr(CrewHere, "begun", [], raising=False)
    monkeypatch.setattr(jobs, "_Crew", CrewHere)
    return CrewHere.begun


@pytest.fixture
def crew_here(monkeypatch):
    """Every job is done in this process; the list of those begun. For verbs: --workers 1."""
    return work_here(monkeypatch)
