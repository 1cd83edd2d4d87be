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

from synthsieve.distributed.selection.job import ClassPlan, Job, block_name, part_name, sample_name
from synthsieve.distributed.selection.partition import split
from synthsieve.io.random_streams import derive_seed
from synthsieve.selection.options import Method
from synthsieve.selection.result import Selection

# Candidates of a part over its share of the picks, plus this many standard deviations of the share.
_SURPLUS = 1.25
_DEVIATIONS = 2.0
# With fewer picks per part than this, they are chosen among all candidates, of which each part gives as many.
_MIN_PICKS_A_PART = 500
# Notes of this kind are true of a part but not of its class.
_HEAVY = "one pick stands for"


class _PartPoints(NamedTuple):
    """The points of a part (m, d), their rows int64 (m,) and multiplicities float64 (m,); where each block starts."""

    points: np.ndarray
    row: np.ndarray
    multiplicity: np.ndarray
    starts: np.ndarray


def divide(job: Job, classes: tuple[ClassPlan, ...], number: int) -> dict[str, Any]:
    """Splits of one class, and how the picks of its sample are spread over the parts."""
    plan = classes[number]
    parts = job.wanted_parts(plan.size)
    if parts == 1:
        return {"splits": None}
    found = []
    for name in map(sample_name, range(len(job.blocks))):
        found.append(job.work.load(name, "points")[job.work.load(name, "label") == plan.label])
    points = np.concatenate(found)
    splits = split(points, parts)
    chosen = splits.leaf_of(points)
    if job.options.method is not Method.RANDOM:
        count = max(1, min(len(points), round(len(points) * plan.count / plan.size)))
        picks = _coreset(
            job, plan, points, plan.place, budget=count, method=Method.AUTO, refine=False, memory_limit=None
        )
        chosen = chosen[picks.indices]
    shares = np.bincount(chosen, minlength=splits.num_leaves) / len(chosen)
    return {"splits": splits.as_dict(), "shares": shares.tolist(), "picks": len(chosen)}


def _coreset(
    job: Job, plan: ClassPlan, points: np.ndarray, place: int, weight: np.ndarray | None = None, **options: Any
) -> Selection:
    """The in-memory coreset of one class, with the random stream of the class at `place` among all classes."""
    from synthsieve.selection.coreset import coreset

    if "epsilon" not in options:
        options["epsilon"] = None
    entropy = np.random.SeedSequence(derive_seed(job.options.seed, "selection"), n_children_spawned=place)
    return coreset(
        points,
        np.full(len(points), plan.label, dtype=np.int32),
        replace(job.options, n_jobs=1, **options),
        rng=np.random.Generator(np.random.PCG64(entropy)),
        sample_weight=weight,
        names=job.classes,
    )


def _gather(job: Job, part: int) -> _PartPoints:
    """A part's points of every block, in the order of their rows."""
    pieces = {key: [np.array(job.work.load(block_name(0), key)[:0])] for key in ("points", "row", "multiplicity")}
    sizes = [0]
    for name in map(block_name, range(len(job.blocks))):
        begin, end = job.work.load(name, "offsets")[part : part + 2].tolist()
        sizes.append(end - begin)
        if end > begin:
            for key, found in pieces.items():
                found.append(np.array(job.work.load(name, key)[begin:end]))
    return _PartPoints(**{key: np.concatenate(found) for key, found in pieces.items()}, starts=np.cumsum(sizes))


