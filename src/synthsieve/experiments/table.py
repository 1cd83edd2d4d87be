"""A table of arms: every seed's first phase once, every arm branched off it, and the comparison of their answers.

With few labels the arms are also trained on parts of them, so that the parts held out can choose and measure.

OUT/judge/                 a classifier of all labels, for the purity of pools alone
OUT/seed-S/first-phase/    a run; OUT/seed-S/ARM/ those that branch off it
OUT/seed-S/supervised-only/, classical/METHOD.npz   the baselines: the twin's run, what classical methods answered
OUT/seed-S/fold-K/         the same with part K of the labels held out, where there is cross-fitting
OUT/table.json, table.md   what came out
OUT/figures/               samples of each class, one class by entropy, the temperature curve
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.config import Ceiling, Keep, Metric, Objective, Settings
from synthsieve.data.dataset import UNLABELED, Dataset
from synthsieve.data.encoding import fit_encoding
from synthsieve.data.splits import Split, cross_fits, has_outside_test, split_dataset
from synthsieve.errors import CheckpointError, ConfigError, DataError
from synthsieve.evaluation.answers import Answers, concatenate
from synthsieve.evaluation.metrics import mean_metrics, measure, weighted_metric
from synthsieve.evaluation.proof import Choice, Proof, choose, prove
from synthsieve.experiments.arms import BASELINE, Arm, Cell, Group, settings_of
from synthsieve.experiments.classical import Answer
from synthsieve.experiments.classical_job import ClassicalJob
from synthsieve.experiments.classical_methods import CLASSICAL
from synthsieve.experiments.jobs import Job, answers_of
from synthsieve.experiments.supervised import judge_settings
from synthsieve.learning.additions import read_figures
from synthsieve.learning.drift import drifts
from synthsieve.learning.history import read
from synthsieve.learning.run_folder import Origin, RunFolder, versions
from synthsieve.randomness import numpy_stream

# Purity needs a judge who knows more than the model does.
JUDGE_NEEDS = 2
CHOSEN = "chosen on validation"  # part by part: how the choice itself does on rows that it did not see


@dataclass(frozen=True)
class Unit:
    """A split that every arm is trained on: a seed, and with cross-fitting the part of the labels that is held out.

    Without a part (`fold` None) it is the seed's one split or, with cross-fitting, every label trains.
    """

    seed: int
    fold: int | None = None

    @property
    def path(self) -> Path:
        own = Path(f"seed-{self.seed}")
        return own if self.fold is None else own / f"fold-{self.fold}"

    def __str__(self) -> str:
        return f"seed {self.seed}" if self.fold is None else f"seed {self.seed}, part {self.fold + 1}"


@dataclass(frozen=True)
class CrossFitting:
    """How few labels both train, choose and measure: each part of them is held out in turn.

    Attributes:
        folds: the number of parts.
        measures: whether the parts also measure, there being no test set outside the labels. Then in each turn one part
            measures, the next one chooses and the others train; otherwise one part chooses and the others train.
    """

    folds: int
    measures: bool


@dataclass(frozen=True)
class Experiment:
    """What is compared, on what, and where.

    Attributes:
        out: the folder.
        origin: where the data come from.
        settings: of every arm; the seed in it is not used.
        seeds: each with its own split, weights and batches.
        cells: the arms, with their pool sizes; the baseline among them.
        cross_fitting: how parts of the labels are held out in turn; None with one split a seed.
    """

    out: Path
    origin: Origin
    settings: Settings
    seeds: tuple[int, ...]
    cells: tuple[Cell, ...]
    cross_fitting: CrossFitting | None = None

    @property
    def whole_units(self) -> list[Unit]:
        """The units without a part held out; where parts measure, the first seed's alone: its models are kept."""
        measures = self.cross_fitting is not None and self.cross_fitting.measures
        return [Unit(seed) for seed in (self.seeds[:1] if measures else self.seeds)]

    @property
    def units(self) -> list[Unit]:
        """Everything that each arm is trained on."""
        folds = 0 if self.cross_fitting is None else self.cross_fitting.folds
        return [*self.whole_units, *(Unit(seed, fold) for seed in self.seeds for fold in range(folds))]

    def first_phase(self, unit: Unit) -> Path:
        return self.out / unit.path / "first-phase"

    def folder(self, cell: Cell, unit: Unit) -> Path:
        return self.first_phase(unit) if cell.arm is Arm.FIRST_PHASE else self.out / unit.path / cell.slug

    @property
    def judge(self) -> Path:
        return self.out / "judge"

    @property
    def size_in_words(self) -> str:
        """`13 variants, 7 baselines, 2 seeds`."""
        beside = [cell for cell in self.cells if cell.arm.group is Group.BASELINE]
        number = len(beside) + (len(CLASSICAL) if self.settings.proof.baselines else 0)
        counts = {"variant": len(self.cells) - len(beside), "baseline": number}
        if self.cross_fitting is None:
            counts["seed"] = len(self.seeds)
        words = [f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items() if count]
        if self.cross_fitting is not None:
            times = "" if len(self.seeds) == 1 else f", {len(self.seeds)} times"
            words.append(f"cross-fitting over {self.cross_fitting.folds} parts of the labels{times}")
        return ", ".join(words)

    def classical(self, unit: Unit) -> Path:
        return self.out / unit.path / "classical"

    def jobs(self, dataset: Dataset) -> list[Job]:
        """The judge, the first phases, the twins, and the arms that wait for judge and first phase."""
        jobs = []
        judge = self.judge if self._can_be_judged(dataset) else None
        if judge is not None:
            jobs.append(Job("the judge", judge, judge_settings(self._settings_of(Unit(self.seeds[0])))))
        for unit in self.units:
            jobs.append(Job(f"first phase, {unit}", self.first_phase(unit), self._settings_of(unit).first_phase()))
        for cell in (cell for cell in self.cells if cell.arm is not Arm.FIRST_PHASE):
            for unit in self.units:
                first = self.first_phase(unit)
                job = Job(f"{cell.name}, {unit}", self.folder(cell, unit), settings_of(cell, self._settings_of(unit)))
                if cell.arm.branches_off:
                    after = (first,) if judge is None else (first, judge)
                    job = replace(job, after=after, branch_of=first, judge=judge)
                jobs.append(job)
        return jobs

    def classical_jobs(self, dataset: Dataset) -> list[ClassicalJob]:
        """The classical baselines, where the settings ask for them."""
        return [
            ClassicalJob.of(method, self.classical(unit), self._settings_of(unit), dataset)
            for unit in self.units
            for method in CLASSICAL
            if self.settings.proof.baselines
        ]

    def check(self, dataset: Dataset) -> Split:
        """Refuse what cannot be split, built, measured or gone on with, before anything is written.

        Returns the split of the first seed, with every label where there is cross-fitting.
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
        twins = [self.folder(cell, unit) for cell in self.cells for unit in self.units if cell.arm is Arm.SUPERVISED]
        for job in self.jobs(dataset):
            if RunFolder.exists(job.folder):
                run = RunFolder.open(job.folder)
                run.check_asked(job.settings, dataset)
                splits[job.folder] = run.split
            elif job.branch_of is None and job.folder not in twins:  # what the first phase can build, so can its twin
                splits[job.folder] = self._planned(job, dataset)
        if not self._measures(splits):
            raise DataError(
                f"{dataset.name}: a comparison needs at least 2 labelled rows to measure on, but fewer are left: label"
                " 3 or more of a class, give a test set with --test, or train without a comparison by `synthsieve fit`"
            )
        split = splits[self.first_phase(Unit(self.seeds[0]))]
        if not len(split.validation) and settings.augmentation.entropy_ceiling is Ceiling.AUTO:
            raise ConfigError(
                'augmentation.entropy_ceiling="auto" needs validation rows to search on: keep some, or give a number'
            )
        return split

    def measured_rows(self, dataset: Dataset) -> int:
        """How many labelled examples the comparison of one seed is made on."""
        if self.cross_fitting is None or not self.cross_fitting.measures:
            return len(split_dataset(dataset, self.settings.data, seed=self.seeds[0]).test)
        units = [unit for unit in self.units if unit.seed == self.seeds[0] and unit.fold is not None]
        return sum(len(split_dataset(dataset, self._settings_of(u).data, seed=u.seed).test) for u in units)

    def proof(self) -> Proof:
        """Every arm against real data alone, on test."""
        measured = self.answers("test")
        if self.cross_fitting is not None and self.cross_fitting.measures:
            measured[CHOSEN] = self._nested_choice()
        return prove(
            measured,
            baseline=BASELINE.name,
            shared_items=self._test_is_shared(),
            generator=numpy_stream(0, "proof"),
            metric=self.settings.proof.metric,
        )

    def choice(self) -> Choice | None:
        """The arm that validation prefers, or real data alone; None without two validation rows a seed to compare."""
        validation = self._candidates(self.answers("validation"))
        if min(map(len, validation.get(BASELINE.name, [()]))) < 2 or len(validation) < 2:
            return None
        return self._choose(validation, shared_items=self.cross_fitting is not None)

    def _candidates(self, answers: dict[str, list[Answers]]) -> dict[str, list[Answers]]:
        # The first phase alone was the best of several evaluations, an arm of few: not a fair candidate.
        names = {cell.name for cell in self.cells if cell.arm.branches_off}
        return {name: each for name, each in answers.items() if name in names}

    def _choose(self, validation: dict[str, list[Answers]], *, shared_items: bool) -> Choice:
        metric = self.settings.proof.metric
        return choose(validation, baseline=BASELINE.name, shared_items=shared_items, metric=metric)

    def _nested_choice(self) -> list[Answers]:
        """What the arms chosen part by part answer on test, seed by seed: no row both chooses and measures."""
        found = []
        for seed in self.seeds:
            parts = []
            for unit in self._fold_units(seed):
                arms = {c.name: answers_of(self.folder(c, unit)) for c in self.cells if c.arm.branches_off}
                validation = {name: [each["validation"]] for name, each in arms.items() if "validation" in each}
                enough = len(validation) > 1 and len(validation[BASELINE.name][0]) > 1
                chosen = self._choose(validation, shared_items=False).arm if enough else BASELINE.name
                if "test" in arms[chosen]:
                    parts.append(arms[chosen]["test"])
            found.append(concatenate(parts))
        return found

    def report(self, proof: Proof, choice: Choice | None) -> dict[str, Any]:
        """All figures with settings, seeds and versions, for JSON."""
        whole = {unit: RunFolder.open(self.first_phase(unit)) for unit in self.whole_units}
        first = whole[Unit(self.seeds[0])]
        validation, test = self.answers("validation"), self.answers("test")
        return {
            "source": self.origin.source,
            "settings": self.settings.model_dump(mode="json", exclude={"seed"}),
            "seeds": list(self.seeds),
            "versions": versions(),
            "split_hashes": {str(unit.seed): run.split.hash for unit, run in whole.items()},
            "cross_fitting": None if self.cross_fitting is None else vars(self.cross_fitting),
            "labeled": len(first.split.labeled),
            "unlabeled": len(first.split.unlabeled),
            "validation_examples": len(validation[BASELINE.name][0]) if BASELINE.name in validation else 0,
            "labels_for_choosing": 0 if self.cross_fitting is not None else len(first.split.validation),
            "judge_accuracy": _judge_accuracy(self.judge),
            "first_phase": {str(unit.seed): _best(self.first_phase(unit)) for unit in whole},
            "proof": proof.as_dict(),
            "choice": None if choice is None else choice.as_dict(),
            "validation": {
                name: [_metric_of(one, self.settings.proof.metric) for one in each] for name, each in validation.items()
            },
            "metrics": {
                name: mean_metrics([measure(one.y, one.probabilities) for one in each]) for name, each in test.items()
            },
            "groups": self.groups(),
            "arms": {cell.name: self._arm(cell) for cell in self.cells},
            "baselines": {
                name: [_of_the_choice(one.about) for one in each] for name, each in self._classical().items()
            },
        }

    def groups(self) -> dict[str, Group]:
        """What stands in the comparison, in its order, and what kind of thing each is: the baselines first.

        A classical method that could not be fitted to the data of every unit is left out.
        """
        answered = [name for name, each in self._classical().items() if all(one.fitted for one in each)]
        ours = {cell.name: cell.arm.group for cell in self.cells}
        baselines = [*(name for name, group in ours.items() if group is Group.BASELINE), *answered]
        chosen = {}
        if self.cross_fitting is not None and self.cross_fitting.measures:
            chosen = {CHOSEN: Group.SYNTHETIC}
        return {**dict.fromkeys(baselines, Group.BASELINE), **ours, **chosen}

    def drifts(self) -> list[str]:
        """A sentence for each figure that ran away in a first phase, or in an arm and not before it."""
        told = []
        for unit in self.units:
            first = {drift.figure: drift for drift in drifts(read(self.first_phase(unit) / "history.jsonl"))}
            told += [f"first phase, {unit}: {drift}" for drift in first.values()]
            for cell in (cell for cell in self.cells if cell.arm is not Arm.FIRST_PHASE):
                mine = drifts(read(self.folder(cell, unit) / "history.jsonl"))
                told += [f"{cell.name}, {unit}: {drift}" for drift in mine if drift.figure not in first]
        return told

    def answers(self, part: str) -> dict[str, list[Answers]]:
        """What every arm and baseline answered on a part, seed by seed; those without any are left out.

        With cross-fitting the answers on the parts held out are put together.
        """
        cross = self.cross_fitting
        by_fold = cross is not None and (part == "validation" or cross.measures)
        classical = self._classical()
        found = {}
        for name in self.groups():
            cell = next((cell for cell in self.cells if cell.name == name), None)
            seeds = []
            for seed in self.seeds if by_fold or cross is None else [unit.seed for unit in self.whole_units]:
                units = self._fold_units(seed) if by_fold else [Unit(seed)]
                if cell is not None:
                    each = [answers_of(self.folder(cell, unit)) for unit in units]
                elif name in classical:
                    each = [classical[name][self.units.index(unit)].answers for unit in units]
                else:
                    continue
                seeds.append([one[part] for one in each if part in one])
            if seeds and all(seeds):
                found[name] = [parts[0] if len(parts) == 1 else concatenate(parts) for parts in seeds]
        return found

    def _fold_units(self, seed: int) -> list[Unit]:
        assert self.cross_fitting is not None
        return [Unit(seed, fold) for fold in range(self.cross_fitting.folds)]

    def _arm(self, cell: Cell) -> dict[str, Any]:
        folders = [self.folder(cell, unit) for unit in self.whole_units]
        return {
            "arm": str(cell.arm),
            "pool_size": cell.pool_size,
            "best": [_best(folder) for folder in folders],
            "selections": [_without_time(read_figures(folder)) for folder in folders],
        }

    def _planned(self, job: Job, dataset: Dataset) -> Split:
        """The split that a first phase will have, once it is known that its networks can be built."""
        split = split_dataset(dataset, job.settings.data, seed=job.settings.seed)
        encoding = fit_encoding(dataset, np.concatenate([split.labeled, split.unlabeled]))
        RunFolder(job.folder, self.origin, job.settings, split, encoding, threads=1).new_learner()
        return split

    def _measures(self, splits: dict[Path, Split]) -> bool:
        """Whether every seed has two test rows or more."""
        if self.cross_fitting is not None and self.cross_fitting.measures:
            tests = [[splits[self.first_phase(unit)].test for unit in self._fold_units(seed)] for seed in self.seeds]
        else:
            tests = [[splits[self.first_phase(unit)].test] for unit in self.whole_units]
        return min(sum(map(len, each)) for each in tests) >= 2

    def _classical(self) -> dict[str, list[Answer]]:
        """What the classical baselines answered, unit by unit."""
        if not self.settings.proof.baselines:
            return {}
        found = {
            m.name: [Answer.read(self.classical(unit) / f"{m.slug}.npz") for unit in self.units] for m in CLASSICAL
        }
        for each in found.values():
            for unit, one in zip(self.units, each, strict=True):
                if one.about["split_hash"] != RunFolder.open(self.first_phase(unit)).split.hash:
                    raise CheckpointError(
                        f"{self.classical(unit)} is of another split than {self.first_phase(unit)}: "
                        "remove it, and the same command measures again"
                    )
        return found

    def _test_is_shared(self) -> bool:
        if self.cross_fitting is not None and self.cross_fitting.measures:
            return True
        return RunFolder.open(self.first_phase(Unit(self.seeds[0]))).split.test_is_own

    def _settings_of(self, unit: Unit) -> Settings:
        """Of one unit; with cross-fitting the last weights are kept, for no rows are left to choose them on."""
        settings = self.settings.model_copy(update={"seed": unit.seed})
        if self.cross_fitting is None:
            return settings
        learning = settings.learning.model_copy(update={"keep": Keep.LAST})
        data = settings.data.model_copy(update={"fold": unit.fold})
        return settings.model_copy(update={"learning": learning, "data": data})

    def _can_be_judged(self, dataset: Dataset) -> bool:
        labels = self.settings.data.labels
        return labels is not None and int((dataset.train.y != UNLABELED).sum()) >= JUDGE_NEEDS * labels


def cross_fitting_of(dataset: Dataset, settings: Settings) -> CrossFitting | None:
    """How the labels of a data set are held out in turn; None where one split does."""
    if not cross_fits(dataset, settings.data):
        return None
    return CrossFitting(settings.data.folds, measures=not has_outside_test(dataset, settings.data))


def _judge_accuracy(folder: Path) -> float | None:
    test = answers_of(folder).get("test") if RunFolder.exists(folder) else None
    return None if test is None else float(test.right.mean())


def _metric_of(answers: Answers, metric: Metric) -> float:
    return weighted_metric(metric, answers.y, answers.probabilities, np.ones(len(answers)))


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
