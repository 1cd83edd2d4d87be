"""A weighted coreset of every class: picks, how many points each stands for, and the certificate.

|sum_i w_i g_i - sum_j W_j g_j| <= L = sum_i w_i |g_i - g_pick(i)|          gradient_error <= gradient_bound
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from threading import Lock
from typing import Any

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.progress import Progress, Silent
from synthsieve.selection.blocks import row_blocks, rows_by_class
from synthsieve.selection.budget import Budget
from synthsieve.selection.duplicates import Distinct, distinct_rows
from synthsieve.selection.facility_location import FacilityLocation
from synthsieve.selection.greedy import Target
from synthsieve.selection.memory import make_plan
from synthsieve.selection.methods import Method, choose
from synthsieve.selection.refinement import refine as exchange
from synthsieve.selection.targets import targets_of
from synthsieve.selection.tiles import Tiles, lay_out
from synthsieve.selection.workers import Workers, available_cores

# A pick that stands for more than this share of its class is worth a word.
_HEAVY = 0.1
# So many classes with such picks get a sentence each, more of them one for all.
_MOST_HEAVY_NOTES = 8
# Distances measured in each class to see what random picks would give, about, and rows they are measured from.
_CONTROL_NUMBERS = 1_000_000
_CONTROL_ROWS = 16, 256


@dataclass(frozen=True)
class PointSource:
    """Points that are made for one class at a time, so that those of all classes are never held together.

    Attributes:
        num_dims: how many numbers a point has.
        make: rows int32 (m,) -> their points, (m, num_dims), rows in one piece.
        dtype: of the points.
    """

    num_dims: int
    make: Callable[[np.ndarray], np.ndarray]
    dtype: str = "float64"

    @property
    def bytes_a_row(self) -> int:
        return self.num_dims * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class ClassFigures:
    """What was done in one class.

    Attributes:
        label: the class index.
        size, distinct, selected: rows, distinct rows and picks.
        weight: the sum of the rows' weights, which is also that of the picks' weights.
        gradient_bound, gradient_error: L and the measured error of the weighted gradient sum.
        heaviest: the share of the class that its heaviest pick stands for.
        method: how the picks were chosen.
        exchanges: how many picks the refinement exchanged.
        seconds: the wall time of this class's work.
        random_bound: about what L would be with as many random picks, from a sample of distances; None if not asked.
    """

    label: int
    size: int
    distinct: int
    selected: int
    weight: float
    gradient_bound: float
    gradient_error: float
    heaviest: float
    method: Method
    exchanges: int
    seconds: float
    random_bound: float | None = None


@dataclass(frozen=True)
class Coreset:
    """Picks of all classes, class by class, each class in pick order.

    Attributes:
        indices: int64 (k,), rows of the input.
        weights: float64 (k,), the summed weight of the rows each pick stands for.
        gains: float64 (k,), what each pick took off L in its turn; the first of a class counts from the diameter.
        assignment: int64 (n,), the row of the pick that stands for each row.
        gradient_bound: L, summed over classes.
        gradient_error: the measured |full gradient sum - weighted gradient sum| over all classes.
        difference: float64 (d,), what `gradient_error` is the length of; (num_classes * features,) of outer products.
        classes: figures class by class.
        notes: sentences worth reading: leaner methods taken, heavy picks, duplicates.
        seconds: wall time of the selection; compile_seconds: of the kernels' compilation or loading, not counted in it.
    """

    indices: np.ndarray
    weights: np.ndarray
    gains: np.ndarray
    assignment: np.ndarray
    gradient_bound: float
    gradient_error: float
    difference: np.ndarray
    classes: tuple[ClassFigures, ...]
    notes: tuple[str, ...]
    seconds: float
    compile_seconds: float


@dataclass(frozen=True)
class _Chosen:
    """One class's picks: their rows, weights and gains, who stands for whom, and the summed gradient difference."""

    picks: np.ndarray
    weights: np.ndarray
    gains: np.ndarray
    assignment: np.ndarray
    difference: np.ndarray
    figures: ClassFigures


