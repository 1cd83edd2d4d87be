"""A table of arms: every seed's first phase once, every arm branched off it, and the proof made of what they got right.

OUT/judge/                 a classifier of all labels, for the purity of pools alone
OUT/seed-S/first-phase/    a run; OUT/seed-S/ARM/ those that branch off it
OUT/seed-S/supervised-only/, classical/METHOD.npz   the baselines: the twin's run, what classical methods got right
OUT/table.json, table.md   what came out
OUT/figures/               samples of each class, one class by entropy, the temperature curve
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.config import Ceiling, Objective, Settings
from synthsieve.data.dataset import UNLABELED, Dataset
from synthsieve.data.encoding import fit_encoding
from synthsieve.data.splits import Split, make_split
from synthsieve.errors import CheckpointError, ConfigError, DataError
from synthsieve.evaluation.proof import Choice, Proof, choose, prove
from synthsieve.experiments.arms import BASELINE, Arm, Cell, Group, settings_of
from synthsieve.experiments.classical import Answer
from synthsieve.experiments.classical_job import ClassicalJob
from synthsieve.experiments.classical_methods import CLASSICAL
from synthsieve.experiments.jobs import Job, right
from synthsieve.experiments.supervised import judge_settings
from synthsieve.learning.additions import read_figures
from synthsieve.learning.drift import drifts
from synthsieve.learning.history import read
from synthsieve.learning.run_folder import Origin, RunFolder, versions
from synthsieve.randomness import numpy_stream

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

    @property
    def size_in_words(self) -> str:
        """`13 arms, 5 baselines, 2 seeds`."""
        beside = [cell for cell in self.cells if cell.arm.group is Group.BASELINE]
        number = len(beside) + (len(CLASSICAL) if self.settings.proof.baselines else 0)
        counts = {"arm": len(self.cells) - len(beside), "baseline": number, "seed": len(self.seeds)}
        return ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items() if count)

    def classical(self, seed: int) -> Path:
        return self.out / f"seed-{seed}" / "classical"

    def jobs(self, dataset: Dataset) -> list[Job]:
        """The judge, the first phases, the twins, and the arms that wait for judge and first phase."""
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
                job = Job(f"{cell.name}, seed {seed}", self.folder(cell, seed), settings_of(cell, self._seeded(seed)))
                if cell.arm.branches_off:
                    after = (first,) if judge is None else (first, judge)
                    job = replace(job, after=after, branch_of=first, judge=judge)
                jobs.append(job)
        return jobs

    def classical_jobs(self, dataset: Dataset) -> list[ClassicalJob]:
        """The classical baselines, where the settings ask for them."""
        return [
            ClassicalJob.of(method, self.classical(seed), self._seeded(seed), dataset)
            for seed in self.seeds
            for method in CLASSICAL
            if self.settings.proof.baselines
        ]

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
        twins = [self.folder(cell, seed) for cell in self.cells for seed in self.seeds if cell.arm is Arm.SUPERVISED]
        for job in self.jobs(dataset):
            if RunFolder.exists(job.folder):
                run = RunFolder.open(job.folder)
                run.check_asked(job.settings, dataset)
                splits[job.folder] = run.split
            elif job.branch_of is None and job.folder not in twins:  # what the first phase can build, so can its twin
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
        candidates = {cell.name for cell in self.cells if cell.arm.branches_off}
        validation = {name: rows for name, rows in self._right("validation").items() if name in candidates}
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
                name: [float(rows.mean()) for rows in each]
                for name, each in self._right("validation").items()
                if len(each[0])
            },
            "groups": self.groups(),
            "arms": {cell.name: self._arm(cell) for cell in self.cells},
            "baselines": {name: [_of_the_choice(one.about) for one in each] for name, each in self._answers().items()},
        }

    def groups(self) -> dict[str, Group]:
        """What stands in the proof, in its order, and what kind of thing each is: the baselines first.

        A classical method that could not be fitted to the data of every seed is left out.
        """
        answered = [name for name, each in self._answers().items() if all(one.right for one in each)]
        ours = {cell.name: cell.arm.group for cell in self.cells}
        baselines = [*(name for name, group in ours.items() if group is Group.BASELINE), *answered]
        return {**dict.fromkeys(baselines, Group.BASELINE), **ours}

    def drifts(self) -> list[str]:
        """A sentence for each figure that ran away in a first phase, or in an arm and not before it."""
        told = []
        for seed in self.seeds:
            first = {drift.figure: drift for drift in drifts(read(self.first_phase(seed) / "history.jsonl"))}
            told += [f"first phase, seed {seed}: {drift}" for drift in first.values()]
            for cell in (cell for cell in self.cells if cell.arm is not Arm.FIRST_PHASE):
                mine = drifts(read(self.folder(cell, seed) / "history.jsonl"))
                told += [f"{cell.name}, seed {seed}: {drift}" for drift in mine if drift.figure not in first]
        return told

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
        """Of every arm and baseline, which examples of a part it got right, seed by seed."""
        ours = {cell.name: [right(self.folder(cell, seed), part) for seed in self.seeds] for cell in self.cells}
        answers = self._answers()
        return {name: ours.get(name) or [one.right[part] for one in answers[name]] for name in self.groups()}

    def _answers(self) -> dict[str, list[Answer]]:
        """What the classical baselines answered, seed by seed."""
        if not self.settings.proof.baselines:
            return {}
        found = {
            m.name: [Answer.read(self.classical(seed) / f"{m.slug}.npz") for seed in self.seeds] for m in CLASSICAL
        }
        for each in found.values():
            for seed, one in zip(self.seeds, each, strict=True):
                if one.about["split_hash"] != RunFolder.open(self.first_phase(seed)).split.hash:
                    raise CheckpointError(
                        f"{self.classical(seed)} is of another split than {self.first_phase(seed)}: "
                        "remove it, and the same command measures again"
                    )
        return found

    def _test_is_shared(self) -> bool:
        return RunFolder.open(self.first_phase(self.seeds[0])).split.test_is_own

    def _seeded(self, seed: int) -> Settings:
        return self.settings.model_copy(update={"seed": seed})

    def _can_be_judged(self, dataset: Dataset) -> bool:
        labels = self.settings.data.labels
        return labels is not None and int((dataset.train.y != UNLABELED).sum()) >= JUDGE_NEEDS * labels


def _without_time(selections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The figures that a second run of the same command gives again."""
    return [{name: value for name, value in figures.items() if name != "seconds"} for figures in selections]


def _of_the_choice(about: dict[str, Any]) -> dict[str, Any]:
    """Of what is known of a classical baseline, what a second run of the same command gives again."""
    return {name: about[name] for name in ("chosen", "grid", "unlabeled", "failed")}


def _best(folder: Path) -> dict[str, float]:
    """The row of the history whose weights were kept."""
    settings = RunFolder.open(folder).settings
    rows = read(folder / "history.jsonl")
    if settings.augmentation.steps:
        rows = [row for row in rows if row["step"] > settings.learning.steps]
    return max(
        rows, key=lambda row: (row.get("validation_accuracy", row["step"]), -row.get("validation_cross_entropy", 0))
    )
