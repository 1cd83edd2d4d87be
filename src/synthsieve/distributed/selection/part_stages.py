"""The stages that process parts of classes: two rounds of greedy, then a pass that assigns every point.

A class in one part is selected from exactly as in memory. In a larger class each part gives more candidates than will
be kept. If many are kept of each part, the candidates with the largest gains are taken, since the gain of a candidate
depends on its own part alone, except at the border. If few are kept, greedy runs over the candidates themselves, each
with the weight it represents. Then each point is assigned to the nearest pick of the whole class, and weights, L and
the gradient error are measured over all points.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from synthsieve.distributed.selection.job import ClassPlan, SelectionJob
from synthsieve.distributed.selection.partition import split
from synthsieve.io.random_streams import derive_seed
from synthsieve.selection.measure import Capped, ClassPoints, cap_class, scaling_of
from synthsieve.selection.options import Method
from synthsieve.selection.result import Selection

# Candidates of a part over its share of the picks, plus this many standard deviations of the share.
_SURPLUS = 1.25
_DEVIATIONS = 2.0
# With fewer picks per part than this, they are chosen among all candidates, of which each part gives as many.
_MIN_PICKS_A_PART = 500
# Notes of this kind are true of a part but not of its class.
_HEAVY_NOTE = "one pick stands for"


class _PartPoints(NamedTuple):
    """The points of a part (m, d), their rows int64 (m,) and multiplicities float64 (m,); where each block starts."""

    points: np.ndarray
    row: np.ndarray
    multiplicity: np.ndarray
    starts: np.ndarray


def divide(job: SelectionJob, classes: tuple[ClassPlan, ...], number: int) -> dict[str, Any]:
    """Splits of one class, and how the picks of its sample are spread over the parts."""
    plan = classes[number]
    parts = job.wanted_parts(plan.size)
    if parts == 1:
        return {}
    samples = [[job.work.load("sample", block, key) for key in ("points", "label")] for block in range(len(job.blocks))]
    points = np.concatenate([of_block[label == plan.label] for of_block, label in samples])
    splits = split(points, parts)
    chosen = splits.leaf_of(points)
    if job.options.method is not Method.RANDOM:
        count = max(1, min(len(points), round(len(points) * plan.count / plan.size)))
        changes: dict[str, Any] = {"budget": count, "method": Method.AUTO, "refine": False, "memory_limit": None}
        chosen = chosen[_coreset(job, plan, points, plan.place, **changes).indices]
    shares = np.bincount(chosen, minlength=splits.num_leaves) / len(chosen)
    return {"splits": splits.tree, "shares": shares.tolist(), "picks": len(chosen)}


def _coreset(
    job: SelectionJob, plan: ClassPlan, points: np.ndarray, place: int, weight: np.ndarray | None = None, **options: Any
) -> Selection:
    """The in-memory coreset of one class, with the random stream of the class at `place` among all classes."""
    from synthsieve.selection.coreset import coreset

    entropy = np.random.SeedSequence(derive_seed(job.options.seed, "selection"), n_children_spawned=place)
    return coreset(
        points,
        np.full(len(points), plan.label, dtype=np.int32),
        replace(job.options, **{"n_jobs": 1, "epsilon": None, "max_weight": None, **options}),
        rng=np.random.Generator(np.random.PCG64(entropy)),
        sample_weight=weight,
        names=job.classes,
    )


def _gather(job: SelectionJob, part: int) -> _PartPoints:
    """A part's points of every block, in the order of their rows."""
    pieces: dict[str, list[np.ndarray]] = {key: [] for key in ("points", "row", "multiplicity")}
    sizes = [0]
    for block in range(len(job.blocks)):
        begin, end = job.work.load("blocks", block, "offsets")[part : part + 2].tolist()
        sizes.append(end - begin)
        for key, found in pieces.items():
            found.append(np.array(job.work.load("blocks", block, key)[begin:end]))
    return _PartPoints(**{key: np.concatenate(found) for key, found in pieces.items()}, starts=np.cumsum(sizes))


