"""Two rounds of greedy: candidates from every part, then the best of all candidates; then everybody is asked again.

A class that fits one part is chosen from as `selection.coreset` does, pick for pick. In a larger one each part gives
more candidates than it will keep. Where many are kept of each part, greedy over all candidates takes the largest gains
of all parts, for what a candidate gains depends on its part alone, but at the border. Where few are kept, greedy runs
over the candidates themselves, each counting what it stands for. Then each point of each part turns to the nearest pick
of the whole class, and weights, L and the gradient error are measured anew over all points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.distributed.job import Job, block_name, part_name
from synthsieve.distributed.sorting import ClassPlan
from synthsieve.randomness import derive_seed
from synthsieve.selection.methods import Method

# Candidates of a part over its share of the picks, and this many standard deviations of the share for safety.
_SURPLUS = 1.25
_DEVIATIONS = 2.0
# With fewer picks a part than this they are chosen among all candidates, of which each part gives as many.
_FEW = 500
# Of what is said of a part this is not true of its class.
_HEAVY = "one pick stands for"


@dataclass(frozen=True)
class Gathered:
    """The points of a part, from all blocks, in the order of their rows.

    Attributes:
        points: (m, d); row: int64 (m,); count: float64 (m,), how often each occurs.
        starts: int64 (blocks + 1,), where each block's points begin.
    """

    points: np.ndarray
    row: np.ndarray
    count: np.ndarray
    starts: np.ndarray


def gather(job: Job, part: int) -> Gathered:
    """Read a part's piece of every block."""
    pieces = {key: [np.array(job.work.load(block_name(0), key)[:0])] for key in ("points", "row", "count")}
    sizes = [0]
    for number in range(len(job.blocks)):
        name = block_name(number)
        begin, end = job.work.load(name, "offsets")[part : part + 2].tolist()
        sizes.append(end - begin)
        if end > begin:
            for key, found in pieces.items():
                found.append(np.array(job.work.load(name, key)[begin:end]))
    return Gathered(**{key: np.concatenate(found) for key, found in pieces.items()}, starts=np.cumsum(sizes))


def stream(seed: int, place: int) -> np.random.Generator:
    """A generator whose first child is the one that `coreset` gives the class at `place` among all classes."""
    entropy = derive_seed(seed, "selection")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy, n_children_spawned=place)))


