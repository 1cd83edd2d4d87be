"""How many steps fit into a given time, by timing a few of them."""

from __future__ import annotations

import time
from collections.abc import Callable

from synthsieve.settings import Settings
from synthsieve.training.batches import BatchSource
from synthsieve.training.data import TrainingData
from synthsieve.training.step import take_step

STEPS = 5
SHARE = 0.9  # of the time is planned for steps; the rest is for reading, evaluating and writing
MIN_STEPS = 10


def seconds_per_step(
    data: TrainingData,
    settings: Settings,
    *,
    until: float = float("inf"),
    clock: Callable[[], float] = time.monotonic,
) -> float:
    """Wall time of one step of pretraining, measured on up to `STEPS` of them that begin before `until`.

    The first step, which also sets things up, is not counted unless it is the only one.
    """
    settings = settings.pretrained()
    state, batches = data.init_state(settings), BatchSource(data, settings)
    times = [clock()]
    while len(times) <= STEPS and (len(times) == 1 or times[-1] < until):
        take_step(state, next(batches))
        times.append(clock())
    counted = times[1:] if len(times) > 2 else times
    return (counted[-1] - counted[0]) / (len(counted) - 1)


def shortened(settings: Settings, share: float) -> Settings:
    """The same schedule with a share of the steps of pretraining and of augmented training."""
    steps = max(MIN_STEPS, round(share * settings.training.steps))
    settings = settings.over(min(steps, settings.training.steps))
    more = settings.augmentation.steps
    augmentation = settings.augmentation.model_copy(update={"steps": min(more, max(MIN_STEPS, round(share * more)))})
    return settings.model_copy(update={"augmentation": augmentation})
