"""What `run` and `reproduce` write at the end: table.json, table.md, figures, the kept model and its samples."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.evaluation.predict import draw_and_score
from synthsieve.evaluation.quality import TemperatureRow, pool_quality, temperature_curve
from synthsieve.evaluation.students import Student
from synthsieve.experiments.arms import Arm, TableEntry
from synthsieve.experiments.experiment import Experiment
from synthsieve.experiments.runner import oracle_of
from synthsieve.experiments.usefulness import measure_usefulness
from synthsieve.experiments.workers import Task, run_jobs
from synthsieve.io.files import atomic_write, remove_stale_partials, write_json, write_text
from synthsieve.io.progress import NullProgress, Progress
from synthsieve.models import generate
from synthsieve.models.calibration import Calibration, combine
from synthsieve.results.charts import svg
from synthsieve.results.export.directory import MANIFEST
from synthsieve.results.export.media import write_entropy_figure, write_samples_figure
from synthsieve.results.export.samples import write_items
from synthsieve.results.export.writers import METADATA
from synthsieve.results.markdown import as_markdown
from synthsieve.results.readable import shown_items
from synthsieve.results.report.charts.training import temperature_chart
from synthsieve.results.table import FILE, ResultsTable
from synthsieve.sampling.langevin import LangevinSettings
from synthsieve.selection.entropy import entropy_of_logits
from synthsieve.training import extra_data
from synthsieve.training.run_dir import RunDirectory

TEMPERATURES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.3)
CURVE_PER_CLASS = 100
FIGURE_CLASS = 3  # shown by entropy, as in the paper's Fig. 1b
SAMPLE_SUFFIXES = (".npz", ".csv", ".parquet", ".png")  # of OUT/synthetic
MODEL_FILES = ("split.json", "history.csv", "history.jsonl", "best.safetensors", "run.json")


@dataclass(frozen=True)
class Outcome:
    """The result of an experiment."""

    table: ResultsTable  # all figures, as in table.json
    figures: list[Path]  # pictures written


def run_experiment(
    experiment: Experiment,
    dataset: Dataset,
    *,
    workers: int,
    beside_paper: bool = False,
    usefulness: bool = False,
    own: Student | None = None,
    progress: Progress | None = None,
    measuring: Progress | None = None,
) -> Outcome:
    """Run what has not been run yet, then write table.json, table.md and the figures.

    With `usefulness`, common models are trained on the data set of the run, too, unless the settings leave out
    baselines, and so is the user's `own`. `experiment.check` comes before. `progress` is that of training, `measuring`
    that of what follows.
    """
    for folder in (experiment.out, experiment.out / "figures", experiment.out / "model"):
        remove_stale_partials(folder)
    tasks: list[Task] = [*experiment.jobs(dataset), *experiment.classical_jobs(dataset)]
    run_jobs(tasks, experiment.origin, workers=workers, progress=progress)
    paired_comparison, choice = experiment.paired_comparison(), experiment.choice()
    first = RunDirectory.open(experiment.pretrained(experiment.whole_units[0]))
    # The variant whose pool is measured: entropy at its largest L, which stores x of all samples that are kept.
    pooled = [entry for entry in experiment.entries if entry.pool_size]
    entry = max(pooled, key=lambda entry: (entry.arm is Arm.ENTROPY, entry.pool_size))
    measuring = measuring or NullProgress()
    with closing(measuring):
        measuring.update(0, 3, "measuring the pool")
        pool = extra_data.latest(experiment.folder(entry, experiment.whole_units[0])).pool
        assert pool is not None
        y, seed = pool.y[pool.selected], first.settings.seed
        model = first.load_model(device=experiment.device)
        quality = pool_quality(model, first.encoding, dataset, first.split, x=pool.x, y=y, seed=seed)
        measuring.update(1, 3, "sampling at several temperatures")
        sampling = first.settings.sampling
        curve = temperature_curve(
            model,
            first.encoding,
            TEMPERATURES,
            per_class=CURVE_PER_CLASS,
            chains=LangevinSettings(sampling.num_steps, sampling.step_size),
            oracle=oracle_of(experiment.oracle, experiment.device) if RunDirectory.exists(experiment.oracle) else None,
            seed=seed,
        )
        measuring.update(2, 3, "drawing the figures")
        temperature = experiment.settings.augmentation.temperature
        figures = write_figures(experiment.out / "figures", first, curve, temperature=temperature)
        measuring.update(3, 3)
    table = ResultsTable.model_validate(
        {
            "source_name": dataset.name,
            "classes": list(dataset.classes),
            **experiment.report(paired_comparison, choice),
            "quality": {"of": entry.name, **quality},
            "temperature": curve,
        }
    )
    if usefulness and (experiment.settings.comparison.baselines or own is not None):
        kept = next(entry for entry in experiment.entries if entry.name == table.kept)
        with closing(measuring):
            found = measure_usefulness(experiment, dataset, kept, own=own, progress=measuring)
        table = table.model_copy(update={"usefulness": found})
    write_json(experiment.out / FILE, table.as_dict())
    write_text(experiment.out / "table.md", as_markdown(table, beside_paper=beside_paper))
    return Outcome(table, figures)


def keep_model(experiment: Experiment, entry: TableEntry) -> Path:
    """Copy the model of the chosen variant to OUT/model, as a run that `predict`, `sample` and `evaluate` read."""
    source, target = experiment.folder(entry, experiment.whole_units[0]), experiment.out / "model"
    (target / "run.json").unlink(missing_ok=True)  # without it, a partial copy is not a run
    write_json(target / "calibration.json", _calibration_of(experiment, entry).as_dict())
    for name in MODEL_FILES:
        with atomic_write(target / name) as partial:
            partial.write_bytes((source / name).read_bytes())
    return target


def _calibration_of(experiment: Experiment, entry: TableEntry) -> Calibration:
    """The calibration of a variant's model: its own, or by cross-fitting if no labels were left to validate it."""
    own = RunDirectory.open(experiment.folder(entry, experiment.whole_units[0])).load_model().calibration
    folds = [unit for unit in experiment.units if unit.fold is not None]
    if own.rows or not folds:
        return own
    models = [RunDirectory.open(experiment.folder(entry, unit)).load_model() for unit in folds]
    return replace(combine([model.calibration for model in models]), offsets=own.offsets, class_prior=own.class_prior)


