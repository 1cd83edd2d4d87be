"""`synthsieve.run`: train, draw, filter, select, retrain, and measure on held-out labels whether it helped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.config import Metric, Settings, VariantSet
from synthsieve.data.dataset import Dataset
from synthsieve.data.labels import listed
from synthsieve.data.splits import Split
from synthsieve.defaults import settings_for
from synthsieve.errors import ConfigError
from synthsieve.evaluation.metrics import METRIC_NAMES
from synthsieve.evaluation.proof import Choice, Proof, visible_difference
from synthsieve.experiments.arms import BASELINE, cells_for
from synthsieve.experiments.jobs import default_workers
from synthsieve.experiments.outcome import Outcome, carry_out, keep_model, keep_synthetic
from synthsieve.experiments.rendering import NOTHING_TO_CHOOSE_ON, others_in
from synthsieve.experiments.table import Experiment, cross_fitting_of
from synthsieve.files import json_of, write_json
from synthsieve.learning.pace import seconds_per_step, shortened
from synthsieve.learning.run_folder import Origin
from synthsieve.lock import locked
from synthsieve.progress import Progress, Silent
from synthsieve.report.page import write_report
from synthsieve.report.verdict import Answer, answer_of
from synthsieve.review.run import open_run

PLANNED = 0.6  # the share of max_time for training steps; the rest is for other methods, drawing and the report
SHOWN_CLASSES = 8  # whose counts are listed before a run


@dataclass(frozen=True)
class RunResult:
    """What `run` left in a folder.

    Attributes:
        out: the folder.
        answer: whether it helped, in words, with reasons and what to do next.
        comparison: every variant against real data alone, on held-out labels.
        choice: the variant that validation preferred; None without labels to choose on.
        chosen: the variant whose model was kept.
        model: the folder of that model, for `synthsieve.load`.
        synthetic: files with the samples that it was trained on; empty where it was trained on real data alone.
        figures: pictures written.
        report: the report, a web page.
        table: all figures, as in OUT/table.json.
        warnings: sentences on figures that ran away in training.
    """

    out: Path
    answer: Answer
    comparison: Proof
    choice: Choice | None
    chosen: str
    model: Path
    synthetic: list[Path]
    figures: list[Path]
    report: Path
    table: dict[str, Any]
    warnings: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "out": str(self.out),
            "answer": str(self.answer),
            "reasons": list(self.answer.reasons),
            "chosen": self.chosen,
            "words": choice_in_words(self.choice),
            "model": str(self.model),
            "synthetic": [str(path) for path in self.synthetic],
            "proof": self.comparison.as_dict(),
            "metrics": self.table["metrics"],
            "groups": self.table["groups"],
            "choice": None if self.choice is None else self.choice.as_dict(),
            "table": str(self.out / "table.json"),
            "figures": [str(path) for path in self.figures],
            "report": str(self.report),
            "drifts": self.warnings,
        }

    def lines(self) -> list[str]:
        """What a person reads at the end of a run: the table, the answer, and what to do with it."""
        lines = ["", self.comparison.table(others_in(self.table)), *self.answer.lines(), ""]
        lines += [f"samples it was trained on, with weights: {path}" for path in self.synthetic]
        return [
            *lines,
            f"predict new examples:        synthsieve predict {self.out} NEW -o predictions.csv",
            f"read the report:             {self.report}",
            f"save the synthetic data:     synthsieve export {self.out}",
            f"browse samples in a browser: synthsieve serve {self.out}",
        ]

    def _repr_html_(self) -> str:
        return open_run(self.out)._repr_html_()


def run(
    source: str | Path,
    out: str | Path,
    *,
    label: str | None = None,
    text: str | None = None,
    schema: Path | None = None,
    features: Path | None = None,
    image_size: str | None = None,
    data_dir: Path | None = None,
    test: Path | None = None,
    validation: Path | None = None,
    labels: int | None = None,
    metric: Metric | str | None = None,
    variants: VariantSet | str | None = None,
    config: str | Path | None = None,
    overrides: Iterable[str] = (),
    seed: int | None = None,
    seeds: int | None = None,
    max_time: float | None = None,
    workers: int | None = None,
    progress: Callable[[str], Progress] | None = None,
    tell: Callable[[str], None] = print,
) -> RunResult:
    """Train on few labels and many unlabelled examples, add synthetic data in several ways, and measure what helps.

    The same call continues where an earlier one was interrupted.

    Args:
        source: the name of a built-in data set, or a path: .csv, .parquet, .npz, a folder of images or sounds.
        out: the folder to write to.
        label: the label column of a table.
        text: the text column of a table whose examples are sentences.
        schema: a TOML file with the types of columns that are guessed wrongly.
        features: a .npy of embeddings to learn from, a row for each row of the table.
        image_size: the side that images of a folder are brought to.
        data_dir: where the files of built-in data sets lie, or are downloaded to.
        test: a file of labelled examples to measure on, like the source.
        validation: a file of labelled examples to choose on, like the source.
        labels: use only so many of the labels, for experiments; None uses all.
        metric: what variants are chosen and compared by; None takes accuracy, or balanced accuracy with unbalanced
            classes.
        variants: "all" of the paper's table, "standard" or "quick"; None takes standard for tables and vectors,
            quick for images, sound and text, and all for built-in data.
        config: a preset's name or a TOML file; None chooses by the data.
        overrides: single settings, such as "learning.steps=2000".
        seed: decides every random choice.
        seeds: how often everything is repeated with another seed; with few labels, how often cross-fitting is repeated.
        max_time: seconds that the run should take, about; steps are left out to keep to it.
        workers: parallel processes; None takes one a core.
        progress: gives the progress bar of a stage by its name; None shows none.
        tell: is called with sentences worth reading before and during the run.
    """
    out, source, bars = Path(out), str(source), progress or _silent
    asked = _options(labels=labels, metric=metric, variants=variants, seed=seed)
    settings_for(source, config=config, overrides=overrides, asked=asked)  # errors in them show before data are read
    with locked(out):
        origin = Origin.of(
            source,
            label=label,
            text=text,
            schema=schema,
            features=features,
            image_size=image_size,
            data_dir=data_dir,
            test=test,
            validation=validation,
        )
        dataset = origin.load(bars("data"))
        settings = settings_for(source, dataset, config=config, overrides=overrides, asked=asked)
        workers = workers or default_workers()
        experiment = _plan(out, origin, settings, dataset, seeds)
        split = experiment.check(dataset)
        if max_time is not None:
            experiment, note = _within(experiment, dataset, max_time, workers)
            tell(note)
        for sentence in _beforehand(experiment, dataset, split):
            tell(sentence)
        outcome = carry_out(experiment, dataset, workers=workers, progress=bars("run"), looking=bars("look"))
        return _finish(experiment, outcome, bars)


def _options(
    *, labels: int | None, metric: Metric | str | None, variants: VariantSet | str | None, seed: int | None
) -> dict[str, Any]:
    """What was asked for, as settings."""
    given = {("data", "labels"): labels, ("proof", "metric"): metric, ("proof", "variants"): variants}
    asked: dict[str, Any] = {} if seed is None else {"seed": seed}
    for (section, name), value in given.items():
        if value is not None:
            asked.setdefault(section, {})[name] = str(value) if section == "proof" else value
    return asked


def _plan(out: Path, origin: Origin, settings: Settings, dataset: Dataset, seeds: int | None) -> Experiment:
    """What will be trained: one split for each seed, or cross-fitting where labels are few."""
    if not settings.augmentation.steps:
        settings = settings.with_second_phase()
    cross_fitting = cross_fitting_of(dataset, settings)
    times = seeds or (1 if cross_fitting is None else settings.proof.repeats)
    return Experiment(
        out,
        origin,
        settings,
        tuple(range(settings.seed, settings.seed + times)),
        cells_for(settings.proof),
        cross_fitting,
    )


def _within(experiment: Experiment, dataset: Dataset, max_time: float, workers: int) -> tuple[Experiment, str]:
    """The same with as few steps as `max_time` asks for, and a sentence that says so.

    The plan is kept in OUT/plan.json, so that the same command continues with the same number of steps.
    """
    if not max_time > 0:
        raise ConfigError(f"max_time must be above 0 seconds, but {max_time:g} came")
    path, asked = experiment.out / "plan.json", experiment.settings
    share = _stored_share(path, max_time)
    if share is None:
        jobs = experiment.jobs(dataset)
        needed = seconds_per_step(dataset, asked) * sum(job.steps for job in jobs) / min(workers, len(jobs))
        share = min(1.0, PLANNED * max_time / needed)
        write_json(path, {"max_time": max_time, "share": share})
    settings = shortened(asked, share) if share < 1 else asked
    note = f"{settings.learning.steps:,} of {asked.learning.steps:,} steps a model, to take about {max_time:,.0f} s"
    return replace(experiment, settings=settings), note


def _stored_share(path: Path, max_time: float) -> float | None:
    """The share of steps that an interrupted run of the same command was planned with; None without any."""
    try:
        stored = json_of(path.read_text(encoding="utf-8"))
        share = float(stored["share"])
        return share if stored["max_time"] == max_time and 0 < share <= 1 else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _beforehand(experiment: Experiment, dataset: Dataset, split: Split) -> list[str]:
    """What a user should know before a long run: the data, how they are used, and what can be seen at all."""
    counts = np.bincount(dataset.train.y[split.labeled], minlength=dataset.num_classes)
    named = [f"{name} {count:,}" for name, count in zip(dataset.classes, counts.tolist(), strict=True)]
    shown = ", ".join(named[:SHOWN_CLASSES]) + (", ..." if len(named) > SHOWN_CLASSES else "")
    sentences = [*dataset.notes]
    sentences.append(
        f"{dataset.name}: {len(split.labeled):,} labels of {dataset.num_classes} classes ({shown}), "
        f"{len(split.unlabeled):,} unlabelled examples"
    )
    measured, cross = experiment.measured_rows(dataset), experiment.cross_fitting
    if cross is None and not len(split.validation):
        sentences.append(f"no labelled rows choose: the last weights are kept; {len(split.test):,} rows measure")
    elif cross is None:
        sentences.append(f"{len(split.validation):,} labelled rows choose the model, {len(split.test):,} measure it")
    elif cross.measures:
        sentences.append(
            f"too few labels to hold some out: each of {cross.folds} parts of them measures once, another one chooses,"
            " and the others train; the model you get trains on all of them"
        )
    else:
        sentences.append(
            f"each of {cross.folds} parts of the labels chooses once while the others train; "
            f"{measured:,} test rows measure models of all labels"
        )
    sentences.append(
        f"with {measured:,} labels to measure on, differences below about "
        f"{100 * visible_difference(measured):.0f} points of accuracy cannot be seen"
    )
    metric = experiment.settings.proof.metric
    if metric is not Metric.ACCURACY:
        sentences.append(f"compared by {METRIC_NAMES[metric]}; --metric accuracy to change")
    rare = [name for name, count in zip(dataset.classes, counts.tolist(), strict=True) if count < 3]
    if rare and cross is not None:
        sentences.append(f"class {listed(rare)} has fewer than 3 labels: they all train, and it cannot be measured")
    sentences.append(f"training {experiment.size_in_words}")
    return sentences


def _finish(experiment: Experiment, outcome: Outcome, bars: Callable[[str], Progress]) -> RunResult:
    """Keep the chosen model and its samples, and write the report."""
    name = BASELINE.name if outcome.choice is None else outcome.choice.arm
    chosen = next(cell for cell in experiment.cells if cell.name == name)
    model, synthetic = keep_model(experiment, chosen), keep_synthetic(experiment, chosen)
    page = write_report(open_run(experiment.out), progress=bars("look"), drawing=bars("report"))
    return RunResult(
        out=experiment.out,
        answer=answer_of(outcome.report),
        comparison=outcome.proof,
        choice=outcome.choice,
        chosen=name,
        model=model,
        synthetic=synthetic,
        figures=outcome.figures,
        report=page.path,
        table=outcome.report,
        warnings=experiment.drifts(),
    )


def choice_in_words(choice: Choice | None) -> str:
    """Which variant was kept, and why."""
    return NOTHING_TO_CHOOSE_ON if choice is None else choice.in_words()


def _silent(name: str) -> Progress:
    return Silent()
