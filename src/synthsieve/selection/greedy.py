"""Greedy facility location: pick the point that brings everybody nearest, tell its neighbours, repeat.

The plain algorithm computes every candidate's gain at every step. A pick changes only the gains near the points that
turn to it, so here only those are brought up to date (`FacilityLocation.take`): the picks are the plain algorithm's
own, pick for pick, and the work is a small part of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from synthsieve.progress import Progress
from synthsieve.selection.facility_location import FacilityLocation


@dataclass(frozen=True)
class Target:
    """When to stop: after `count` picks, or as soon as L is at most `bound`, whichever comes first.

    However large the bound, one is picked: without any nobody stands for the others.
    """

    count: int
    bound: float = 0.0

    def reached(self, location: FacilityLocation) -> bool:
        near_enough = self.bound > 0.0 and bool(location.picks) and location.bound_at_most <= self.bound
        return near_enough or len(location.picks) >= self.count


def greedy(location: FacilityLocation, target: Target, progress: Progress) -> None:
    """Take the best candidate until the target is reached.

    pick = argmax_j sum_i w_i (reach_i - |g_i - g_j|)+, the lowest row among equals (CRAIG, Algorithm 1).
    """
    while not target.reached(location):
        location.sharpen()
        location.take(location.best())
        progress.update(len(location.picks), target.count)