def keep_synthetic(experiment: Experiment, entry: TableEntry) -> list[Path]:
    """Write the samples that the chosen variant was trained on: OUT/synthetic.npz, and readable files next to it.

    Nothing is written for a variant without a pool.
    """
    path = experiment.out / "synthetic.npz"
    stem = path.with_suffix("")
    for suffix in SAMPLE_SUFFIXES:  # of a variant chosen before
        path.with_suffix(suffix).unlink(missing_ok=True)
    if (stem / METADATA).is_file() and not (stem / MANIFEST).exists():  # sounds, not an export
        shutil.rmtree(stem)
    folder = experiment.folder(entry, experiment.whole_units[0])
    pool = extra_data.latest(folder).pool if entry.pool_size else None
    if pool is None:
        return []
    rows, run = pool.selected, RunDirectory.open(folder)
    columns = {name: getattr(pool, name)[rows] for name in ("y", "weight", "entropy", "rank", "chain_seed")}
    arrays = {"classes": np.asarray(run.split.classes), "model_hash": np.asarray(pool.origin["model_hash"]), **columns}
    with atomic_write(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, x=pool.x, latent=pool.z[rows], **arrays)
    readable = write_items(
        stem,
        shown_items(run, pool.x),
        [run.split.classes[y] for y in columns["y"]],
        label_name=run.origin.label or "label",
        weight=columns["weight"].tolist(),
        entropy=columns["entropy"].tolist(),
    )
    return [path, *readable]


def write_figures(folder: Path, run: RunDirectory, curve: list[TemperatureRow], *, temperature: float) -> list[Path]:
    """Write the temperature curve and, for images of one or three channels, the paper's Fig. 1a and 1b.

    Samples are drawn from the run's model at `temperature`.
    """
    written = [folder / "temperature.svg"]
    svg.write(written[0], temperature_chart(curve))
    input_spec, sampling = run.encoding.input_spec, run.settings.sampling
    if input_spec.kind == Kind.IMAGE and input_spec.shape[0] in (1, 3):
        chains = LangevinSettings(sampling.num_steps, sampling.step_size, temperature)
        written = [*_write_samples(folder, run, chains), *written]
    return written


def _write_samples(folder: Path, run: RunDirectory, chains: LangevinSettings) -> list[Path]:
    """Fig. 1a, a row for each class; Fig. 1b, one class by entropy."""
    samples, by_entropy = folder / "fig-1a-samples.png", folder / "fig-1b-by-entropy.png"
    model, encoding, seed = run.load_model(), run.encoding, run.settings.seed
    drawn = generate.draw_samples(model, encoding, per_class=20, chains=chains, seed=seed)
    write_samples_figure(samples, drawn.x, drawn.y, columns=20)
    y = np.full(generate.BLOCK, min(FIGURE_CLASS, model.num_classes - 1))
    seeds = generate.chain_seeds(seed, y)
    found = draw_and_score(model, encoding, y, seeds, chains=chains, keep_x=True)
    write_entropy_figure(by_entropy, found["x"], entropy_of_logits(found["logits_x"]), columns=20, rows=5)
    return [samples, by_entropy]
