"""How many steps fit into a given time: a few of them are taken and timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from synthsieve.config import Settings
from synthsieve.data.dataset import Dataset
from synthsieve.learning.batch_source import BatchSource
from synthsieve.learning.run_folder import Origin, RunFolder
from synthsieve.learning.step import take_step

STEPS = 5
SHARE = 0.9  # of the time is planned for steps; the rest is for reading, evaluating and writing
MIN_STEPS = 10


def seconds_per_step(
    dataset: Dataset,
    settings: Settings,
    *,
    until: float = float("inf"),
    clock: Callable[[], float] = time.monotonic,
) -> float:
    """Wall time of one step of the first phase, measured on up to `STEPS` of them that begin before `until`.

    The first step, which also sets things up, is not counted unless it is the only one.
    """
    run = RunFolder.create(Path("unused"), Origin("unused"), settings.first_phase(), dataset, write=False)
    learner, source = run.new_learner(), BatchSource(run, dataset)
    times = [clock()]
    while len(times) <= STEPS and (len(times) == 1 or times[-1] < until):
        take_step(learner, next(source))
        times.append(clock())
    counted = times[1:] if len(times) > 2 else times
    return (counted[-1] - counted[0]) / (len(counted) - 1)


def shortened(settings: Settings, share: float) -> Settings:
    """The same course over a share of the steps of both phases."""
    steps = max(MIN_STEPS, round(share * settings.learning.steps))
    settings = settings.over(min(steps, settings.learning.steps))
    more = settings.augmentation.steps
    augmentation = settings.augmentation.model_copy(update={"steps": min(more, max(MIN_STEPS, round(share * more)))})
    return settings.model_copy(update={"augmentation": augmentation})
