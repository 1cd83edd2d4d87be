"""A weighted coreset of every class: picks, how many points each represents, and the bound.

|sum_i w_i g_i - sum_j W_j g_j| <= L = sum_i w_i |g_i - g_pick(i)|          gradient_error <= gradient_bound
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from synthsieve.io.progress import NOTHING, NullProgress, Progress
from synthsieve.selection.budget import Target, class_targets
from synthsieve.selection.duplicates import Distinct, distinct_rows
from synthsieve.selection.greedy import choose
from synthsieve.selection.kernels.blocks import rows_by_class
from synthsieve.selection.kernels.cells import CELL, InCells, assign_in_cells, choose_in_cells
from synthsieve.selection.kernels.dense import MIN_DIMS, DenseLocation, DensePoints
from synthsieve.selection.kernels.facility_location import FacilityLocation
from synthsieve.selection.kernels.memory import make_plan
from synthsieve.selection.kernels.tiles import lay_out
from synthsieve.selection.kernels.workers import Workers
from synthsieve.selection.measure import (
    ClassPoints,
    Scaling,
    bound_and_difference,
    cap_class,
    length,
    random_bound_of,
    scaling_of,
)
from synthsieve.selection.options import Method, SelectionOptions
from synthsieve.selection.refinement import refine
from synthsieve.selection.result import ClassFigures, Selection, heavy_notes

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class PointSource:
    """Points that are computed for one class at a time, so that those of all classes are never held together.

    `make` takes rows int32 (m,) and returns their points, C-contiguous (m, num_dims), of this `dtype`.
    """

    num_dims: int
    make: Callable[[np.ndarray], np.ndarray]
    dtype: str = "float64"


class Companions(NamedTuple):
    """Points other than the rows, which are never picked: (m, d), their classes (m,) and weights (m,).

    They are covered like rows; if `fixed`, they count as picked from the start, and then a row may be assigned to one
    if `assignable`.
    """

    points: np.ndarray
    labels: np.ndarray
    weight: np.ndarray
    fixed: bool = False
    assignable: bool = False


class _ClassResult(NamedTuple):
    picks: np.ndarray
    weights: np.ndarray
    gains: np.ndarray
    assignment: np.ndarray
    difference: np.ndarray
    figures: ClassFigures


def coreset(
    points: np.ndarray | PointSource,
    labels: np.ndarray,
    options: SelectionOptions,
    *,
    rng: np.random.Generator,
    split: int | None = None,
    sample_weight: np.ndarray | None = None,
    factor: np.ndarray | None = None,
    companions: Companions | None = None,
    reserved_bytes: int = 0,
    progress: Progress | None = None,
    names: Sequence[Any] | None = None,
    control: bool = False,
    device: torch.device | None = None,
) -> Selection:
    """Select a weighted coreset in every class.

    Args:
        points: float (n, d), gradients; from column `split` on, features of an outer product. A `PointSource` computes
            them class by class.
        labels: integers (n,), the class of each row.
        options: budget or epsilon, method, refine, max_weight, memory_limit and n_jobs are used.
        rng: for `stochastic` and `random`; each class gets its own child stream.
        sample_weight: float (n,); ones if None.
        factor: float (n,) above 0, what the gain of each row is multiplied by when picks are compared.
        companions: other points to cover, or picks of earlier. Weights, bound and error count the rows alone. Rows
            assigned to companion i have the assignment n + i.
        reserved_bytes: memory that the caller holds and that counts towards the limit.
        names: of the classes, for notes; their numbers if None.
        control: also estimate the bound of as many random picks.
        device: where the matrix products of many dimensions are computed; by numpy if None.
    """
    progress = progress or NullProgress()
    progress.update(0, 1, "compiling the kernels or loading them from disk")
    made = isinstance(points, PointSource) or companions is not None
    num_dims = points.num_dims if isinstance(points, PointSource) else points.shape[1]
    order = ("C", True) if isinstance(points, PointSource) or made else _memory_order(points)
    dense = split is None and num_dims >= MIN_DIMS
    weighted = factor is not None or companions is not None
    compile_seconds = compile_kernels(str(points.dtype), options.refine, *order, dense=dense, weighted=weighted)
    started = time.perf_counter()
    present, rows_of = rows_by_class(labels)
    names = tuple(range(int(labels.max()) + 1)) if names is None else tuple(names)
    called = [str(names[label]) for label in present]
    weight = np.broadcast_to(1.0, len(labels)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    sizes = np.array([len(rows) for rows in rows_of])
    targets = class_targets(options, sizes, np.array([weight[rows].sum() for rows in rows_of]))
    others_of = [np.empty(0, dtype=np.int64)] * len(present)
    if companions is not None:
        others_of = [np.flatnonzero(companions.labels == label) for label in present]
    plan = make_plan(
        [size + len(others) for size, others in zip(sizes.tolist(), others_of, strict=True)],
        [target.count for target in targets],
        num_dims,
        options,
        reserved_bytes=reserved_bytes,
        bytes_a_row=num_dims * np.dtype(points.dtype).itemsize if made else 0,
        called=called,
        dense=dense,
        itemsize=np.dtype(points.dtype).itemsize,
    )
    total, picked, lock = sum(target.count for target in targets), dict[int, int](), Lock()

    def work(place: int, threads: int) -> _ClassResult:
        rows, others = rows_of[place], others_of[place]
        fixed = np.empty(0, dtype=np.int32)
        if made:
            values = points.make(rows) if isinstance(points, PointSource) else np.ascontiguousarray(points[rows])
            with_others = weight[rows]
            if companions is not None and len(others):
                values = np.concatenate([values, companions.points[others].astype(values.dtype)])
                with_others = np.concatenate([with_others, companions.weight[others]])
                fixed = np.arange(len(rows), len(values), dtype=np.int32) if companions.fixed else fixed
            of_class = ClassPoints(values, np.arange(len(values), dtype=np.int32), with_others, split)
        else:
            of_class = ClassPoints(points, rows, weight[rows], split)  # type: ignore[arg-type]
        meter = _ClassMeter(progress, total, int(present[place]), picked, lock)
        chosen = _choose_in_class(
            of_class, int(present[place]), targets[place], plan.methods[place], meter,
            refined=options.refine, max_weight=options.max_weight, threads=threads, rng=streams[place],
            control=control, own=len(rows), factor=None if factor is None else factor[rows], fixed=fixed,
            assignable=companions is not None and companions.assignable, device=device,
        )  # fmt: skip
        if not made:
            return chosen
        numbers = np.concatenate([rows, len(labels) + others])
        return chosen._replace(picks=rows[chosen.picks], assignment=numbers[chosen.assignment])

    streams = rng.spawn(len(present))
    if plan.classes_at_once > 1:
        with ThreadPoolExecutor(plan.classes_at_once) as pool:
            found = _join(pool.map(partial(work, threads=1), range(len(present))), rows_of, len(labels))
    else:
        found = _join((work(place, plan.threads) for place in range(len(present))), rows_of, len(labels))
    progress.close()
    return replace(
        found,
        classes=names,
        notes=plan.notes + heavy_notes(found.figures, called),
        seconds=time.perf_counter() - started,
        compile_seconds=compile_seconds,
    )


def _join(found: Any, rows_of: list[np.ndarray], num_rows: int) -> Selection:
    """The selections of all classes as one; of each class only what the result needs is kept."""
    assignment = np.full(num_rows, -1, dtype=np.int64)
    difference: Any = 0.0
    figures, picks = [], []
    for rows, chosen in zip(rows_of, found, strict=True):
        assignment[rows] = chosen.assignment
        difference = difference + chosen.difference
        figures.append(chosen.figures)
        picks.append((chosen.picks, chosen.weights, chosen.gains))
    indices, weights, gains = (np.concatenate(column) for column in zip(*picks, strict=True))
    return Selection(
        indices=indices.astype(np.int64, copy=False),
        weights=weights,
        num_rows=num_rows,
        gradient_bound=float(sum(one.gradient_bound for one in figures)),
        gradient_error=length(difference),
        difference=difference,
        classes=(),
        figures=tuple(figures),
        notes=(),
        gains=gains,
        assignment=assignment,
        reason=np.zeros(num_rows, dtype=np.int8),
    )


def compile_kernels(
    dtype: str,
    refined: bool = False,
    order: str = "C",
    writable: bool = True,
    *,
    dense: bool = False,
    weighted: bool = False,
) -> float:
    """Compile the kernels or load them from disk, once per process; returns the seconds it took, 0 if already done."""
    before = _compile.cache_info().misses
    seconds = _compile(dtype, refined, order, writable, dense, weighted)
    return seconds if _compile.cache_info().misses > before else 0.0


def _memory_order(points: np.ndarray) -> tuple[str, bool]:
    """C- or F-contiguous or neither (A), and whether writable: kernels are compiled for each of these."""
    order = "C" if points.flags.c_contiguous else "F" if points.flags.f_contiguous else "A"
    return order, points.flags.writeable


@cache
def _compile(dtype: str, refined: bool, order: str, writable: bool, dense: bool, weighted: bool) -> float:
    """Run every kernel once, on forty points."""
    started = time.perf_counter()
    grid = np.arange(120, dtype=np.float64).reshape(40, 3) ** 1.5 % 7
    points = np.repeat(grid, 2, axis=1).astype(dtype)[:, ::2] if order == "A" else grid.astype(dtype)
    points = np.asfortranarray(points) if order == "F" else points
    points.flags.writeable = writable
    with Workers(1) as workers:
        location = FacilityLocation(lay_out(points, np.ones(40)), workers)
        rng = np.random.default_rng(0)
        choose(Method.EXACT, location, Target(4), workers, NullProgress(), lambda message: None, rng=rng)
        location.gains_of(np.arange(3))
        location.restart(location.picks)
        location.best()
        distinct_rows(points, np.arange(40, dtype=np.int32))
        if dense:
            DenseLocation(DensePoints(points, np.arange(40, dtype=np.int32), np.ones(40)), workers).run_every_kernel()
        if weighted:
            FacilityLocation(location.tiles, workers, factor=np.ones(40)).best()
        if refined:
            refine(location, NullProgress())
    if dtype != "float64":
        lay_out(grid, np.ones(40))
    return time.perf_counter() - started


class _ClassMeter:
    """The progress of one class, shown as part of one progress over all classes, at most ten times a second.

    Classes in several threads share the dict `done`, of picks by class, and the lock.
    """

    def __init__(self, progress: Progress, total: int, label: int, done: dict[int, int], lock: Lock) -> None:
        self._progress, self._total, self._label, self._done, self._lock = progress, total, label, done, lock
        self._next = 0.0

    def update(self, done: int, total: int = 0, message: str = "", beside: tuple[int, int] = NOTHING) -> None:
        now = time.monotonic()
        with self._lock:
            if not message:
                self._done[self._label] = done
            if now >= self._next:
                self._next = now + 0.1
                self._progress.update(min(sum(self._done.values()), self._total), self._total, message)

    def report(self, message: str) -> None:
        self.update(0, message=message)

    def close(self) -> None:
        pass


def is_dense(points: ClassPoints, method: Method) -> bool:
    """Whether distances are computed by matrix products: in many dimensions, where boxes bound none."""
    many = points.split is None and points.values.shape[1] >= MIN_DIMS
    return many and method in (Method.EXACT, Method.FAST)


def _choose_in_class(
    points: ClassPoints,
    label: int,
    target: Target,
    method: Method,
    progress: _ClassMeter,
    *,
    refined: bool,
    max_weight: float | None,
    threads: int,
    rng: np.random.Generator,
    control: bool,
    own: int,
    factor: np.ndarray | None,
    fixed: np.ndarray,
    assignable: bool,
    device: torch.device | None,
) -> _ClassResult:
    """Choose among the first `own` points, given their factors (own,); the others are companions.

    `fixed` (k,) are those of them that are picked already.
    """
    distinct = distinct_rows(points.values, points.rows)
    factors = _factors(distinct, points.rows, own, factor, fixed)
    distinct = distinct if factors is None else Distinct(factors.rows, distinct.which)
    start = np.unique(distinct.which[fixed]).astype(np.int64) if len(fixed) else fixed
    counted = np.bincount(distinct.which, points.weight, minlength=len(distinct.rows))
    # A factor that brings weights near 1, where whole units hold them best; 1 for ordinary multiplicities.
    mean, near_one = float(counted.mean()), 1.0
    if mean > 0.0 and not (mean < 2.0**16 and (counted == np.floor(counted)).all()):
        near_one = float(2.0 ** -np.round(np.log2(mean)))
    candidates = distinct.rows if factors is None else distinct.rows[factors.values > 0.0]
    target = Target(len(start) + min(target.count, len(candidates)), target.bound * near_one)
    multipliers = None if factors is None else factors.values
    problem = _Problem(points, distinct.rows, counted * near_one, multipliers, target, start, assignable, device)
    with Workers(threads) as workers:
        if not refined and is_dense(points, method):
            found = _choose_by_products(problem, method, workers, progress)
        else:
            found = _choose_by_tiles(problem, method, workers, progress, refined=refined, rng=rng)
    if not assignable:
        start = start[:0]
    del counted, problem
    picks = distinct.rows[found.picks].astype(np.int64)
    represented_by = found.nearest[distinct.which[:own]]  # the ordinal of each row's pick
    points = points._replace(rows=points.rows[:own], weight=points.weight[:own])
    weights = np.bincount(represented_by, points.weight, minlength=len(start) + len(picks))[len(start) :]
    assignment = np.concatenate([distinct.rows[start], picks])[represented_by]
    bound, difference = bound_and_difference(points, assignment, found.scaling)
    capped = cap_class(points, picks, weights, max_weight, found.scaling)
    weights, difference = capped.weights, difference + capped.difference
    total = float(points.weight.sum())
    random_bound = None
    if control and method is not Method.RANDOM:
        earlier, stream = distinct.rows[start], rng.spawn(1)[0]
        random_bound = random_bound_of(points, candidates, len(picks), found.scaling, rng=stream, earlier=earlier)
    figures = ClassFigures(
        label=label,
        size=own,
        distinct=len(candidates),
        selected=len(picks),
        weight=total,
        gradient_bound=bound + capped.bound,
        gradient_error=length(difference),
        heaviest=float(weights.max(initial=0.0) / total) if total > 0 else 0.0,
        method=method,
        exchanges=found.exchanges,
        random_bound=random_bound,
        capped=capped.number,
        cap_bound=capped.bound,
    )
    return _ClassResult(picks, weights, found.taken_off / near_one, assignment, difference, figures)


class _Problem(NamedTuple):
    """What is to be chosen in one class: its distinct points, by row, with weights (m,) and factors (m,) of gains.

    Of the `target`, the points `start` are picked already; rows are assigned to these only if `assignable`.
    """

    points: ClassPoints
    rows: np.ndarray
    weight: np.ndarray
    factor: np.ndarray | None
    target: Target
    start: np.ndarray
    assignable: bool
    device: torch.device | None


class _Found(NamedTuple):
    """Picks other than `start`, by how much each lowered L, and the ordinal of the pick nearest to each point (m,)."""

    picks: np.ndarray
    taken_off: np.ndarray
    nearest: np.ndarray
    scaling: Scaling
    exchanges: int = 0


def _choose_by_products(problem: _Problem, method: Method, workers: Workers, progress: _ClassMeter) -> _Found:
    """Distances by matrix products: all at once, or for `fast` among many points in cells of neighbouring ones."""
    points, rows, weight, factor, target, start, assignable, device = problem
    values, num_fixed = points.values, len(start)
    found: InCells | DenseLocation
    if method is Method.FAST and not target.bound and len(rows) > CELL:
        wanted = target.count - num_fixed
        found = choose_in_cells(
            values, rows, weight, wanted, workers, progress, factor=factor, fixed=start, device=device
        )
    else:
        found = DenseLocation(DensePoints(values, rows, weight, factor, device=device), workers, progress.report)
        if num_fixed:
            found.start_from(start)
        found.greedy(target, progress)
    picks, taken_off = np.array(found.picks[num_fixed:], dtype=np.int64), found.taken_off[num_fixed:]
    if num_fixed and not assignable:
        if isinstance(found, InCells):
            found = found._replace(nearest=assign_in_cells(values, rows, found.cells, picks, workers))
        else:
            found.start_from(picks)
    return _Found(picks, taken_off, found.nearest, scaling_of(points))


def _choose_by_tiles(
    problem: _Problem,
    method: Method,
    workers: Workers,
    progress: _ClassMeter,
    *,
    refined: bool,
    rng: np.random.Generator,
) -> _Found:
    """Distances within and between tiles of neighbouring points, whose boxes bound most of them."""
    points, rows, weight, factor, target, start, assignable, _ = problem
    tiles = lay_out(points.values, weight, rows=rows, split=points.split)
    found = FacilityLocation(tiles, workers, progress.report, factor)
    if len(start):
        found.restart(tiles.positions()[start].tolist())
    choose(method, found, target, workers, progress, progress.report, rng=rng)
    chosen, taken_off = found.picks[len(start) :], np.array(found.taken_off[len(start) :])
    if len(start) and not assignable:
        found.restart(chosen)
    exchanges = 0
    if refined:
        exchanges = refine(found, progress)
        chosen, taken_off = found.picks, np.array(found.taken_off)
    order, nearest = tiles.rows, np.empty(len(rows), dtype=np.int32)
    nearest[order[order >= 0]] = found.nearest[order >= 0]
    picks = order.ravel()[np.array(chosen, dtype=np.int64)]
    return _Found(picks, taken_off, nearest, Scaling(tiles.shrink, tiles.magnitude), exchanges)


class _Factors(NamedTuple):
    """The factor of each distinct point, 0 if it is never to be picked, and the row of the highest factor in it."""

    values: np.ndarray
    rows: np.ndarray


def _factors(
    distinct: Distinct, rows: np.ndarray, own: int, factor: np.ndarray | None, fixed: np.ndarray
) -> _Factors | None:
    """None if every point may be picked, with the same factor; among equal rows the one of highest factor counts."""
    if factor is None and own == len(rows):
        return None
    each = np.zeros(len(rows))
    each[:own] = 1.0 if factor is None else factor
    order = np.lexsort((-each, distinct.which))
    first = order[np.unique(distinct.which[order], return_index=True)[1]]
    values = each[first]
    values[distinct.which[fixed]], first[distinct.which[fixed]] = 0.0, fixed
    return _Factors(values, rows[first].astype(np.int32))