def num_candidates(job: Job, plan: ClassPlan, sizes: np.ndarray) -> list[int]:
    """How many candidates each part of a class gives; `sizes` (parts,) are their points."""
    if plan.bound or plan.splits is None:
        return np.minimum(sizes, plan.count).tolist()
    share = np.array(plan.shares)
    margin = _DEVIATIONS * plan.count * np.sqrt(share * (1 - share) / plan.picks_in_sample)
    if _chooses_among_candidates(job, plan):
        least = min(_MIN_PICKS_A_PART, job.options.part_rows // plan.num_parts)
        wanted = np.maximum(least, np.ceil(2 * share * plan.count + margin)).astype(np.int64)
    elif job.options.method.is_greedy and not job.options.refine:
        wanted = np.maximum(1, np.ceil(_SURPLUS * share * plan.count + margin)).astype(np.int64)
    else:
        wanted = _round_to_sum(share * plan.count, plan.count)
    wanted = np.minimum(wanted, sizes)
    missing = plan.count - int(wanted.sum())
    for part in np.argsort(-(sizes - wanted), kind="stable"):  # if some parts have too few points, others give more
        more = min(max(missing, 0), int(sizes[part] - wanted[part]))
        wanted[part] += more
        missing -= more
    return wanted.tolist()


def _chooses_among_candidates(job: Job, plan: ClassPlan) -> bool:
    """Whether the second round is greedy over the candidates themselves."""
    few = plan.count < _MIN_PICKS_A_PART * plan.num_parts and plan.count <= job.options.part_rows
    return plan.splits is not None and job.options.method.is_greedy and not plan.bound and few


def _round_to_sum(exact: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers near `exact` that sum to `total`, by largest remainder."""
    whole = np.floor(exact).astype(np.int64)
    order = np.argsort(whole - exact, kind="stable")
    whole[order[: total - int(whole.sum())]] += 1
    return whole


def select_local(job: Job, classes: tuple[ClassPlan, ...], wanted: tuple[int, ...], part: int) -> dict[str, Any]:
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
        part_name(part),
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
        "notes": [note for note in chosen.notes if _HEAVY not in note],
    }
    if single:
        job.work.save(part_name(part), assignment=given.row[chosen.assignment])
        result |= {"bound": chosen.gradient_bound, "difference": chosen.difference.tolist()}
    return result


def merge_candidates(job: Job, classes: tuple[ClassPlan, ...], number: int) -> dict[str, Any]:
    """Second round: save the picks of a class, in their order."""
    plan = classes[number]
    if plan.splits is None:
        return {}
    found: dict[str, list[np.ndarray]] = {key: [] for key in ("row", "points", "weights", "gains")}
    for name in map(part_name, plan.parts):
        if (job.work.path / name / "gains.npy").exists():  # else it had no share
            for key, arrays in found.items():
                arrays.append(np.array(job.work.load(name, key)))
    row, points, weights = (np.concatenate(found[key]) for key in ("row", "points", "weights"))
    notes, exchanges = [], 0
    if _chooses_among_candidates(job, plan):
        chosen = _coreset(job, plan, points, plan.place, weights, budget=plan.count)
        best, exchanges = chosen.indices, chosen.figures[0].exchanges
        notes = [note for note in chosen.notes if _HEAVY not in note]
    else:
        turn = np.concatenate([np.arange(len(gains)) for gains in found["gains"]])
        gain = np.concatenate([np.minimum.accumulate(gains) for gains in found["gains"]])
        best = np.lexsort((row, turn, -gain))[: None if plan.bound else plan.count]
    job.work.save(plan.name, row=row[best], points=points[best])
    return {"exchanges": exchanges, "notes": notes}


def assign_points(job: Job, classes: tuple[ClassPlan, ...], part: int) -> dict[str, Any]:
    """Assign every point of a part to the nearest pick of its class; save the assignment, return what it amounts to."""
    from scipy.spatial import cKDTree

    from synthsieve.selection.duplicates import distinct_rows

    plan = next(plan for plan in classes if part in plan.parts)
    if plan.splits is None:
        return {}
    given = _gather(job, part)
    picks = np.array(job.work.load(plan.name, "points"), dtype=np.float64)
    row, points = job.work.load(plan.name, "row"), given.points.astype(np.float64)
    exponent = int(np.frexp(max(np.abs(picks).max(), np.abs(points).max(initial=0.0)))[1])  # no square overflows
    _, nearest = cKDTree(np.ldexp(picks, -exponent)).query(np.ldexp(points, -exponent))
    apart = np.ldexp(points - picks[nearest], -exponent)
    bound = float(given.multiplicity @ np.linalg.norm(apart, axis=1))
    ordinal, back = np.unique(nearest, return_inverse=True)
    job.work.save(
        part_name(part),
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


def picks_of(job: Job, plan: ClassPlan) -> tuple[np.ndarray, np.ndarray]:
    """Rows and weights of a class's picks, in pick order."""
    if plan.splits is None:
        name = part_name(plan.first_part)
        return np.array(job.work.load(name, "row")), np.array(job.work.load(name, "weights"))
    rows = np.array(job.work.load(plan.name, "row"))
    weights = np.zeros(len(rows))
    for name in map(part_name, plan.parts):
        weights[job.work.load(name, "ordinal")] += job.work.load(name, "weight_of_pick")
    return rows, weights
