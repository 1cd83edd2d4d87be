"""`synthsieve.run`: train, generate, filter, select, retrain, and measure on held-out labels whether it helped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch

from synthsieve.api.source import SourceOptions, read_source
from synthsieve.api.utility import own_student
from synthsieve.data.dataset import Dataset
from synthsieve.data.origin import Origin
from synthsieve.data.splits import Split
from synthsieve.errors import ConfigError
from synthsieve.evaluation.comparison import Choice, ComparisonResult, visible_difference
from synthsieve.evaluation.metrics import METRIC_NAMES
from synthsieve.experiments.arms import entries_for
from synthsieve.experiments.experiment import Experiment, cross_fitting_of
from synthsieve.experiments.workers import default_workers
from synthsieve.io.devices import AUTO, device_of
from synthsieve.io.files import parse_json, write_json
from synthsieve.io.locks import locked
from synthsieve.io.printable import listed
from synthsieve.io.progress import NullProgress, Progress, info
from synthsieve.results.labeled_set import write_labeled_set
from synthsieve.results.markdown import NOTHING_TO_CHOOSE_ON
from synthsieve.results.outcome import Outcome, keep_model, keep_synthetic, run_experiment
from synthsieve.results.report.page import write_report
from synthsieve.results.report.verdict import Answer, answer_of
from synthsieve.results.run import open_run
from synthsieve.results.table import ResultsTable
from synthsieve.settings import Metric, Settings, VariantSet
from synthsieve.training.data import TrainingData, class_shares, prior_of
from synthsieve.training.defaults import settings_for
from synthsieve.training.loop import seconds_per_step, shortened
from synthsieve.training.state import check_precision

PLANNED = 0.6  # the share of max_time for training steps; the rest is for baselines, sampling and the report
SHOWN_CLASSES = 8  # whose counts are listed before a run
TABLE_PRESETS = {"svhn": "svhn-table"}  # where the paper's table needs another preset than the best single model


@dataclass(frozen=True)
class RunResult:
    """The result of `run`."""

    out: Path  # the folder
    answer: Answer  # whether synthetic data helped, with reasons and what to do next
    comparison: ComparisonResult  # every variant against real data only, on held-out labels
    choice: Choice | None  # the variant that validation preferred; None without labels to choose on
    chosen: str  # the variant whose model was kept
    model: Path  # the folder of that model, for `synthsieve.load`
    synthetic: list[Path]  # files with the samples that it was trained on; empty where it was trained on real data only
    labeled_set: list[Path]  # for your own model: labelled rows, unlabelled rows with labels, and samples
    figures: list[Path]  # pictures written
    report: Path  # the HTML report
    table: ResultsTable  # all figures, as in OUT/table.json
    warnings: list[str]  # a sentence for each figure that diverged in training

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        table = self.table.as_dict()
        return {
            "out": str(self.out),
            "answer": str(self.answer),
            "reasons": list(self.answer.reasons),
            "chosen": self.chosen,
            "words": NOTHING_TO_CHOOSE_ON if self.choice is None else self.choice.describe(),
            "model": str(self.model),
            "synthetic": [str(path) for path in self.synthetic],
            "dataset": [str(path) for path in self.labeled_set],
            "paired_comparison": self.comparison.as_dict(),
            "metrics": table["metrics"],
            "groups": table["groups"],
            "choice": None if self.choice is None else self.choice.as_dict(),
            "usefulness": self.table.usefulness,
            "table": str(self.out / "table.json"),
            "figures": [str(path) for path in self.figures],
            "report": str(self.report),
            "drifts": self.warnings,
        }

    def lines(self) -> list[str]:
        """The summary that the command line prints: the table, the answer, and next steps."""
        lines = ["", self.comparison.table(self.table.other_methods), *self.answer.lines(), ""]
        lines += [f"samples it was trained on, with weights: {path}" for path in self.synthetic]
        return [
            *lines,
            f"train your own model on:     {self.labeled_set[-1]}",
            f"predict new examples:        synthsieve predict {self.out} NEW -o predictions.csv",
            f"read the report:             {self.report}",
            f"save the synthetic data:     synthsieve export {self.out}",
            f"browse samples in a browser: synthsieve serve {self.out}",
        ]

    def _repr_html_(self) -> str:
        return open_run(self.out)._repr_html_()


def run(
    source: Any,
    out: str | Path,
    *,
    metric: Metric | str | None = None,
    variants: VariantSet | str | None = None,
    seeds: int | None = None,
    max_time: float | None = None,
    workers: int | None = None,
    estimator: Any = None,
    device: str | torch.device = AUTO,
    progress: Callable[[str], Progress] | None = None,
    log: Callable[[str], None] = info,
    **options: Unpack[SourceOptions],
) -> RunResult:
    """Train on few labels and many unlabelled examples, add synthetic data in several ways, and measure what helps.

    The same call continues where an earlier one was interrupted.

    Args:
        source: name of a built-in data set, or a path: .csv, .parquet, .npz, a folder of images or sounds. Or a table
            in memory, with its label: a pandas or polars frame, an Arrow table, a `datasets.Dataset`, a dict of columns
            or a list of dicts, which is stored as OUT/rows.parquet.
        out: the folder to write to.
        metric: what variants are chosen and compared by; None takes accuracy, or balanced accuracy with unbalanced
            classes.
        variants: "all" of the paper's table, "extended" by further ways to use samples, "standard" or "quick"; None
            takes standard for tables and vectors, quick for images, sound and text, and all for built-in data sets.
        seeds: repeat everything with this many seeds; with few labels, how often cross-fitting is repeated.
        max_time: about how many seconds the run may take; steps are left out to fit.
        workers: parallel processes; None takes one per core, or one on a GPU; 0 runs everything in this process.
        estimator: your own model, trained on the data set of the run beside the common models; what to add is then
            chosen for it. As for `utility`, or its name as `module:factory`. Rows are given to it as arrays of numbers.
        device: as for `fit`.
        progress: returns the progress bar of a stage by its name; None shows none.
        log: called with messages before and during the run; by default they go to the logger `synthsieve`.
        options: how the data are read, and settings: see `synthsieve.api.source.SourceOptions`.
    """
    out, bar, torch_device = Path(out), progress or (lambda name: NullProgress()), device_of(device)
    given = {"metric": metric, "variants": variants}
    own = None if estimator is None else own_student(estimator)
    changes = {"comparison": {name: str(value) for name, value in given.items() if value is not None}}
    origin, dataset, settings = read_source(source, out, changes, progress=bar("data"), **options)
    check_precision(settings, torch_device)
    with locked(out):
        if workers is None:
            workers = default_workers(torch_device)
        experiment = replace(_plan(out, origin, settings, dataset, seeds), device=torch_device)
        split = experiment.check(dataset)
        if max_time is not None:
            experiment, note = _shorten_to(experiment, dataset, max_time, workers)
            log(note)
        for sentence in _describe_plan(experiment, dataset, split):
            log(sentence)
        outcome = run_experiment(
            experiment,
            dataset,
            workers=workers,
            usefulness=True,
            own=own,
            progress=bar("run"),
            measuring=bar("measure"),
        )
        return _finish(experiment, outcome, dataset, bar)


def reproduce(
    dataset: str,
    out: str | Path,
    *,
    preset: str | Path | None = None,
    seeds: int = 3,
    data_dir: Path | None = None,
    overrides: Iterable[str] | None = None,
    workers: int | None = None,
    device: str | torch.device = AUTO,
    progress: Callable[[str], Progress] | None = None,
) -> Outcome:
    """Train every variant of the paper's Table 1 on a built-in data set; write table.md, table.json and figures.

    The same call continues where an earlier one was interrupted. Arguments are those of `run`.
    """
    out, dataset, torch_device = Path(out), str(dataset), device_of(device)
    bar = progress or (lambda name: NullProgress())
    settings = settings_for(dataset, config=preset or TABLE_PRESETS.get(dataset), overrides=overrides or ())
    if not settings.augmentation.steps:
        settings = settings.with_retraining()
    if settings.comparison.variants is not VariantSet.EXTENDED:
        settings = settings.changed("comparison", variants=VariantSet.ALL)
    origin = Origin.of(dataset, data_dir=data_dir)
    check_precision(settings, torch_device)
    experiment = Experiment(out, origin, settings, tuple(range(seeds)), entries_for(settings), device=torch_device)
    with locked(out):
        data = origin.load(bar("data"))
        experiment.check(data)
        return run_experiment(
            experiment,
            data,
            workers=default_workers(torch_device) if workers is None else workers,
            beside_paper=dataset == "svhn",
            progress=bar("reproduce"),
            measuring=bar("measure"),
        )


def _plan(out: Path, origin: Origin, settings: Settings, dataset: Dataset, seeds: int | None) -> Experiment:
    """What to train: one split per seed, or cross-fitting where labels are few."""
    if not settings.augmentation.steps:
        settings = settings.with_retraining()
    cross_fitting = cross_fitting_of(dataset, settings)
    times = seeds or (1 if cross_fitting is None else settings.comparison.repeats)
    each = tuple(range(settings.seed, settings.seed + times))
    return Experiment(out, origin, settings, each, entries_for(settings), cross_fitting)


def _shorten_to(experiment: Experiment, dataset: Dataset, max_time: float, workers: int) -> tuple[Experiment, str]:
    """The experiment with few enough steps for `max_time`, and a sentence that says how many.

    The plan is kept in OUT/plan.json, so that the same command continues with the same number of steps.
    """
    if not max_time > 0:
        raise ConfigError(f"max_time must be above 0 seconds, got {max_time:g}", code="bad-max-time")
    path, full = experiment.out / "plan.json", experiment.settings
    share = _stored_share(path, max_time)
    if share is None:
        jobs = experiment.jobs(dataset)
        pace = seconds_per_step(TrainingData.prepare(dataset, full), full, device=experiment.device)
        needed = pace * sum(job.steps for job in jobs) / min(max(1, workers), len(jobs))
        share = min(1.0, PLANNED * max_time / needed)
        write_json(path, {"max_time": max_time, "share": share})
    settings = shortened(full, share) if share < 1 else full
    note = f"{settings.training.steps:,} of {full.training.steps:,} steps per model, to take about {max_time:,.0f} s"
    return replace(experiment, settings=settings), note


def _stored_share(path: Path, max_time: float) -> float | None:
    """The share of steps of an interrupted run of the same command; None if there is none."""
    try:
        stored = parse_json(path.read_text(encoding="utf-8"))
        share = float(stored["share"])
        return share if stored["max_time"] == max_time and 0 < share <= 1 else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _describe_plan(experiment: Experiment, dataset: Dataset, split: Split) -> list[str]:
    """What to know before a long run: the data, how they are used, and which differences can be detected."""
    counts = np.bincount(dataset.train.y[split.labeled], minlength=dataset.num_classes)
    named = [f"{name} {count:,}" for name, count in zip(dataset.classes, counts.tolist(), strict=True)]
    shown = ", ".join(named[:SHOWN_CLASSES]) + (", ..." if len(named) > SHOWN_CLASSES else "")
    measured, cross = experiment.measured_rows(dataset), experiment.cross_fitting
    if cross is None and not len(split.validation):
        use = f"no labelled rows for validation: the last weights are kept; {len(split.test):,} rows measure"
    elif cross is None:
        use = f"{len(split.validation):,} labelled rows choose the model, {len(split.test):,} measure it"
    elif cross.measures:
        use = (
            f"too few labels to hold some out: each of {cross.folds} parts of them measures once, another one chooses,"
            " and the others train; the final model trains on all of them"
        )
    else:
        use = (
            f"each of {cross.folds} parts of the labels chooses once while the others train; "
            f"{measured:,} test rows measure models trained on all labels"
        )
    sentences = [
        *dataset.notes,
        f"{dataset.name}: {len(split.labeled):,} labels of {dataset.num_classes} classes ({shown}), "
        f"{len(split.unlabeled):,} unlabelled examples",
        use,
        f"with {measured:,} labels to measure on, differences below about "
        f"{100 * visible_difference(measured):.0f} points of accuracy cannot be detected",
    ]
    metric = experiment.settings.comparison.metric
    if metric is not Metric.ACCURACY:
        sentences.append(f"compared by {METRIC_NAMES[metric]}; --metric accuracy to change")
    prior = prior_of(experiment.settings, class_shares(dataset.train.y[split.labeled], len(counts)), len(counts))
    if prior is not None and not experiment.settings.data.balanced:
        shares = ", ".join(f"{100 * share:.0f} %" for share in prior[:SHOWN_CLASSES])
        sentences.append(f"predictions assume class shares of {shares}; --class-prior labels or uniform to change")
    rare = [name for name, count in zip(dataset.classes, counts.tolist(), strict=True) if count < 3]
    if rare and cross is not None:
        sentences.append(f"class {listed(rare)} has fewer than 3 labels: all of them train, none measure")
    return [*sentences, f"training {experiment.describe_size}"]


def _finish(experiment: Experiment, outcome: Outcome, dataset: Dataset, bar: Callable[[str], Progress]) -> RunResult:
    """Keep the chosen model and its samples, and write the report."""
    table = outcome.table
    chosen = next(entry for entry in experiment.entries if entry.name == table.kept)
    model, synthetic = keep_model(experiment, chosen), keep_synthetic(experiment, chosen)
    labeled_set = write_labeled_set(experiment, dataset, chosen)
    page = write_report(open_run(experiment.out, device=experiment.device), progress=bar("report"))
    found = answer_of(table), table.paired_comparison, table.choice, table.kept
    return RunResult(
        experiment.out, *found, model, synthetic, labeled_set, outcome.figures, page.path, table, experiment.drifts()
    )
