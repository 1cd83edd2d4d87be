"""The sieve over files: score, filter, sort into parts, choose in two rounds, settle, write.

The stages follow `sieve.select`; a class that fits one part comes out as it does there, pick for pick.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.distributed import rounds, scoring, sorting, threshold, writing
from synthsieve.distributed.blocks import cut, rows_in_a_block
from synthsieve.distributed.engine import Engine, Work
from synthsieve.distributed.job import Job, Sieving, part_name
from synthsieve.distributed.partition import Splits
from synthsieve.distributed.sorting import ClassPlan
from synthsieve.distributed.work_folder import WorkFolder
from synthsieve.entropy import Reason, check_filter, nobody
from synthsieve.errors import SelectionError
from synthsieve.files import write_json
from synthsieve.progress import Progress, Silent
from synthsieve.selection.budget import Budget
from synthsieve.selection.coreset import ClassFigures, heavy_notes, length
from synthsieve.selection.methods import Method
from synthsieve.selection.targets import targets_of
from synthsieve.shards import Shards
from synthsieve.sieve_report import Contradicted, Told, lost_classes

WRITTEN = (writing.FATES, writing.SELECTED, "summary.json")


@dataclass(frozen=True)
class SievedShards(Told):
    """What `select_shards` wrote, in figures; the rows themselves are on disk.

    Attributes:
        rows: how many rows were given.
        rejected: how many were rejected, by reason in words.
        stages: wall seconds of each stage.
    """

    rows: int
    rejected: dict[str, int]
    gradient_bound: float
    gradient_error: float
    entropy_ceiling: float
    classes: tuple[Any, ...]
    figures: tuple[ClassFigures, ...]
    notes: tuple[str, ...]
    seconds: float
    compile_seconds: float = 0.0
    contradicted: Contradicted | None = None
    stages: dict[str, float] = field(default_factory=dict)

    @property
    def num_rows(self) -> int:
        return self.rows

    def as_dict(self) -> dict[str, Any]:
        return {**super().as_dict(), "stage_seconds": {name: round(time, 2) for name, time in self.stages.items()}}

    @property
    def rejected_counts(self) -> dict[str, int]:
        return self.rejected


def select_shards(
    shards: Shards,
    out: Path,
    budget: Budget,
    *,
    sieving: Sieving,
    engine: Engine,
    progress: Progress | None = None,
) -> SievedShards:
    """Filter and select the rows of `shards`; write OUT/selection, OUT/selected and OUT/summary.json, or nothing.

    Every worker must see the files and OUT under the same names.
    """
    started = time.perf_counter()
    _check(shards, sieving)
    created = not out.exists()
    work = WorkFolder.within(out)
    try:
        widths = _widths(shards)
        job = Job(shards, cut(shards, rows_in_a_block(max(widths.values()))), work, sieving, widths=widths)
        stages = _Stages(engine, len(job.blocks), progress or Silent())
        told = _sieve(job, budget, stages)
        told = replace(told, seconds=time.perf_counter() - started, stages=stages.seconds)
        summary = {key: value for key, value in told.as_dict().items() if not key.endswith("seconds")}
        write_json(work.path / "summary.json", summary)
        for name in WRITTEN:
            work.publish(name, out / name)
        return told
    except OSError as error:
        raise SelectionError(
            f"expected to write into {out}, got {error.strerror or error}: check its name, rights and room"
        ) from error
    finally:
        (progress or Silent()).close()
        work.remove()
        if created and out.exists() and not any(out.iterdir()):
            out.rmdir()


def _sieve(job: Job, budget: Budget, stages: _Stages) -> SievedShards:
    job, assumed = _with_classes(job, stages)
    scored = _Counts.of(stages.blocks("scoring", 1.0, partial(scoring.score, job)))
    kept = _filtered(job, scored, stages)
    classes = _planned(job, kept, budget, stages)
    figures, differences, notes = _chosen(job, classes, stages)
    written = list(stages.blocks("writing", 1.0, partial(writing.write, job)))
    contradicted = None
    if job.judged_by is not None:
        contradicted = _contradicted(kept, figures, sum(told["contradicted"] for told in written))
    names = job.classes or tuple(range(scored.columns))
    present = [label for label, rows in enumerate(kept.rows) if rows]
    said = [*scored.warnings, *assumed, *notes, *heavy_notes(figures, [str(names[f.label]) for f in figures])]
    ceiling = np.inf if job.sieving.entropy_ceiling is None else job.sieving.entropy_ceiling
    if job.sieving.keep_fraction is not None:
        ceiling = float(np.nextafter(kept.highest_kept, np.inf))
    return SievedShards(
        rows=sum(kept.rows),
        rejected={reason.in_words(): kept.reasons[reason] for reason in list(Reason)[1:] if kept.reasons[reason]},
        gradient_bound=float(sum(one.gradient_bound for one in figures)),
        gradient_error=length(np.sum(differences, axis=0)),
        entropy_ceiling=ceiling,
        classes=names,
        figures=figures,
        notes=(
            *said,
            *lost_classes({plan.label for plan in classes}, present, names),
            *(contradicted.notes() if contradicted is not None else ()),
        ),
        seconds=0.0,
        contradicted=contradicted,
    )


def _contradicted(kept: _Counts, figures: tuple[ClassFigures, ...], selected: int) -> Contradicted:
    survivors, wrong, picks = (np.zeros(len(kept.rows)) for _ in range(3))
    survivors[: len(kept.kept)], wrong[: len(kept.contradicted)] = kept.kept, kept.contradicted
    picks[[one.label for one in figures]] = [one.selected for one in figures]
    return Contradicted.of(survivors, wrong, picks, selected)


def _check(shards: Shards, sieving: Sieving) -> None:
    """What `sieve.select` and `entropy.filter_by_entropy` refuse, before anything is read."""
    if not shards.answers:
        raise SelectionError(
            f"expected logits, probabilities or gradients in {shards.path.name} with a cluster, got features only: "
            "add one of them, or select without --cluster"
        )
    if not shards.num_rows:
        raise SelectionError(f"expected at least one row in {shards.path.name}, got none: check that it is not empty")
    filters = (sieving.entropy_ceiling, sieving.keep_fraction, sieving.require_label or None)
    if list(shards.answers) == ["gradients"] and any(one is not None for one in filters):
        raise SelectionError("expected logits or probabilities to filter by, got gradients only: pass those too")
    if sieving.keep_per_class and sieving.keep_fraction is None:
        raise SelectionError("expected keep_fraction beside keep_per_class, got none: give both, or neither")
    check_filter(sieving.entropy_ceiling, sieving.keep_fraction)
    if sieving.part_rows < 1_000:
        raise SelectionError(f"expected parts of at least 1,000 rows, got {sieving.part_rows}: try 100000")


def _widths(shards: Shards) -> dict[str, int]:
    """How many numbers the first row has of each kind of answers."""
    from synthsieve.shards import batches, read_matrix

    file = next(file for file, rows in zip(shards.files, shards.file_rows, strict=True) if rows)
    return {
        kind: read_matrix(batches(file, columns, 0, 1), columns, 1).shape[1] for kind, columns in shards.answers.items()
    }


def _with_classes(job: Job, stages: _Stages) -> tuple[Job, tuple[str, ...]]:
    """The job with a name for each class, where the rows must be asked for them, and notes on their order."""
    from synthsieve.selection import door

    first = next(number for number, block in enumerate(job.blocks) if block.num_rows)
    numbers = np.issubdtype(door.label_array(job.named_labels(first)[:1]).dtype, np.integer)
    if job.judged_by is not None and numbers and job.judged_by not in job.shards.names:
        return job, ()
    found: set[Any] = set()
    for told in stages.blocks("looking", 0.2, partial(scoring.look, job)):
        found.update(told["labels"])
    labels = np.unique(np.array(sorted(found)))
    if job.judged_by is None:
        return replace(job, classes=door.any_labels(labels).names), ()
    classes, notes = door.column_classes(labels, job.widths[job.judged_by], job.shards.names.get(job.judged_by))
    return replace(job, classes=classes), notes


@dataclass(frozen=True)
class _Counts:
    """Over all blocks: rows, survivors and contradicted survivors by class, rows by reason, extremes of the entropy."""

    rows: list[int]
    kept: list[int]
    contradicted: list[int]
    reasons: list[int]
    highest_kept: float
    lowest: float
    columns: int
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, blocks: Iterator[dict[str, Any]]) -> _Counts:
        rows: list[int] = []
        kept: list[int] = []
        contradicted: list[int] = []
        reasons: list[int] = []
        highest, lowest, columns, warnings = -np.inf, np.inf, 0, dict[str, None]()
        for told in blocks:
            rows, kept, contradicted, reasons = (
                [a + b for a, b in zip_longest(mine, told[key], fillvalue=0)]
                for mine, key in (
                    (rows, "rows"),
                    (kept, "kept"),
                    (contradicted, "contradicted"),
                    (reasons, "reasons"),
                )
            )
            highest, lowest = max(highest, told["highest_kept"]), min(lowest, told.get("lowest", np.inf))
            columns = max(columns, told.get("columns", 0))
            warnings |= dict.fromkeys(told.get("warnings", ()))
        return cls(rows, kept, contradicted, reasons, highest, lowest, columns, tuple(warnings))


def _filtered(job: Job, scored: _Counts, stages: _Stages) -> _Counts:
    """The counts once the filter has passed over all rows."""
    kept, asked = scored, job.sieving
    if asked.keep_fraction is not None:
        sizes, eligible = np.array(scored.rows), np.zeros(len(scored.rows), dtype=np.int64)
        eligible[: len(scored.kept)] = scored.kept
        if not asked.keep_per_class:
            sizes, eligible = sizes.sum(keepdims=True), eligible.sum(keepdims=True)
        found = threshold.thresholds(job, stages.quietly("filtering", 0.4), sizes, eligible)
        kept = _Counts.of(stages.blocks("filtering", 0.1, partial(threshold.sift, job, found)))
    if not sum(kept.kept):
        raise SelectionError(nobody(scored.lowest, asked.entropy_ceiling))
    return kept


def _planned(job: Job, kept: _Counts, budget: Budget, stages: _Stages) -> tuple[ClassPlan, ...]:
    """How each class is chosen from; large ones are divided."""
    present = [label for label, count in enumerate(kept.kept) if count]
    sizes = np.array([kept.kept[label] for label in present])
    targets = targets_of(budget, sizes, sizes.astype(np.float64))
    classes = tuple(
        ClassPlan(label, place, int(size), target.count, target.bound)
        for place, (label, size, target) in enumerate(zip(present, sizes, targets, strict=True))
    )
    if not any(sorting.wanted_parts(job, plan.size) > 1 for plan in classes):
        return tuple(replace(plan, first_part=place) for place, plan in enumerate(classes))
    list(stages.blocks("sampling", 0.5, partial(sorting.sample, job, classes)))
    planned, first = [], 0
    for plan, told in zip(
        classes, stages.parts("dividing", 1.0, partial(sorting.divide, job, classes), len(classes)), strict=True
    ):
        plan = replace(plan, first_part=first)
        if told["splits"] is not None:
            splits = Splits.from_dict(told["splits"])
            plan = replace(plan, splits=splits, shares=tuple(told["shares"]), picks_in_sample=told["picks"])
        planned.append(plan)
        first += plan.num_parts
    job.work.drop("sample")
    return tuple(planned)


def _chosen(
    job: Job, classes: tuple[ClassPlan, ...], stages: _Stages
) -> tuple[tuple[ClassFigures, ...], list[np.ndarray], list[str]]:
    """Both rounds and the pass over everybody; figures and the summed gradient difference of each class, and notes."""
    num_parts = sum(plan.num_parts for plan in classes)
    sizes = np.zeros(num_parts, dtype=np.int64)
    for told in stages.blocks("sorting", 1.0, partial(sorting.sort, job, classes)):
        for part, size in told["sizes"]:
            sizes[part] += size
    wanted = tuple(
        count
        for plan in classes
        for count in rounds.candidates_of(job, plan, sizes[plan.parts.start : plan.parts.stop])
    )
    first = list(stages.parts("choosing", 30.0, partial(rounds.choose, job, classes, wanted), num_parts))
    joined = list(stages.parts("joining", 1.0, partial(rounds.unite, job, classes), len(classes)))
    second = list(stages.parts("settling", 5.0, partial(rounds.settle, job, classes), num_parts))
    figures, differences, picks = [], [], []
    notes = [note for told in (*first, *joined) for note in told.get("notes", ())]
    for plan in classes:
        rows, weights = _picks(job, plan)
        picks.append((rows, np.arange(len(rows)), weights))
        rounds_of = [first[part] for part in plan.parts], joined[plan.place], [second[part] for part in plan.parts]
        one, difference = _figures(plan, weights, *rounds_of)
        figures.append(one)
        differences.append(difference)
        if plan.splits is not None:
            name = plan.label if job.classes is None else job.classes[plan.label]
            notes.append(f"class {name}: {plan.size:,} rows chosen from in {plan.num_parts} parts, in two rounds")
    row, rank, weight = (np.concatenate(column) for column in zip(*picks, strict=True))
    order = np.argsort(row)
    job.work.save(writing.PICKS, row=row[order], rank=rank[order], weight=weight[order])
    return tuple(figures), differences, notes


def _picks(job: Job, plan: ClassPlan) -> tuple[np.ndarray, np.ndarray]:
    """Rows and weights of a class's picks, in pick order."""
    if plan.splits is None:
        name = part_name(plan.first_part)
        return np.array(job.work.load(name, "row")), np.array(job.work.load(name, "weights"))
    rows = np.array(job.work.load(rounds.class_name(plan), "row"))
    weights = np.zeros(len(rows))
    for part in plan.parts:
        weights[job.work.load(part_name(part), "ordinal")] += job.work.load(part_name(part), "stands_for")
    return rows, weights