def coreset(
    points: np.ndarray | PointSource,
    labels: np.ndarray,
    budget: Budget,
    *,
    generator: np.random.Generator,
    split: int | None = None,
    method: Method = Method.AUTO,
    refine: bool = False,
    sample_weight: np.ndarray | None = None,
    memory_limit: int | None = None,
    reserved_bytes: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    names: Sequence[Any] | None = None,
    control: bool = False,
) -> Coreset:
    """Select a weighted coreset in every class.

    Args:
        points: float (n, d), gradients; from column `split` on, features of an outer product. A `PointSource` makes
            them class by class.
        labels: integers (n,), the class of each row.
        budget: how many points to keep.
        generator: what `stochastic` and `random` draw from; classes get streams of their own.
        sample_weight: float (n,), what each row counts; one if None.
        memory_limit: bytes this may use beyond points given as an array; over it a leaner way is taken and noted.
        reserved_bytes: what the caller holds already and counts within the limit.
        n_jobs: threads; all cores if None. Classes are shared out first, then blocks of points.
        names: what to call each class in notes; its number if None.
        control: also estimate what as many random picks would give.
    """
    progress = progress or Silent()
    progress.update(0, 1, "compiling the kernels or loading them from disk")
    layout = ("C", True) if isinstance(points, PointSource) else _memory_order(points)
    compile_seconds = compile_kernels(str(points.dtype), refine, *layout)
    started = time.perf_counter()
    present, rows_of = rows_by_class(labels)
    called = [str(label if names is None else names[label]) for label in present]
    weight = np.broadcast_to(1.0, len(labels)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    sizes = np.array([len(rows) for rows in rows_of])
    targets = targets_of(budget, sizes, np.array([weight[rows].sum() for rows in rows_of]))
    plan = make_plan(
        sizes.tolist(),
        [target.count for target in targets],
        points.num_dims if isinstance(points, PointSource) else points.shape[1],
        method=method,
        refine=refine,
        memory_limit=memory_limit,
        threads=n_jobs or available_cores(),
        reserved_bytes=reserved_bytes,
        bytes_a_row=points.bytes_a_row if isinstance(points, PointSource) else 0,
        called=called,
    )
    meter = _Meter(progress, sum(target.count for target in targets))

    def work(place: int, threads: int) -> _Chosen:
        rows = rows_of[place]
        if isinstance(points, PointSource):
            own, at = points.make(rows), np.arange(len(rows), dtype=np.int32)
        else:
            own, at = points, rows
        chosen = _choose_in_class(
            own, at, weight[rows], int(present[place]), targets[place], plan.methods[place],
            meter, split=split, refine=refine, threads=threads, generator=streams[place], control=control,
        )  # fmt: skip
        if at is rows:
            return chosen
        return replace(chosen, picks=rows[chosen.picks], assignment=rows[chosen.assignment])

    streams = generator.spawn(len(present))
    joined = _Joined(len(labels))
    if plan.classes_at_once > 1:
        with ThreadPoolExecutor(plan.classes_at_once) as pool:
            for rows, chosen in zip(rows_of, pool.map(partial(work, threads=1), range(len(present))), strict=True):
                joined.add(rows, chosen)
    else:
        for place, rows in enumerate(rows_of):
            joined.add(rows, work(place, plan.threads))
    meter.close()
    notes = plan.notes + heavy_notes(joined.figures, called)
    return joined.coreset(notes, time.perf_counter() - started, compile_seconds)


def compile_kernels(dtype: str, refine: bool = False, order: str = "C", writable: bool = True) -> float:
    """Compile the kernels or load them from disk, once a process; returns the seconds that took, 0 when it was done."""
    before = _compile.cache_info().misses
    seconds = _compile(dtype, refine, order, writable)
    return seconds if _compile.cache_info().misses > before else 0.0


def _memory_order(points: np.ndarray) -> tuple[str, bool]:
    """Rows (C) or columns (F) in one piece, or neither (A), and whether writable: kernels differ in these."""
    order = "C" if points.flags.c_contiguous else "F" if points.flags.f_contiguous else "A"
    return order, points.flags.writeable


@cache
def _compile(dtype: str, refine: bool, order: str, writable: bool) -> float:
    """Run every kernel once, on forty points."""
    started = time.perf_counter()
    grid = np.arange(120, dtype=np.float64).reshape(40, 3) ** 1.5 % 7
    points = np.repeat(grid, 2, axis=1).astype(dtype)[:, ::2] if order == "A" else grid.astype(dtype)
    points = np.asfortranarray(points) if order == "F" else points
    points.flags.writeable = writable
    with Workers(1) as workers:
        location = FacilityLocation(lay_out(points, np.ones(40)), workers)
        choose(Method.EXACT, location, Target(4), workers, Silent(), _ignore, generator=np.random.default_rng(0))
        location.gains_of(np.arange(3))
        distinct_rows(points, np.arange(40, dtype=np.int32))
        if refine:
            exchange(location, Silent())
    if dtype != "float64":
        lay_out(grid, np.ones(40))
    return time.perf_counter() - started


def _ignore(message: str) -> None:
    pass


class _Meter:
    """One progress over all classes, told from several threads."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._lock = progress, total, Lock()
        self._done: dict[int, int] = {}
        self._next = 0.0

    def of(self, label: int) -> tuple[Progress, Callable[[str], None]]:
        return _ClassMeter(self, label), lambda message: self.tell(label, None, message)

    def tell(self, label: int, done: int | None, message: str) -> None:
        now = time.monotonic()
        with self._lock:
            if done is not None:
                self._done[label] = done
            if now < self._next:
                return
            self._next = now + 0.1
            self._progress.update(min(sum(self._done.values()), self._total), self._total, message)

    def close(self) -> None:
        self._progress.close()


@dataclass(frozen=True)
class _ClassMeter:
    meter: _Meter
    label: int

    def update(self, done: int, total: int, message: str = "") -> None:
        self.meter.tell(self.label, None if message else done, message)

    def close(self) -> None:
        pass


def _choose_in_class(
    points: np.ndarray,
    rows: np.ndarray,
    weight: np.ndarray,
    label: int,
    target: Target,
    method: Method,
    meter: _Meter,
    *,
    split: int | None,
    refine: bool,
    threads: int,
    generator: np.random.Generator,
    control: bool,
) -> _Chosen:
    started = time.perf_counter()
    distinct = distinct_rows(points, rows)
    counted = np.bincount(distinct.which, weight, minlength=len(distinct.rows))
    near_one = _near_one(counted)
    target = Target(min(target.count, len(distinct.rows)), target.bound * near_one)
    progress, report = meter.of(label)
    with Workers(threads) as workers:
        location = FacilityLocation(
            lay_out(points, counted * near_one, rows=distinct.rows, split=split), workers, report
        )
        choose(method, location, target, workers, progress, report, generator=generator)
        exchanges = exchange(location, progress) if refine else 0
        del counted
        chosen = _certified(
            points, rows, weight, distinct, location, split, label, method, exchanges, started, near_one
        )
        if not control or method is Method.RANDOM:
            return chosen
        stream, tiles = generator.spawn(1)[0], location.tiles
        about = _random_bound(points, rows, weight, distinct, len(chosen.picks), split, tiles, generator=stream)
        return replace(chosen, figures=replace(chosen.figures, random_bound=about))


def _near_one(weight: np.ndarray) -> float:
    """A power of two that brings weights near 1, where whole units carry them best; 1 for ordinary multiplicities."""
    mean = float(weight.mean())
    if mean <= 0.0 or (mean < 2.0**16 and (weight == np.floor(weight)).all()):
        return 1.0
    return float(2.0 ** -np.round(np.log2(mean)))


def _certified(
    points: np.ndarray,
    rows: np.ndarray,
    weight: np.ndarray,
    distinct: Distinct,
    location: FacilityLocation,
    split: int | None,
    label: int,
    method: Method,
    exchanges: int,
    started: float,
    near_one: float,
) -> _Chosen:
    """Turn positions into rows, and measure what the picks guarantee and achieve."""
    places = np.array(location.picks, dtype=np.int64)
    order = location.tiles.rows
    nearest = np.empty(len(distinct.rows), dtype=np.int32)
    present = order >= 0
    nearest[order[present]] = location.nearest[present]
    picks = distinct.rows[order.ravel()[places]].astype(np.int64)
    stands_for = nearest[distinct.which]
    weights = np.bincount(stands_for, weight, minlength=len(picks))
    assignment = picks[stands_for]
    gains = np.array(location.taken_off) / near_one
    bound, difference = _certificate(points, rows, assignment, weight, split, location.tiles)
    total = float(weight.sum())
    figures = ClassFigures(
        label=label,
        size=len(rows),
        distinct=len(distinct.rows),
        selected=len(picks),
        weight=total,
        gradient_bound=bound,
        gradient_error=length(difference),
        heaviest=float(weights.max() / total) if total > 0 else 0.0,
        method=method,
        exchanges=exchanges,
        seconds=time.perf_counter() - started,
    )
    return _Chosen(picks, weights, gains, assignment, difference, figures)


def _certificate(
    points: np.ndarray, rows: np.ndarray, assignment: np.ndarray, weight: np.ndarray, split: int | None, tiles: Tiles
) -> tuple[float, np.ndarray]:
    """L and the summed difference of gradients, from the points themselves in float64, at the tiles' magnitude."""
    bound, difference = 0.0, np.zeros(1)
    for part in row_blocks(len(rows), points.shape[1]):
        own, pick = (points[which[part]].astype(np.float64) * tiles.shrink for which in (rows, assignment))
        count = weight[part]
        if split is None or split == points.shape[1]:
            apart = own - pick
            bound += float(count @ np.linalg.norm(apart, axis=1))
            difference = difference + count @ apart
        else:
            bound += float(count @ _outer_product_distance(own, pick, split))
            for sign, side in ((1.0, own), (-1.0, pick)):
                difference = difference + sign * ((side[:, :split] * count[:, None]).T @ side[:, split:]).ravel()
    with np.errstate(over="ignore", invalid="ignore"):
        bound, difference = bound * tiles.magnitude, difference * tiles.magnitude
    if not (np.isfinite(bound) and np.isfinite(difference).all()):
        raise SelectionError("expected distances that float64 can hold, got larger ones: divide what you gave by 1e100")
    return bound, difference


def _random_bound(
    points: np.ndarray,
    rows: np.ndarray,
    weight: np.ndarray,
    distinct: Distinct,
    count: int,
    split: int | None,
    tiles: Tiles,
    *,
    generator: np.random.Generator,
) -> float:
    """About L of `count` random distinct points: the mean distance of a sample of rows to them, times the weight."""
    if count >= len(distinct.rows):
        return 0.0
    picks = generator.permutation(distinct.rows)[:count]
    most = min(max(_CONTROL_NUMBERS // (count * points.shape[1]), _CONTROL_ROWS[0]), _CONTROL_ROWS[1])
    sample = generator.permutation(len(rows))[:most]
    own, counts = points[rows[sample]].astype(np.float64) * tiles.shrink, weight[sample]
    nearest = np.full(len(sample), np.inf)
    for part in row_blocks(count, len(sample) * points.shape[1]):
        pick = points[picks[part]].astype(np.float64) * tiles.shrink
        np.minimum(nearest, _squared_distances(own, pick, split).min(axis=1), out=nearest)
    with np.errstate(over="ignore"):
        total = float(counts.sum())
        mean = float(counts @ np.sqrt(nearest)) / total if total > 0 else 0.0
        return mean * float(weight.sum()) * tiles.magnitude


def _squared_distances(own: np.ndarray, pick: np.ndarray, split: int | None) -> np.ndarray:
    """Between every row of one and every row of the other; of outer products, from their factors."""
    if split is None or split == own.shape[1]:
        squared: np.ndarray = ((own[:, None] - pick) ** 2).sum(axis=2)
        return squared
    g, h, g_pick, h_pick = own[:, :split], own[:, split:], pick[:, :split], pick[:, split:]
    norms = (g**2).sum(axis=1) * (h**2).sum(axis=1), (g_pick**2).sum(axis=1) * (h_pick**2).sum(axis=1)
    return np.maximum(norms[0][:, None] + norms[1] - 2.0 * (g @ g_pick.T) * (h @ h_pick.T), 0.0)


def length(vector: np.ndarray) -> float:
    """|vector|, also where its square would be beyond float64."""
    exponent = int(np.frexp(np.abs(vector).max())[1])
    return float(np.ldexp(np.linalg.norm(np.ldexp(vector, -exponent)), exponent))


def _outer_product_distance(own: np.ndarray, pick: np.ndarray, split: int) -> np.ndarray:
    """|g h' - g* h*'| of each row, from its factors (see `lanes`)."""
    apart = (own - pick) ** 2
    dg, dh = apart[:, :split].sum(axis=1), apart[:, split:].sum(axis=1)
    g, h = (own[:, :split] ** 2).sum(axis=1), (own[:, split:] ** 2).sum(axis=1)
    g_pick, h_pick = (pick[:, :split] ** 2).sum(axis=1), (pick[:, split:] ** 2).sum(axis=1)
    squared = dg * (h + h_pick) / 2 + dh * (g + g_pick) / 2 - dg * dh / 2 + (g - g_pick) * (h - h_pick) / 2
    return np.sqrt(np.maximum(squared, 0.0))


class _Joined:
    """Gathers the classes as they are done, keeping of each no more than the result needs."""

    def __init__(self, num_rows: int) -> None:
        self.assignment = np.full(num_rows, -1, dtype=np.int64)
        self.difference: np.ndarray | None = None
        self.figures: list[ClassFigures] = []
        self._picks: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, rows: np.ndarray, chosen: _Chosen) -> None:
        self.assignment[rows] = chosen.assignment
        self.difference = chosen.difference if self.difference is None else self.difference + chosen.difference
        self.figures.append(chosen.figures)
        self._picks.append((chosen.picks, chosen.weights, chosen.gains))

    def coreset(self, notes: tuple[str, ...], seconds: float, compile_seconds: float) -> Coreset:
        assert self.difference is not None
        picks, weights, gains = (np.concatenate(column) for column in zip(*self._picks, strict=True))
        return Coreset(
            indices=picks.astype(np.int64, copy=False),
            weights=weights,
            gains=gains,
            assignment=self.assignment,
            gradient_bound=float(sum(figures.gradient_bound for figures in self.figures)),
            gradient_error=length(self.difference),
            difference=self.difference,
            classes=tuple(self.figures),
            notes=notes,
            seconds=seconds,
            compile_seconds=compile_seconds,
        )


def heavy_notes(classes: Sequence[ClassFigures], called: Sequence[str]) -> tuple[str, ...]:
    """A sentence for each class of which one pick stands for much; where they are many, one for all of them."""
    heavy = [(figures, name) for figures, name in zip(classes, called, strict=True) if figures.heaviest > _HEAVY]
    if len(heavy) > _MOST_HEAVY_NOTES:
        figures, name = max(heavy, key=lambda pair: pair[0].heaviest)
        return (
            f"in {len(heavy)} of {len(classes)} classes one pick stands for more than {_HEAVY:.0%} of the class, at "
            f"most for {figures.heaviest:.0%} (class {name}: {figures.size} rows, {figures.selected} picks)",
        )
    return tuple(
        f"class {name}: one pick stands for {figures.heaviest:.0%} of the class ({figures.size} rows, "
        f"{figures.distinct} distinct, {figures.selected} picks)"
        for figures, name in heavy
    )
