"""Selection over files: score, filter, sort into parts, choose in two rounds, assign, write.

The stages are those of `synthsieve.select`; a class in one part gives the same picks as in memory. This process holds
entropies, labels and outcomes of all rows (14 bytes a row); everything else is on disk.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.distributed.engine import Engine, Work
from synthsieve.distributed.selection import block_stages, part_stages
from synthsieve.distributed.selection.job import ClassPlan, SelectionJob, WorkFolder, cut, rows_in_a_block
from synthsieve.distributed.selection.partition import Splits
from synthsieve.errors import SelectionError
from synthsieve.io.files import write_json
from synthsieve.io.progress import NullProgress, Progress
from synthsieve.selection import validation
from synthsieve.selection.budget import class_targets
from synthsieve.selection.entropy import Reason, Survivors, filter_rows
from synthsieve.selection.files import cannot_write
from synthsieve.selection.measure import length
from synthsieve.selection.options import Method, SelectionOptions
from synthsieve.selection.result import (
    ClassFigures,
    Contradicted,
    Selection,
    count_reasons,
    heavy_notes,
    lost_class_notes,
)
from synthsieve.selection.select import check_can_filter
from synthsieve.selection.tables import Shards, batches, read_matrix

WRITTEN = (block_stages.OUTCOMES, block_stages.SELECTED, "summary.json")
# The cost of the stages relative to the others, for progress.
_COSTS = {"scanning labels": 0.2, "sampling": 0.5, "choosing": 30.0, "assigning": 5.0}
_TOTAL_COST = 40.7


def select_shards(
    shards: Shards, out: Path, options: SelectionOptions, *, engine: Engine, progress: Progress | None = None
) -> Selection:
    """Filter and select the rows of `shards`; write OUT/selection, OUT/selected and OUT/summary.json, or nothing.

    Every worker must see the files and OUT under the same names.
    """
    started = time.perf_counter()
    if not shards.outputs:
        raise SelectionError(
            f"expected logits, probabilities or gradients in {shards.path.name} with a cluster, got features only: "
            "add one of them, or select without --cluster",
            code="no-output",
        )
    if not shards.num_rows:
        raise SelectionError(
            f"expected at least one row in {shards.path.name}, got none: check that it is not empty", code="no-rows"
        )
    check_can_filter(options, has_output=list(shards.outputs) != ["gradients"])
    created, progress = not out.exists(), progress or NullProgress()
    work = WorkFolder.within(out)
    try:
        file = next(file for file, rows in zip(shards.files, shards.file_rows, strict=True) if rows)
        kinds = shards.outputs.items()
        widths = {kind: read_matrix(batches(file, columns, 0, 1), columns, 1).shape[1] for kind, columns in kinds}
        job = SelectionJob(shards, cut(shards, rows_in_a_block(max(widths.values()))), work, options, widths=widths)
        stages = _Stages(engine, len(job.blocks), progress)
        selection = _select(job, stages)
        summary = {key: value for key, value in selection.as_dict().items() if not key.endswith("seconds")}
        write_json(work.path / "summary.json", summary)
        for name in WRITTEN:
            work.publish(name, out / name)
        files = tuple(out / name for name in WRITTEN)
        return replace(selection, seconds=time.perf_counter() - started, stages=stages.seconds, files=files)
    except OSError as error:
        raise cannot_write(out, error) from error
    finally:
        progress.close()
        work.remove()
        if created and out.exists() and not any(out.iterdir()):
            out.rmdir()


def _select(job: SelectionJob, stages: _Stages) -> Selection:
    job, notes = _with_classes(job, stages)
    scored = list(stages.blocks("scoring", partial(block_stages.score, job)))
    warnings = dict.fromkeys(message for result in scored for message in result["warnings"])
    names = job.classes or tuple(range(max(result["columns"] for result in scored)))
    label, entropy, contradicted = (
        np.concatenate([job.work.load("blocks", number, key) for number in range(len(job.blocks))])
        for key in ("label", "entropy", "contradicted")
    )
    survivors = _filter(job, label, entropy, contradicted)
    classes = _plan_classes(job, np.bincount(label[survivors.kept], minlength=len(names)), stages)
    rows, weights, figures, difference, more = _choose(job, classes, stages)
    list(stages.blocks("writing", partial(block_stages.write, job)))
    wrong = None if job.output is None else Contradicted.count(label, contradicted, survivors.kept, rows)
    return Selection(
        indices=rows,
        weights=weights,
        num_rows=len(label),
        gradient_bound=float(sum(one.gradient_bound for one in figures)),
        gradient_error=length(difference),
        difference=difference,
        classes=names,
        figures=figures,
        notes=(
            *warnings,
            *notes,
            *more,
            *heavy_notes(figures, [str(names[one.label]) for one in figures]),
            *lost_class_notes(label, survivors.kept, names),
            *(() if wrong is None else wrong.notes()),
        ),
        rejected_counts=count_reasons(survivors.reason),
        entropy_ceiling=survivors.ceiling,
        contradicted=wrong,
    )


def _with_classes(job: SelectionJob, stages: _Stages) -> tuple[SelectionJob, tuple[str, ...]]:
    """The job with a name for each class, where the rows must be scanned for them, and notes on their order."""
    first = next(number for number, block in enumerate(job.blocks) if block.num_rows)
    numeric = np.issubdtype(validation.label_array(job.read_labels(first)[:1]).dtype, np.integer)
    if job.output is not None and numeric and job.output not in job.shards.names:
        return job, ()
    found: set[Any] = set()
    for result in stages.blocks("scanning labels", partial(block_stages.scan_labels, job)):
        found.update(result["labels"])
    labels = np.unique(np.array(sorted(found)))
    if job.output is None:
        return replace(job, classes=validation.any_labels(labels).names), ()
    classes, notes = validation.column_classes(labels, job.widths[job.output], job.shards.names.get(job.output))
    return replace(job, classes=classes), notes


def _filter(job: SelectionJob, label: np.ndarray, entropy: np.ndarray, contradicted: np.ndarray) -> Survivors:
    """The outcome of the filter, which is also saved block by block."""
    if job.output is None:
        survivors = Survivors(np.full(len(label), Reason.KEPT, dtype=np.int8), np.inf)
    else:
        survivors = filter_rows(entropy, label, np.where(contradicted, -1, label), job.options)
    for number, block in enumerate(job.blocks):
        rows = slice(block.first_row, block.first_row + block.num_rows)
        job.work.save("blocks", number, reason=survivors.reason[rows])
    return survivors


def _plan_classes(job: SelectionJob, kept: np.ndarray, stages: _Stages) -> tuple[ClassPlan, ...]:
    """How each class is selected from, given its survivors (c,); large classes are divided."""
    present = np.flatnonzero(kept)
    targets = class_targets(job.options, kept[present], kept[present].astype(np.float64))
    classes = tuple(
        ClassPlan(int(label), place, int(kept[label]), target.count, target.bound)
        for place, (label, target) in enumerate(zip(present, targets, strict=True))
    )
    if not any(job.wanted_parts(plan.size) > 1 for plan in classes):
        return tuple(replace(plan, first_part=place) for place, plan in enumerate(classes))
    list(stages.blocks("sampling", partial(block_stages.sample, job, classes)))
    planned, first = [], 0
    divided = stages.parts("dividing", partial(part_stages.divide, job, classes), len(classes))
    for plan, result in zip(classes, divided, strict=True):
        plan = replace(plan, first_part=first)
        if result:
            splits, shares = Splits(result["splits"]), tuple(result["shares"])
            plan = replace(plan, splits=splits, shares=shares, picks_in_sample=result["picks"])
        planned.append(plan)
        first += len(plan.parts)
    job.work.remove("sample")
    return tuple(planned)


def _choose(
    job: SelectionJob, classes: tuple[ClassPlan, ...], stages: _Stages
) -> tuple[np.ndarray, np.ndarray, tuple[ClassFigures, ...], np.ndarray, list[str]]:
    """Both rounds and the assignment of all points: rows, weights, figures, summed gradient difference, notes."""
    num_parts = sum(len(plan.parts) for plan in classes)
    sizes = np.zeros(num_parts, dtype=np.int64)
    for result in stages.blocks("sorting", partial(block_stages.sort, job, classes)):
        for part, size in result["sizes"]:
            sizes[part] += size
    wanted = tuple(
        count
        for plan in classes
        for count in part_stages.num_candidates(job, plan, sizes[plan.parts.start : plan.parts.stop])
    )
    first = list(stages.parts("choosing", partial(part_stages.select_local, job, classes, wanted), num_parts))
    merged = list(stages.parts("merging", partial(part_stages.merge_candidates, job, classes), len(classes)))
    assigned = list(stages.parts("assigning", partial(part_stages.assign_points, job, classes), num_parts))
    notes = [note for result in (*first, *merged) for note in result.get("notes", ())]
    figures, picks = [], []
    difference = np.zeros(1)
    for plan in classes:
        rows, capped = part_stages.picks_of(job, plan)
        weights = capped.weights
        picks.append((rows, np.arange(len(rows)), weights))
        local = [first[part] for part in plan.parts]
        measured = local if plan.splits is None else [assigned[part] for part in plan.parts]
        of_class = np.sum([np.array(result["difference"]) for result in measured], axis=0) + capped.difference
        difference = difference + of_class
        one = ClassFigures(
            label=plan.label,
            size=plan.size,
            distinct=sum(result["distinct"] for result in measured),
            selected=len(weights),
            weight=float(plan.size),
            gradient_bound=float(sum(result["bound"] for result in measured)) + capped.bound,
            gradient_error=length(of_class),
            heaviest=float(weights.max() / plan.size),
            method=Method(next(result["method"] for result in local if "method" in result)),
            exchanges=sum(result.get("exchanges", 0) for result in (*local, merged[plan.place])),
            capped=capped.number,
            cap_bound=capped.bound,
        )
        figures.append(one)
        if plan.splits is not None:
            name = plan.label if job.classes is None else job.classes[plan.label]
            notes.append(f"class {name}: {plan.size:,} rows selected from in {len(plan.parts)} parts, in two rounds")
    row, rank, weight = (np.concatenate(column) for column in zip(*picks, strict=True))
    order = np.argsort(row)
    job.work.save("picks", 0, row=row[order], rank=rank[order], weight=weight[order])
    return row, weight, tuple(figures), difference, notes


class _Stages:
    """Runs the stages on an engine and reports overall progress."""

    def __init__(self, engine: Engine, num_blocks: int, progress: Progress) -> None:
        self.engine, self.num_blocks, self.progress = engine, num_blocks, progress
        self.done = 0.0
        self.seconds: dict[str, float] = {}

    def blocks(self, name: str, work: Work) -> Iterator[dict[str, Any]]:
        return self._run(name, self.engine.blocks(work, self.num_blocks), self.num_blocks)

    def parts(self, name: str, work: Work, count: int) -> Iterator[dict[str, Any]]:
        return self._run(name, self.engine.parts(work, count), count)

    def _run(self, name: str, results: Iterator[dict[str, Any]], count: int) -> Iterator[dict[str, Any]]:
        started, cost = time.perf_counter(), _COSTS.get(name, 1.0)
        for number, result in enumerate(results):
            self.progress.update(round(1000 * (self.done + cost * number / count) / _TOTAL_COST), 1000, name)
            yield result
        self.done += cost
        self.seconds[name] = time.perf_counter() - started