def candidates_of(job: Job, plan: ClassPlan, sizes: np.ndarray) -> list[int]:
    """How many candidates each part of a class gives; `sizes` (parts,) is how many it has at most."""
    if plan.bound or plan.splits is None:
        return np.minimum(sizes, plan.count).tolist()
    share = np.array(plan.shares)
    unsure = _DEVIATIONS * plan.count * np.sqrt(share * (1 - share) / plan.picks_in_sample)
    if are_few(job, plan):
        least = min(_FEW, job.sieving.part_rows // plan.num_parts)
        wanted = np.maximum(least, np.ceil(2 * share * plan.count + unsure)).astype(np.int64)
    elif _in_order_of_gains(job):
        wanted = np.maximum(1, np.ceil(_SURPLUS * share * plan.count + unsure)).astype(np.int64)
    else:
        wanted = _whole(share * plan.count, plan.count)
    wanted = np.minimum(wanted, sizes)
    missing = plan.count - int(wanted.sum())
    for part in np.argsort(-(sizes - wanted), kind="stable"):  # some parts are short of points: others help out
        more = min(max(missing, 0), int(sizes[part] - wanted[part]))
        wanted[part] += more
        missing -= more
    return wanted.tolist()


def are_few(job: Job, plan: ClassPlan) -> bool:
    """Whether the second round is a greedy over the candidates themselves."""
    greedy = job.sieving.method in (Method.AUTO, Method.EXACT, Method.FAST) and not plan.bound
    few = plan.count < _FEW * plan.num_parts and plan.count <= job.sieving.part_rows
    return plan.splits is not None and greedy and few


def _in_order_of_gains(job: Job) -> bool:
    return job.sieving.method in (Method.AUTO, Method.EXACT, Method.FAST) and not job.sieving.refine


def _whole(exact: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers near `exact` that sum to `total`, by largest remainder."""
    whole = np.floor(exact).astype(np.int64)
    order = np.argsort(whole - exact, kind="stable")
    whole[order[: total - int(whole.sum())]] += 1
    return whole


def choose(job: Job, classes: tuple[ClassPlan, ...], wanted: tuple[int, ...], part: int) -> dict[str, Any]:
    """First round: leave a part's picks in their order, with their gains; for a class in one part, everything."""
    from synthsieve.selection.budget import Budget
    from synthsieve.selection.coreset import coreset

    plan = next(plan for plan in classes if part in plan.parts)
    if wanted[part] == 0:
        return {"notes": [], "exchanges": 0}
    given = gather(job, part)
    budget = Budget(count=wanted[part])
    if plan.bound:
        budget = Budget(bound=plan.bound * (float(given.count.sum()) / plan.size))
    chosen = coreset(
        given.points,
        np.full(len(given.row), plan.label, dtype=np.int32),
        budget,
        generator=stream(job.sieving.seed, plan.place if plan.splits is None else part),
        method=job.sieving.method,
        refine=job.sieving.refine and not are_few(job, plan),
        sample_weight=given.count if plan.splits is not None else None,
        memory_limit=job.sieving.memory_limit,
        n_jobs=1,
        names=job.classes,
    )
    figures = chosen.classes[0]
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
        "selected": figures.selected,
        "method": str(figures.method),
        "exchanges": figures.exchanges,
        "notes": [note for note in chosen.notes if _HEAVY not in note],
    }
    if plan.splits is None:
        job.work.save(part_name(part), assignment=given.row[chosen.assignment])
        result |= {"bound": chosen.gradient_bound, "difference": chosen.difference.tolist()}
    return result


def unite(job: Job, classes: tuple[ClassPlan, ...], number: int) -> dict[str, Any]:
    """Second round: leave the picks of a class, in their order."""
    plan = classes[number]
    if plan.splits is None:
        return {}
    given = _candidates(job, plan)
    notes: tuple[str, ...] = ()
    exchanges = 0
    if are_few(job, plan):
        best, exchanges, notes = _best_few(job, plan, given)
    else:
        best = np.lexsort((given.row, given.place, -given.gain))[: None if plan.bound else plan.count]
    job.work.save(class_name(plan), row=given.row[best], points=given.points[best])
    return {"exchanges": exchanges, "notes": list(notes)}


@dataclass(frozen=True)
class _Candidates:
    """Those of all parts, m of them, part after part.

    Attributes:
        row: int64 (m,); points: (m, d); weight: float64 (m,), what each stands for in its part.
        gain: float64 (m,), lowered to that of earlier ones of its part; place: int64 (m,), its turn in its part.
    """

    row: np.ndarray
    points: np.ndarray
    weight: np.ndarray
    gain: np.ndarray
    place: np.ndarray


def _candidates(job: Job, plan: ClassPlan) -> _Candidates:
    found: dict[str, list[np.ndarray]] = {key: [] for key in ("row", "points", "weights", "gains")}
    for part in plan.parts:
        if (job.work.path / part_name(part) / "gains.npy").exists():  # else it had no share
            for key, arrays in found.items():
                arrays.append(np.array(job.work.load(part_name(part), key)))
    place = np.concatenate([np.arange(len(gains)) for gains in found["gains"]])
    gain = np.concatenate([np.minimum.accumulate(gains) for gains in found["gains"]])
    row, points, weight = (np.concatenate(found[key]) for key in ("row", "points", "weights"))
    return _Candidates(row, points, weight, gain, place)


def _best_few(job: Job, plan: ClassPlan, given: _Candidates) -> tuple[np.ndarray, int, tuple[str, ...]]:
    """Greedy over the candidates, each counting what it stands for."""
    from synthsieve.selection.budget import Budget
    from synthsieve.selection.coreset import coreset

    chosen = coreset(
        given.points,
        np.full(len(given.row), plan.label, dtype=np.int32),
        Budget(count=plan.count),
        generator=stream(job.sieving.seed, plan.place),
        method=job.sieving.method,
        refine=job.sieving.refine,
        sample_weight=given.weight,
        memory_limit=job.sieving.memory_limit,
        n_jobs=1,
        names=job.classes,
    )
    notes = tuple(note for note in chosen.notes if _HEAVY not in note)
    return chosen.indices, chosen.classes[0].exchanges, notes


def settle(job: Job, classes: tuple[ClassPlan, ...], part: int) -> dict[str, Any]:
    """Let every point of a part turn to the nearest pick of its class; leave who that is, return what it comes to."""
    from scipy.spatial import cKDTree

    from synthsieve.selection.duplicates import distinct_rows

    plan = next(plan for plan in classes if part in plan.parts)
    if plan.splits is None:
        return {}
    given = gather(job, part)
    picks = np.array(job.work.load(class_name(plan), "points"), dtype=np.float64)
    row, own = job.work.load(class_name(plan), "row"), given.points.astype(np.float64)
    largest = int(np.frexp(max(np.abs(picks).max(), np.abs(own).max(initial=0.0)))[1])  # so that no square overflows
    _, nearest = cKDTree(np.ldexp(picks, -largest)).query(np.ldexp(own, -largest))
    apart = np.ldexp(own - picks[nearest], -largest)
    bound = float(given.count @ np.linalg.norm(apart, axis=1))
    ordinal, back = np.unique(nearest, return_inverse=True)
    job.work.save(
        part_name(part),
        assignment=row[nearest],
        starts=given.starts,
        ordinal=ordinal,
        stands_for=np.bincount(back, given.count, minlength=len(ordinal)),
    )
    return {
        "bound": float(np.ldexp(bound, largest)),
        "difference": np.ldexp(given.count @ apart, largest).tolist(),
        "distinct": len(distinct_rows(given.points, np.arange(len(own), dtype=np.int32)).rows),
    }


def class_name(plan: ClassPlan) -> str:
    return f"classes/{plan.label:06d}"