def num_candidates(job: SelectionJob, plan: ClassPlan, sizes: np.ndarray) -> list[int]:
    """How many candidates each part of a class gives; `sizes` (parts,) are their points."""
    if plan.bound or plan.splits is None:
        return np.minimum(sizes, plan.count).tolist()
    share = np.array(plan.shares)
    margin = _DEVIATIONS * plan.count * np.sqrt(share * (1 - share) / plan.picks_in_sample)
    if _chooses_among_candidates(job, plan):
        least = min(_MIN_PICKS_A_PART, job.options.part_rows // len(plan.parts))
        wanted = np.maximum(least, np.ceil(2 * share * plan.count + margin)).astype(np.int64)
    elif job.options.method.is_greedy and not job.options.refine:
        wanted = np.maximum(1, np.ceil(_SURPLUS * share * plan.count + margin)).astype(np.int64)
    else:
        exact = share * plan.count
        wanted = np.floor(exact).astype(np.int64)  # by largest remainder
        wanted[np.argsort(wanted - exact, kind="stable")[: plan.count - int(wanted.sum())]] += 1
    wanted = np.minimum(wanted, sizes)
    missing = plan.count - int(wanted.sum())
    for part in np.argsort(-(sizes - wanted), kind="stable"):  # if some parts have too few points, others give more
        more = min(max(missing, 0), int(sizes[part] - wanted[part]))
        wanted[part] += more
        missing -= more
    return wanted.tolist()


def _chooses_among_candidates(job: SelectionJob, plan: ClassPlan) -> bool:
    """Whether the second round is greedy over the candidates themselves."""
    few = plan.count < _MIN_PICKS_A_PART * len(plan.parts) and plan.count <= job.options.part_rows
    return plan.splits is not None and job.options.method.is_greedy and not plan.bound and few


def select_local(
    job: SelectionJob, classes: tuple[ClassPlan, ...], wanted: tuple[int, ...], part: int
) -> dict[str, Any]:
    """First round: save a part's picks in their order, with their gains; for a class in one part, everything."""
    plan = next(plan for plan in classes if part in plan.parts)
    if wanted[part] == 0:
        return {"notes": [], "exchanges": 0}
    given = _gather(job, part)
    single = plan.splits is None
    chosen = _coreset(
        job,
        plan,
        given.points,
        plan.place if single else part,
        None if single else given.multiplicity,
        budget=wanted[part],
        epsilon=plan.bound * (float(given.multiplicity.sum()) / plan.size) if plan.bound else None,
        refine=job.options.refine and not _chooses_among_candidates(job, plan),
    )
    figures = chosen.figures[0]
    job.work.save(
        "parts",
        part,
        row=given.row[chosen.indices],
        points=given.points[chosen.indices],
        weights=chosen.weights,
        gains=chosen.gains,
        starts=given.starts,
    )
    result = {
        "distinct": figures.distinct,
        "method": str(figures.method),
        "exchanges": figures.exchanges,
        "notes": [note for note in chosen.notes if _HEAVY_NOTE not in note],
    }
    if single:
        job.work.save("parts", part, assignment=given.row[chosen.assignment])
        result |= {"bound": chosen.gradient_bound, "difference": chosen.difference.tolist()}
    return result


def merge_candidates(job: SelectionJob, classes: tuple[ClassPlan, ...], number: int) -> dict[str, Any]:
    """Second round: save the picks of a class, in their order."""
    plan = classes[number]
    if plan.splits is None:
        return {}
    found: dict[str, list[np.ndarray]] = {key: [] for key in ("row", "points", "weights", "gains")}
    for part in plan.parts:
        if (job.work.place("parts", part) / "gains.npy").exists():  # else it had no share
            for key, arrays in found.items():
                arrays.append(np.array(job.work.load("parts", part, key)))
    row, points, weights = (np.concatenate(found[key]) for key in ("row", "points", "weights"))
    notes, exchanges = [], 0
    if _chooses_among_candidates(job, plan):
        chosen = _coreset(job, plan, points, plan.place, weights, budget=plan.count)
        best, exchanges = chosen.indices, chosen.figures[0].exchanges
        notes = [note for note in chosen.notes if _HEAVY_NOTE not in note]
    else:
        turn = np.concatenate([np.arange(len(gains)) for gains in found["gains"]])
        gain = np.concatenate([np.minimum.accumulate(gains) for gains in found["gains"]])
        best = np.lexsort((row, turn, -gain))[: None if plan.bound else plan.count]
    job.work.save("classes", plan.label, row=row[best], points=points[best])
    return {"exchanges": exchanges, "notes": notes}


def assign_points(job: SelectionJob, classes: tuple[ClassPlan, ...], part: int) -> dict[str, Any]:
    """Assign every point of a part to the nearest pick of its class; save the assignment, return what it amounts to."""
    from scipy.spatial import cKDTree

    from synthsieve.selection.duplicates import distinct_rows

    plan = next(plan for plan in classes if part in plan.parts)
    if plan.splits is None:
        return {}
    given = _gather(job, part)
    picks = np.array(job.work.load("classes", plan.label, "points"), dtype=np.float64)
    row, points = job.work.load("classes", plan.label, "row"), given.points.astype(np.float64)
    exponent = int(np.frexp(max(np.abs(picks).max(), np.abs(points).max(initial=0.0)))[1])  # no square overflows
    _, nearest = cKDTree(np.ldexp(picks, -exponent)).query(np.ldexp(points, -exponent))
    apart = np.ldexp(points - picks[nearest], -exponent)
    bound = float(given.multiplicity @ np.linalg.norm(apart, axis=1))
    ordinal, back = np.unique(nearest, return_inverse=True)
    job.work.save(
        "parts",
        part,
        assignment=row[nearest],
        starts=given.starts,
        ordinal=ordinal,
        weight_of_pick=np.bincount(back, given.multiplicity, minlength=len(ordinal)),
    )
    return {
        "bound": float(np.ldexp(bound, exponent)),
        "difference": np.ldexp(given.multiplicity @ apart, exponent).tolist(),
        "distinct": len(distinct_rows(given.points, np.arange(len(points), dtype=np.int32)).rows),
    }


def picks_of(job: SelectionJob, plan: ClassPlan) -> tuple[np.ndarray, Capped]:
    """Rows and weights of a class's picks, in pick order, the weights within the cap."""
    single = plan.splits is None
    kind, number = ("parts", plan.first_part) if single else ("classes", plan.label)
    rows, points = np.array(job.work.load(kind, number, "row")), job.work.load(kind, number, "points")
    weights = np.array(job.work.load(kind, number, "weights")) if single else _weights_of(job, plan, len(rows))
    of_class = ClassPoints(points, np.arange(len(rows), dtype=np.int32), weights, None)
    return rows, cap_class(of_class, of_class.rows, weights, job.options.max_weight, scaling_of(of_class))


def _weights_of(job: SelectionJob, plan: ClassPlan, count: int) -> np.ndarray:
    """The weights of the picks of a class in several parts (count,)."""
    weights = np.zeros(count)
    for part in plan.parts:
        weights[job.work.load("parts", part, "ordinal")] += job.work.load("parts", part, "weight_of_pick")
    return weights
