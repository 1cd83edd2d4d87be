"""One process that learns, draws, sieves, scores and writes for long: its memory must stay where it was.

`make soak`, and with it `make slow`, runs it for an hour; `make soak SOAK=600` for ten minutes.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch

import synthsieve
from synthsieve.data.origin import Origin
from synthsieve.evaluation.predict import score_part
from synthsieve.training import checkpoint
from synthsieve.training.augment import augment
from synthsieve.training.batches import BatchSource
from synthsieve.training.defaults import settings_for
from synthsieve.training.history import History
from synthsieve.training.run_dir import RunDirectory
from synthsieve.training.step import take_step

USUAL_SECONDS = 120.0
FLAT = 0.02  # how far memory may move after the warm-up
STEPS = 20  # of learning, between two pools
WARM_UP = 1 / 4  # of the time


@dataclass(frozen=True)
class Soaked:
    """How it went: rounds done, and the process's memory (bytes) and the time (seconds) at the end of each."""

    memory: np.ndarray
    seconds: np.ndarray

    @property
    def settled(self) -> np.ndarray:
        """Memory after the warm-up."""
        return self.memory[self.seconds >= WARM_UP * self.seconds[-1]]

    @property
    def growth(self) -> float:
        """From the first quarter of what came after the warm-up to the last one, as a share."""
        quarter = max(1, len(self.settled) // 4)
        first, last = np.median(self.settled[:quarter]), np.median(self.settled[-quarter:])
        return float(last / first - 1)

    def __str__(self) -> str:
        low, high = self.settled.min() / 1e6, self.settled.max() / 1e6
        return (
            f"{len(self.memory)} rounds in {self.seconds[-1]:.0f} s: after the warm-up {low:.1f} to {high:.1f} MB, "
            f"growth {100 * self.growth:+.2f} %"
        )


def soak(folder: Path, seconds: float, report: Callable[[str], None] = lambda _: None) -> Soaked:
    """Do all that a run does, over and over, in this one process."""
    dataset = Origin("digits").load()
    requested = ["augmentation.pool_size=500", "sampling.num_steps=10", "model.encoder=mlp"]
    settings = settings_for("digits", overrides=requested)
    run = RunDirectory.create(folder / "run", Origin("digits"), settings, dataset)
    train_state, source, history = (
        run.new_train_state(),
        BatchSource(run.data(dataset), run.settings),
        History(),
    )
    started, memory, times = time.monotonic(), [], []
    for number in count():
        for _ in range(STEPS):
            take_step(train_state, next(source))
            history.add(train_state.metrics)
        scores = score_part(train_state.averaged, run.encoding, dataset, run.split, "validation")
        assert scores is not None
        history.rows.clear()  # a run closes some tens of rows; here there would be no end to them
        history.close_row(step=train_state.step, **scores.as_row("validation"))
        pool, _ = augment(
            train_state.averaged, run.encoding, settings=settings.augmentation, sampling=settings.sampling, seed=number
        )
        synthsieve.select(labels=pool.y, logits=pool.logits_x, keep_fraction=0.5, budget=0.1, n_jobs=1, seed=number)
        pool.write(run.path / "pool.npz")
        type(pool).read(run.path / "pool.npz")
        checkpoint.save(run.last, train_state, {})
        checkpoint.load(run.last, train_state)
        gc.collect()
        memory.append(_in_use())
        times.append(time.monotonic() - started)
        if number % 50 == 0:
            report(f"round {number}, {times[-1]:.0f} s: {memory[-1] / 1e6:.1f} MB")
        if times[-1] >= seconds:
            return Soaked(np.array(memory), np.array(times))
    raise AssertionError


def _in_use() -> int:
    """Bytes of memory that this process has in use."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_memory_stays_where_it_was(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    seconds = float(os.environ.get("SYNTHSIEVE_SOAK_SECONDS", USUAL_SECONDS))
    done = soak(tmp_path, seconds, log=lambda line: print(line, flush=True))
    print(done, flush=True)
    assert len(done.memory) >= 8, "too few rounds to tell"
    assert abs(done.growth) < FLAT, done
