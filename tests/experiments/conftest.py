"""Experiments small enough to be run whole, without other processes."""

import pytest

from synthsieve.experiments import workers
from tests.training.conftest import QUICK, digits

__all__ = ["digits"]  # the fixture

SMALL_SETTINGS = [
    *QUICK,
    "sampling.num_steps=5",
    "augmentation.steps=6",
    "augmentation.temperature=0.5",
    "implicit.num_steps=2",
    "comparison.pool_sizes=[40,80]",
]


class RecordingPool(workers.InProcessPool):
    """Runs every task in this process and remembers their names."""

    def __init__(self, origin, names):
        super().__init__(origin)
        self.names = names

    def start(self, task):
        self.names.append(task.name)
        super().start(task)


def work_here(monkeypatch):
    """From now on every task runs in this process, whatever `workers` says: the list of those started."""
    names = []
    monkeypatch.setattr(workers, "WorkerPool", lambda origin: RecordingPool(origin, names))
    return names


@pytest.fixture
def in_process_pool(monkeypatch):
    """Every task runs in this process; the list of those started. For verbs: --workers 1."""
    return work_here(monkeypatch)
