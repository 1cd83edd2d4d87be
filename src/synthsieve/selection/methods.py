"""The ways to choose picks in one class, each the same call: a location, a target, a generator."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum

import numpy as np

from synthsieve.progress import Progress
from synthsieve.selection.facility_location import FacilityLocation
from synthsieve.selection.greedy import Target, greedy
from synthsieve.selection.multilevel import warm_start
from synthsieve.selection.workers import Workers

# Up to here `auto` takes the exact method: a second or two on two cores.
EXACT_UP_TO = 20_000
# Stochastic greedy looks at n/k log(1/0.01) candidates a pick, and reaches 1 - 1/e - 0.01 of the best in expectation.
_MISSED = 0.01


class Method(StrEnum):
    """How picks are chosen."""

    AUTO = "auto"
    EXACT = "exact"
    FAST = "fast"
    STOCHASTIC = "stochastic"
    RANDOM = "random"

    def for_size(self, num_points: int) -> Method:
        """`auto` resolved for a class of `num_points`; the others as they are."""
        if self is not Method.AUTO:
            return self
        return Method.EXACT if num_points <= EXACT_UP_TO else Method.FAST


def choose(
    method: Method,
    location: FacilityLocation,
    target: Target,
    workers: Workers,
    progress: Progress,
    report: Callable[[str], None],
    *,
    generator: np.random.Generator,
) -> None:
    """Choose picks by `method`, leaving them in `location`."""
    if method is Method.RANDOM:
        random(location, target, generator=generator)
    elif method is Method.STOCHASTIC:
        stochastic(location, target, progress, generator=generator)
    else:
        if method is Method.FAST:
            location.stand(warm_start(location.tiles, target.count, workers, report))
            if target.bound and target.reached(location):  # the coarse picks overshot: begin from none
                location.stand(())
        greedy(location, target, progress)


def random(location: FacilityLocation, target: Target, *, generator: np.random.Generator) -> None:
    """Distinct points, each as likely as any other: the control."""
    for position in generator.permutation(location.tiles.positions()):
        if target.reached(location):
            break
        location.take(int(position))


def stochastic(
    location: FacilityLocation, target: Target, progress: Progress, *, generator: np.random.Generator
) -> None:
    """Stochastic greedy: at each step the best of a small random sample of the points not yet picked."""
    left = location.tiles.positions()
    size = math.ceil(len(left) / max(1, target.count) * math.log(1.0 / _MISSED))
    while len(left) and not target.reached(location):
        location.sharpen()
        drawn = np.sort(generator.choice(len(left), min(size, len(left)), replace=False))
        best = drawn[int(np.argmax(location.gains_of(left[drawn])))]
        location.take(int(left[best]))
        left[best] = left[-1]
        left = left[:-1]
        progress.update(len(location.picks), target.count)
