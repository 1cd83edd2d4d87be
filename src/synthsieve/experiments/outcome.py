"""From an experiment to what the user reads: the proof, the choice, the pool's quality, the figures, the model kept."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from synthsieve.data.dataset import Dataset
from synthsieve.evaluation.proof import Choice, Proof
from synthsieve.evaluation.quality import pool_quality
from synthsieve.evaluation.temperature import TemperatureRow, temperature_curve
from synthsieve.experiments.arms import Arm, Cell
from synthsieve.experiments.jobs import Task, judge_of, run_jobs
from synthsieve.experiments.rendering import as_markdown, write_figures
from synthsieve.experiments.table import Experiment
from synthsieve.export.class_folders import METADATA
from synthsieve.export.place import MANIFEST
from synthsieve.export.samples import write_items
from synthsieve.files import remove_stale_partials, write_json, write_text, written_atomically
from synthsieve.learning import additions
from synthsieve.learning.run_folder import RunFolder
from synthsieve.learning.shown import shown_items
from synthsieve.progress import Progress, Silent
from synthsieve.sampling.langevin import LangevinSettings

TEMPERATURES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.3)
CURVE_PER_CLASS = 100
KEPT_SUFFIXES = (".npz", ".csv", ".parquet", ".png")  # of OUT/synthetic
MODEL_FILES = ("split.json", "history.csv", "history.jsonl", "best.safetensors", "run.json")


@dataclass(frozen=True)
class Outcome:
    """What an experiment came to.

    Attributes:
        proof: every arm against real data alone, on test.
        choice: the arm that validation prefers; None without validation rows to compare on.
        report: all figures, as in table.json.
        figures: pictures written.
    """

    proof: Proof
    choice: Choice | None
    report: dict[str, Any]
    figures: list[Path]


def carry_out(
    experiment: Experiment,
    dataset: Dataset,
    *,
    workers: int,
    beside_paper: bool = False,
    progress: Progress | None = None,
    looking: Progress | None = None,
) -> Outcome:
    """Run what is not yet run, then write table.json, table.md and the figures; `experiment.check` comes before."""
    for folder in (experiment.out, experiment.out / "figures", experiment.out / "model"):
        remove_stale_partials(folder)
    tasks: list[Task] = [*experiment.jobs(dataset), *experiment.classical_jobs(dataset)]
    run_jobs(tasks, experiment.origin, workers=workers, progress=progress)
    proof = experiment.proof()
    first = RunFolder.open(experiment.first_phase(experiment.whole_units[0]))
    choice = experiment.choice()
    looking = looking or Silent()
    with closing(looking):
        shown = _shown(experiment)
        looking.update(0, 3, "measuring the pool")
        pool = additions.latest(experiment.folder(shown, experiment.whole_units[0])).pool
        assert pool is not None
        y = pool.y[pool.selected]
        quality = pool_quality(
            first.model(), first.encoding, dataset, first.split, x=pool.x, y=y, seed=first.settings.seed
        )
        looking.update(1, 3, "drawing at several temperatures")
        curve = _curve(experiment, first)
        looking.update(2, 3, "drawing the figures")
        figures = write_figures(
            experiment.out / "figures", first, curve, temperature=experiment.settings.augmentation.temperature
        )
        looking.update(3, 3)
    report = {
        "source_name": dataset.name,
        "classes": list(dataset.classes),
        **experiment.report(proof, choice),
        "quality": {"of": shown.name, **quality},
        "temperature": [vars(row) for row in curve],
    }
    write_json(experiment.out / "table.json", report)
    text = as_markdown(report, proof, experiment.cells, beside_paper=beside_paper)
    write_text(experiment.out / "table.md", text)
    return Outcome(proof, choice, report, figures)


def keep_model(experiment: Experiment, cell: Cell) -> Path:
    """The chosen arm's model, as a run of its own that `sample` and `evaluate` take: OUT/model."""
    source, target = experiment.folder(cell, experiment.whole_units[0]), experiment.out / "model"
    (target / "run.json").unlink(missing_ok=True)  # a folder half written is no run
    for name in MODEL_FILES:
        with written_atomically(target / name) as partial:
            partial.write_bytes((source / name).read_bytes())
    return target


def keep_synthetic(experiment: Experiment, cell: Cell) -> list[Path]:
    """The samples the chosen arm learned from, with weights and provenance: OUT/synthetic.npz, and in the form that
    people have them beside it. Nothing without a pool.
    """
    path = experiment.out / "synthetic.npz"
    _remove_stale(path.with_suffix(""))
    pool = additions.latest(experiment.folder(cell, experiment.whole_units[0])).pool if cell.pool_size else None
    if pool is None:
        return []
    rows = pool.selected
    run = RunFolder.open(experiment.folder(cell, experiment.whole_units[0]))
    columns = {name: getattr(pool, name)[rows] for name in ("y", "weight", "entropy", "rank", "chain_seed")}
    with written_atomically(path) as partial, partial.open("wb") as file:
        np.savez_compressed(
            file,
            x=pool.x,
            classes=np.asarray(run.split.classes),
            latent=pool.z[rows],
            model_hash=np.asarray(pool.origin["model_hash"]),
            **columns,
        )
    shown = write_items(
        path.with_suffix(""),
        shown_items(run, pool.x),
        [run.split.classes[y] for y in columns["y"]],
        label_name=run.origin.label or "label",
        weight=columns["weight"].tolist(),
        entropy=columns["entropy"].tolist(),
    )
    return [path, *shown]


def _remove_stale(stem: Path) -> None:
    """Remove what `keep_synthetic` wrote for an arm that was chosen before; whatever else people put here stays."""
    for suffix in KEPT_SUFFIXES:
        stem.with_suffix(suffix).unlink(missing_ok=True)
    if (stem / METADATA).is_file() and not (stem / MANIFEST).exists():  # sounds; not somebody's export
        shutil.rmtree(stem)


def _shown(experiment: Experiment) -> Cell:
    """The arm whose pool is looked at: entropy at its largest L, which keeps the x of all that pass the filter."""
    pooled = [cell for cell in experiment.cells if cell.pool_size]
    return max(pooled, key=lambda cell: (cell.arm is Arm.ENTROPY, cell.pool_size))


def _curve(experiment: Experiment, run: RunFolder) -> list[TemperatureRow]:
    judge = judge_of(experiment.judge) if RunFolder.exists(experiment.judge) else None

    def judged(x: torch.Tensor) -> np.ndarray:
        assert judge is not None
        labels: np.ndarray = judge(run.encoding.decode(x.numpy()))
        return labels

    sampling = run.settings.sampling
    return temperature_curve(
        run.model(),
        TEMPERATURES,
        per_class=CURVE_PER_CLASS,
        chains=LangevinSettings(sampling.num_steps, sampling.step_size),
        judge=None if judge is None else judged,
        seed=run.settings.seed,
    )