def _figures(
    plan: ClassPlan,
    weights: np.ndarray,
    first: list[dict[str, Any]],
    joined: dict[str, Any],
    settled: list[dict[str, Any]],
) -> tuple[ClassFigures, np.ndarray]:
    measured = first if plan.splits is None else settled
    difference = np.sum([np.array(told["difference"]) for told in measured], axis=0)
    figures = ClassFigures(
        label=plan.label,
        size=plan.size,
        distinct=sum(told["distinct"] for told in measured),
        selected=len(weights),
        weight=float(weights.sum()),
        gradient_bound=float(sum(told["bound"] for told in measured)),
        gradient_error=length(difference),
        heaviest=float(weights.max() / plan.size),
        method=Method(next(told["method"] for told in first if "method" in told)),
        exchanges=sum(told.get("exchanges", 0) for told in (*first, joined)),
        seconds=0.0,
    )
    return figures, difference


class _Stages:
    """Runs stage after stage on an engine and tells how far all of them have come; a stage's weight is its cost."""

    _TOTAL = 42.2  # of all weights

    def __init__(self, engine: Engine, num_blocks: int, progress: Progress) -> None:
        self.engine, self.num_blocks, self.progress = engine, num_blocks, progress
        self.done = 0.0
        self.seconds: dict[str, float] = {}

    def blocks(self, name: str, weight: float, work: Work) -> Iterator[dict[str, Any]]:
        return self._told(name, weight, self.engine.blocks, work, self.num_blocks)

    def parts(self, name: str, weight: float, work: Work, count: int) -> Iterator[dict[str, Any]]:
        return self._told(name, weight, self.engine.parts, work, count)

    def quietly(self, name: str, weight: float) -> Engine:
        """The engine itself, for stages that count for themselves."""
        self.progress.update(round(1000 * self.done / self._TOTAL), 1000, name)
        self.done += weight
        return self.engine

    def _told(
        self, name: str, weight: float, run: Callable[[Work, int], Iterator[dict[str, Any]]], work: Work, count: int
    ) -> Iterator[dict[str, Any]]:
        begun, started = self.done, time.perf_counter()
        self.progress.update(round(1000 * begun / self._TOTAL), 1000, name)
        for number, result in enumerate(run(work, count), 1):
            self.progress.update(round(1000 * (begun + weight * number / count) / self._TOTAL), 1000, name)
            yield result
        self.done = begun + weight
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started
