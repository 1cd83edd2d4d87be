"""Greedy facility location among very many points in many dimensions: in cells of neighbouring points, one by one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from synthsieve.io.progress import NullProgress, Progress
from synthsieve.selection.budget import Target
from synthsieve.selection.kernels.dense import HEIGHT, SAMPLE, WIDTH, DenseLocation, DensePoints
from synthsieve.selection.kernels.workers import Workers

if TYPE_CHECKING:
    import torch

CELL = 8_000  # points of a cell
_NEIGHBOURS = 6  # cells whose picks a point may be assigned to
_SURPLUS = 1.25  # picks of a cell over its share


def largest_cell(n: int) -> int:
    """The points of the largest of the cells that `n` points are halved into."""
    while n > CELL:
        n = (n + 1) // 2
    return n


class InCells(NamedTuple):
    """Picks, by index, the ordinal of each point's pick (n,), by how much each pick lowered L, and the cells."""

    picks: list[int]
    nearest: np.ndarray
    taken_off: np.ndarray
    cells: list[np.ndarray]


def choose_in_cells(
    values: np.ndarray, rows: np.ndarray, weight: np.ndarray, count: int, workers: Workers, progress: Progress, *,
    factor: np.ndarray | None = None, fixed: np.ndarray | None = None, device: torch.device | None = None,
) -> InCells:  # fmt: skip
    """`count` picks among many points: greedy in cells of neighbouring points, and of all picks those of largest gain.

    Each point is then assigned to the nearest pick of its own and of the nearest cells. `factor` (n,) and `device` are
    those of `DensePoints`; `fixed` (k,), indices, are picks to start from, and the first of the result.
    """
    fixed = np.empty(0, dtype=np.int64) if fixed is None else fixed
    factor = np.ones(len(rows)) if factor is None else factor
    cells = _cells(values, rows, min(CELL, max(1, len(rows) // max(count, 1) * CELL)))
    candidates = max(1, int((factor > 0.0).sum()))
    gains, found = [], []
    done = 0
    for number, cell in enumerate(cells):
        location = DenseLocation(DensePoints(values, rows[cell], weight[cell], factor[cell], device=device), workers)
        given = np.flatnonzero(np.isin(cell, fixed))
        eligible = int((factor[cell] > 0.0).sum())
        wanted = min(eligible, math.ceil(_SURPLUS * count * eligible / candidates) + 8)
        if len(given):
            location.start_from(given)
        location.greedy(Target(len(given) + wanted), NullProgress())
        chosen, lowered = cell[location.picks[len(given) :]], location.taken_off[len(given) :]
        found.append((chosen, lowered))
        lead = [] if len(given) or not wanted else [np.inf]
        decreasing = np.minimum.accumulate(np.concatenate([lead, (lowered * factor[chosen])[len(lead) :]]))
        gains.append(np.stack([decreasing, np.full(wanted, number), np.arange(wanted)]))
        done += wanted
        progress.update(min(done, count), count)
    gain, of_cell, turn = np.concatenate(gains, axis=1)
    order = np.lexsort((of_cell, turn, -gain))[:count]
    places = [found[int(cell)] for cell in of_cell[order]]
    picks = [*fixed.tolist(), *(int(chosen[int(at)]) for (chosen, _), at in zip(places, turn[order], strict=True))]
    taken_off = np.array([lowered[int(at)] for (_, lowered), at in zip(places, turn[order], strict=True)])
    nearest = assign_in_cells(values, rows, cells, np.array(picks), workers)
    return InCells(picks, nearest, np.concatenate([np.zeros(len(fixed)), taken_off]), cells)


def _cells(values: np.ndarray, rows: np.ndarray, size: int) -> list[np.ndarray]:
    """The points halved along their main direction until a cell has at most `size`: indices into `rows`, ascending."""
    waiting, cells = [np.arange(len(rows))], []
    rng = np.random.default_rng(0)
    while waiting:
        cell = waiting.pop()
        if len(cell) <= size:
            cells.append(np.sort(cell))
            continue
        sample = values[rows[rng.choice(cell, min(len(cell), 1_000), replace=False)]].astype(np.float64)
        sample -= sample.mean(axis=0)
        direction = np.asarray(rng.normal(size=values.shape[1]))
        for _ in range(8):
            direction = np.asarray(sample.T @ (sample @ direction))
            direction /= max(float(np.linalg.norm(direction)), 1e-300)
        main = direction.astype(values.dtype)
        parts = range(0, len(cell), WIDTH)
        along = np.concatenate([values[rows[cell[start : start + WIDTH]]] @ main for start in parts])
        order = np.argpartition(along, len(cell) // 2)
        waiting += [cell[order[len(cell) // 2 :]], cell[order[: len(cell) // 2]]]
    return cells


def assign_in_cells(
    values: np.ndarray, rows: np.ndarray, cells: list[np.ndarray], picks: np.ndarray, workers: Workers
) -> np.ndarray:
    """The ordinal of the nearest pick of each point, among the picks of the cells nearest to its own, int32 (n,)."""
    nearest, of_cell = np.empty(len(rows), dtype=np.int32), np.empty(len(rows), dtype=np.int32)
    for number, cell in enumerate(cells):
        of_cell[cell] = number
    ordinals = [np.flatnonzero(of_cell[picks] == number) for number in range(len(cells))]
    some = [picks[which] if len(which) else cell[:SAMPLE] for which, cell in zip(ordinals, cells, strict=True)]
    centres = np.array([values[rows[which]].mean(axis=0, dtype=np.float64) for which in some])
    filled = np.array([len(which) > 0 for which in ordinals])

    def work(part: int) -> None:
        for number in range(part, len(cells), workers.count):
            squared = ((centres - centres[number]) ** 2).sum(axis=1)
            others = np.argsort(np.where(filled, squared, np.inf), kind="stable")[:_NEIGHBOURS]
            near = np.concatenate([ordinals[other] for other in others])
            chosen = values[rows[picks[near]]].astype(np.float32)
            norms = np.einsum("ij,ij->i", chosen, chosen)
            chosen *= -2.0
            for start in range(0, len(cells[number]), HEIGHT):
                some = cells[number][start : start + HEIGHT]
                apart = values[rows[some]].astype(np.float32, copy=False) @ chosen.T
                apart += norms
                nearest[some] = near[np.argmin(apart, axis=1)]

    with threadpool_limits(1, user_api="blas"):
        workers.share(work, workers.count)
    nearest[picks] = np.arange(len(picks))
    return nearest
