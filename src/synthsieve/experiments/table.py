"""A table of arms: every seed's first phase once, every arm branched off it, and the proof made of what they got right.

OUT/judge/                 a classifier of all labels, for the purity of pools alone
OUT/seed-S/first-phase/    a run; OUT/seed-S/ARM/ those that branch off it
OUT/table.json, table.md   what came out
OUT/figures/               samples of each class, one class by entropy, the temperature curve
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.config import Ceiling, NetworkKind, Objective, Settings
from synthsieve.data.dataset import UNLABELED, Dataset
from synthsieve.data.encoding import fit_encoding
from synthsieve.data.splits import Split, make_split
from synthsieve.errors import ConfigError, DataError
from synthsieve.evaluation.proof import Choice, Proof, choose, prove
from synthsieve.experiments.arms import BASELINE, Arm, Cell, settings_of
from synthsieve.experiments.jobs import Job, right
from synthsieve.learning.additions import read_figures
from synthsieve.learning.history import read
from synthsieve.learning.run_folder import Origin, RunFolder, versions
from synthsieve.randomness import numpy_stream

JUDGE_STEPS = 2500
# Purity needs a judge who knows more than the model does.
JUDGE_NEEDS = 2


@dataclass(frozen=True)
class Experiment:
    """What is compared, on what, and where.

    Attributes:
        out: the folder.
        origin: where the data come from.
        settings: of every arm; the seed in it is not used.
        seeds: each with its own split, weights and batches.
        cells: the arms, with their pool sizes; the baseline among them.
    """

    out: Path
    origin: Origin
    settings: Settings
    seeds: tuple[int, ...]
    cells: tuple[Cell, ...]

    def first_phase(self, seed: int) -> Path:
        return self.out / f"seed-{seed}" / "first-phase"

    def folder(self, cell: Cell, seed: int) -> Path:
        return self.first_phase(seed) if cell.arm is Arm.FIRST_PHASE else self.out / f"seed-{seed}" / cell.slug

    @property
    def judge(self) -> Path:
        return self.out / "judge"

    def jobs(self, dataset: Dataset) -> list[Job]:
        """The judge, the first phases, and the arms that wait for both."""
        jobs = []
        judge = self.judge if self._can_be_judged(dataset) else None
        if judge is not None:
            jobs.append(Job("the judge", judge, judge_settings(self._seeded(self.seeds[0]))))
        for seed in self.seeds:
            settings = self._seeded(seed)
            jobs.append(Job(f"first phase, seed {seed}", self.first_phase(seed), settings.first_phase()))
        for cell in (cell for cell in self.cells if cell.arm is not Arm.FIRST_PHASE):
            for seed in self.seeds:
                first = self.first_phase(seed)
                after = (first,) if judge is None else (first, judge)
                settings = settings_of(cell, self._seeded(seed))
                jobs.append(Job(f"{cell.name}, seed {seed}", self.folder(cell, seed), settings, after, first, judge))
        return jobs

    def check(self, dataset: Dataset) -> Split:
        """Refuse what cannot be split, built, proved or gone on with, before anything is written.

        Returns the split of the first seed.
        """
        there = next(path for path in (self.out, *self.out.absolute().parents) if path.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise ConfigError(f"cannot write to {self.out}: {there} is no folder that may be written to; give another")
        settings = self.settings
        if settings.learning.objective is Objective.SUPERVISED:
            raise ConfigError("learning.objective=supervised trains no generator to draw from: use fit for the twin")
        if not settings.learning.steps <= settings.augment_from_step < settings.total_steps:
            raise ConfigError(
                f"augmentation.augment_from_step={settings.augment_from_step} must lie in the second phase, "
                f"{settings.learning.steps} to {settings.total_steps - 1}: arms branch off where it begins"
            )
        splits = {}
        for job in self.jobs(dataset):
            if RunFolder.exists(job.folder):
                run = RunFolder.open(job.folder)
                run.check_asked(job.settings, dataset)
                splits[job.folder] = run.split
            elif job.branch_of is None:
                splits[job.folder] = self._planned(job, dataset)
        split = splits[self.first_phase(self.seeds[0])]
        if not len(split.validation) and settings.augmentation.entropy_ceiling is Ceiling.AUTO:
            raise ConfigError(
                'augmentation.entropy_ceiling="auto" needs validation rows to search on: keep some, or give a number'
            )
        return split

    def proof(self) -> Proof:
        """Every arm against real data alone, on test."""
        return prove(
            self._right("test"),
            baseline=BASELINE.name,
            shared_items=self._test_is_shared(),
            generator=numpy_stream(0, "proof"),
        )

    def choice(self) -> Choice | None:
        """The arm that validation prefers, or real data alone; None without two validation rows a seed to compare."""
        # The first phase alone was the best of several evaluations, an arm of few: not a fair candidate.
        validation = {name: rows for name, rows in self._right("validation").items() if name != Arm.FIRST_PHASE}
        if min(len(rows) for rows in validation[BASELINE.name]) < 2:
            return None
        return choose(validation, baseline=BASELINE.name, shared_items=False)

    def report(self, proof: Proof, choice: Choice | None) -> dict[str, Any]:
        """All figures with settings, seeds and versions, for JSON."""
        first = RunFolder.open(self.first_phase(self.seeds[0]))
        return {
            "source": self.origin.source,
            "settings": self.settings.model_dump(mode="json", exclude={"seed"}),
            "seeds": list(self.seeds),
            "versions": versions(),
            "split_hashes": {str(seed): RunFolder.open(self.first_phase(seed)).split.hash for seed in self.seeds},
            "labeled": len(first.split.labeled),
            "unlabeled": len(first.split.unlabeled),
            "validation_examples": len(first.split.validation),
            "judge_accuracy": float(right(self.judge, "test").mean()) if RunFolder.exists(self.judge) else None,
            "first_phase": {str(seed): _best(self.first_phase(seed)) for seed in self.seeds},
            "proof": proof.as_dict(),
            "choice": None if choice is None else choice.as_dict(),
            "validation": {
                cell.name: [float(right(self.folder(cell, seed), "validation").mean()) for seed in self.seeds]
                for cell in self.cells
                if len(right(self.folder(cell, self.seeds[0]), "validation"))
            },
            "arms": {cell.name: self._arm(cell) for cell in self.cells},
        }

    def _arm(self, cell: Cell) -> dict[str, Any]:
        folders = [self.folder(cell, seed) for seed in self.seeds]
        return {
            "arm": str(cell.arm),
            "pool_size": cell.pool_size,
            "best": [_best(folder) for folder in folders],
            "selections": [_without_time(read_figures(folder)) for folder in folders],
        }

    def _planned(self, job: Job, dataset: Dataset) -> Split:
        """The split that a first phase will have, once it is known that its networks can be built."""
        data = job.settings.data
        split = make_split(
            dataset,
            labels=data.labels,
            balanced=data.balanced,
            validation_fraction=data.validation_fraction,
            test_fraction=data.test_fraction,
            seed=job.settings.seed,
        )
        if len(split.test) < 2:
            raise DataError(
                f"{dataset.name}: a proof needs at least 2 test examples, but {len(split.test)} came: "
                "label more rows, or raise data.test_fraction"
            )
        encoding = fit_encoding(dataset, np.concatenate([split.labeled, split.unlabeled]))
        RunFolder(job.folder, self.origin, job.settings, split, encoding, threads=1).new_learner()
        return split

    def _right(self, part: str) -> dict[str, list[np.ndarray]]:
        return {cell.name: [right(self.folder(cell, seed), part) for seed in self.seeds] for cell in self.cells}

    def _test_is_shared(self) -> bool:
        return RunFolder.open(self.first_phase(self.seeds[0])).split.test_is_own

    def _seeded(self, seed: int) -> Settings:
        return self.settings.model_copy(update={"seed": seed})

    def _can_be_judged(self, dataset: Dataset) -> bool:
        labels = self.settings.data.labels
        return labels is not None and int((dataset.train.y != UNLABELED).sum()) >= JUDGE_NEEDS * labels


def judge_settings(settings: Settings) -> Settings:
    """The independent classifier: all labels, nothing else, the label tower's network alone."""
    model = settings.model
    if model.label_latent_dim:
        model = model.model_copy(
            update={
                "encoder": model.encoder if model.label_encoder is NetworkKind.AUTO else model.label_encoder,
                "encoder_width": model.label_width,
                "latent_dim": model.label_latent_dim,
                "label_latent_dim": 0,
            }
        )
    learning = settings.learning.model_copy(
        update={"objective": Objective.SUPERVISED, "steps": min(JUDGE_STEPS, settings.learning.steps)}
    )
    data = settings.data.model_copy(update={"labels": None})
    return settings.first_phase().model_copy(update={"data": data, "model": model, "learning": learning})


def _without_time(selections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The figures that a second run of the same command gives again."""
    return [{name: value for name, value in figures.items() if name != "seconds"} for figures in selections]


def _best(folder: Path) -> dict[str, float]:
    """The row of the history whose weights were kept."""
    settings = RunFolder.open(folder).settings
    rows = read(folder / "history.jsonl")
    if settings.augmentation.steps:
        rows = [row for row in rows if row["step"] > settings.learning.steps]
    return max(
        rows, key=lambda row: (row.get("validation_accuracy", row["step"]), -row.get("validation_cross_entropy", 0))
    )
