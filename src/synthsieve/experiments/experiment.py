"""An experiment: each seed is pretrained once, every variant continues from there, and their answers are compared.

With few labels the variants are also trained on parts of them, so that the held-out parts can choose and measure.

OUT/oracle/                a classifier of all labels, only for the purity of pools
OUT/seed-S/pretrained/     a run; OUT/seed-S/VARIANT/ those that continue from it
OUT/seed-S/supervised-only/, baselines/METHOD.npz   the baselines
OUT/seed-S/fold-K/         the same with part K of the labels held out, with cross-fitting
OUT/table.json, table.md   the results
OUT/figures/               samples of each class, one class by entropy, the temperature curve
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from synthsieve.data.dataset import UNLABELED, Dataset
from synthsieve.data.origin import Origin
from synthsieve.data.splits import Split, cross_fits, has_outside_test, split_dataset
from synthsieve.errors import CheckpointError, ConfigError, DataError
from synthsieve.evaluation.answers import Answers, concatenate
from synthsieve.evaluation.comparison import Choice, ComparisonResult, choose, compare_paired
from synthsieve.evaluation.metrics import mean_metrics, measure
from synthsieve.experiments.arms import (
    BASELINE,
    ORACLE,
    PRETRAINED,
    WITHOUT_SAMPLES,
    Group,
    TableEntry,
    oracle_settings,
    settings_of,
)
from synthsieve.experiments.baselines.search import BaselineResult
from synthsieve.experiments.baselines.sklearn_models import CLASSICAL
from synthsieve.experiments.runner import answers_of
from synthsieve.experiments.workers import ClassicalJob, Job
from synthsieve.io.random_streams import numpy_stream
from synthsieve.io.versions import versions
from synthsieve.settings import Ceiling, Keep, Objective, Settings
from synthsieve.training.data import TrainingData
from synthsieve.training.drift import drifts
from synthsieve.training.extra_data import read_figures
from synthsieve.training.history import read
from synthsieve.training.run_dir import RunDirectory
from synthsieve.training.state import CPU, check_networks

MIN_ORACLE_LABELS = 2  # times those of the model: an oracle must know more than the model does
CHOSEN = "chosen on validation"  # part by part: how the choice itself does on rows that it did not see


@dataclass(frozen=True)
class Unit:
    """A split that every variant is trained on: a seed, and with cross-fitting the held-out part of the labels.

    Without a part (`fold` None) it is the seed's one split or, with cross-fitting, every label trains.
    """

    seed: int
    fold: int | None = None

    @property
    def path(self) -> Path:
        return Path(f"seed-{self.seed}") if self.fold is None else Path(f"seed-{self.seed}") / f"fold-{self.fold}"

    def __str__(self) -> str:
        return f"seed {self.seed}" if self.fold is None else f"seed {self.seed}, part {self.fold + 1}"


@dataclass(frozen=True)
class CrossFitting:
    """How few labels train, choose and measure: each part of them is held out in turn."""

    folds: int  # the number of parts
    # whether the parts also measure, without a test set outside the labels. Then in each turn one part
    # measures, the next one chooses and the others train; otherwise one part chooses and the others train.
    measures: bool


@dataclass(frozen=True)
class Experiment:
    """What is compared, on what data, and where."""

    out: Path  # the folder
    origin: Origin  # where the data come from
    settings: Settings  # of every variant; the seed in it is not used
    seeds: tuple[int, ...]  # each with its own split, weights and batches
    entries: tuple[TableEntry, ...]  # the variants, with their pool sizes; the baseline is among them
    # how parts of the labels are held out in turn; None with one split a seed
    cross_fitting: CrossFitting | None = None
    device: torch.device = CPU

    @property
    def _parts_measure(self) -> bool:
        return self.cross_fitting is not None and self.cross_fitting.measures

    @property
    def whole_units(self) -> list[Unit]:
        """The units without a held-out part; where parts measure, only the first seed's: its models are kept."""
        return [Unit(seed) for seed in (self.seeds[:1] if self._parts_measure else self.seeds)]

    @property
    def units(self) -> list[Unit]:
        """Everything that each variant is trained on."""
        return [*self.whole_units, *(unit for seed in self.seeds for unit in self._fold_units(seed))]

    @property
    def measuring_units(self) -> list[list[Unit]]:
        """For each seed that is measured, the units whose test rows measure: its parts, or the whole."""
        if self._parts_measure:
            return [self._fold_units(seed) for seed in self.seeds]
        return [[unit] for unit in self.whole_units]

    def _fold_units(self, seed: int) -> list[Unit]:
        return [] if self.cross_fitting is None else [Unit(seed, fold) for fold in range(self.cross_fitting.folds)]

    def folder(self, entry: TableEntry, unit: Unit) -> Path:
        return self.out / unit.path / entry.slug

    def pretrained(self, unit: Unit) -> Path:
        return self.folder(PRETRAINED, unit)

    @property
    def oracle(self) -> Path:
        return self.out / ORACLE

    def classical(self, unit: Unit) -> Path:
        return self.out / unit.path / "baselines"

    @property
    def describe_size(self) -> str:
        """`14 variants, 7 baselines, 2 seeds`."""
        baselines = sum(entry.arm.group is Group.BASELINE for entry in self.entries)
        counts = {"variant": len(self.entries) - baselines}
        counts["baseline"] = baselines + (len(CLASSICAL) if self.settings.comparison.baselines else 0)
        if self.cross_fitting is None:
            counts["seed"] = len(self.seeds)
        words = [f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items() if count]
        if self.cross_fitting is not None:
            times = "" if len(self.seeds) == 1 else f", {len(self.seeds)} times"
            words.append(f"cross-fitting over {self.cross_fitting.folds} parts of the labels{times}")
        return ", ".join(words)

    def jobs(self, dataset: Dataset) -> list[Job]:
        """The oracle, pretraining, the supervised baselines, and the variants that wait for oracle and pretraining."""
        jobs = []
        oracle = self.oracle if self._has_oracle(dataset) else None
        if oracle is not None:
            jobs.append(
                Job("oracle", oracle, oracle_settings(self._settings_of(Unit(self.seeds[0]))), device=self.device)
            )
        for entry in sorted({PRETRAINED, *self.entries}, key=[PRETRAINED, *self.entries].index):
            for unit in self.units:
                settings = settings_of(entry, self._settings_of(unit))
                job = Job(f"{entry.name}, {unit}", self.folder(entry, unit), settings, device=self.device)
                if entry.arm.branches_off:
                    base = self.pretrained(unit)
                    after = (base,) if oracle is None else (base, oracle)
                    job = replace(job, after=after, branch_of=base, oracle=oracle)
                jobs.append(job)
        return jobs

    def classical_jobs(self, dataset: Dataset) -> list[ClassicalJob]:
        """The classical baselines, if the settings ask for them."""
        return [
            ClassicalJob.of(method, self.classical(unit), self._settings_of(unit), dataset)
            for unit in self.units
            for method in CLASSICAL
            if self.settings.comparison.baselines
        ]

    def check(self, dataset: Dataset) -> Split:
        """Refuse what cannot be split, built, measured or resumed, before anything is written.

        Returns the split of the first seed, with every label where there is cross-fitting.
        """
        self._check_settings()
        splits = {}
        for job in self.jobs(dataset):
            if RunDirectory.exists(job.folder):
                run = RunDirectory.open(job.folder)
                run.check_unchanged(job.settings, dataset)
                splits[job.folder] = run.split
            elif job.folder.name in (PRETRAINED.slug, ORACLE):  # variants have the same networks, or fewer
                data = TrainingData.prepare(dataset, job.settings)
                check_networks(job.settings, data.encoding.input_spec, len(data.split.classes))
                splits[job.folder] = data.split
        tests = [self._fold_units(seed) for seed in self.seeds]
        if not self._parts_measure:
            tests = [[unit] for unit in self.whole_units]
        if min(sum(len(splits[self.pretrained(unit)].test) for unit in units) for units in tests) < 2:
            raise DataError(
                f"{dataset.name}: a comparison needs at least 2 labelled rows to measure on, but fewer are left: label"
                " 3 or more of a class, give a test set with --test, or train without a comparison by `synthsieve fit`",
                code="no-test-rows",
            )
        split = splits[self.pretrained(Unit(self.seeds[0]))]
        if not len(split.validation) and self.settings.augmentation.entropy_ceiling is Ceiling.AUTO:
            raise ConfigError(
                'augmentation.entropy_ceiling="auto" needs validation rows to search on: keep some, or give a number',
                code="no-validation-rows",
            )
        return split

    def _check_settings(self) -> None:
        parent = next(path for path in (self.out, *self.out.absolute().parents) if path.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            message = f"cannot write to {self.out}: {parent} is not a writable folder; give another"
            raise ConfigError(message, code="cannot-write")
        settings = self.settings
        if settings.training.objective is Objective.SUPERVISED:
            raise ConfigError(
                "training.objective=supervised trains no generator to draw from: use `synthsieve fit --supervised`",
                code="no-generator",
            )
        if not settings.training.steps <= settings.augment_from_step < settings.total_steps:
            raise ConfigError(
                f"augmentation.augment_from_step={settings.augment_from_step} must lie in augmented training, "
                f"{settings.training.steps} to {settings.total_steps - 1}: variants share what comes before",
                code="augment-in-pretraining",
            )

    def measured_rows(self, dataset: Dataset) -> int:
        """How many labelled examples the comparison of one seed is made on."""
        seed = self.seeds[0]
        units = self._fold_units(seed) if self._parts_measure else [Unit(seed)]
        return sum(len(split_dataset(dataset, self._settings_of(u).data, seed=seed).test) for u in units)

    def paired_comparison(self) -> ComparisonResult:
        """Every variant against real data alone, on test rows."""
        measured = self.answers("test")
        if self._parts_measure:
            measured[CHOSEN] = self._nested_choice()
        return self._compare(measured, BASELINE.name)

    def comparison_with_best(self) -> ComparisonResult | None:
        """Every variant with samples against the best one without, which validation rows choose, on test rows.

        A variant that is better than real data alone, but not than this one, may only undo harm. None without
        validation rows.
        """
        validation, metric = self.answers("validation"), self.settings.comparison.metric
        scores = {name: float(np.mean([one.score(metric) for one in each])) for name, each in validation.items()}
        without = [entry.name for entry in self.entries if entry.arm in WITHOUT_SAMPLES and entry.name in scores]
        samples = [
            entry for entry in self.entries if entry.arm.group is Group.SYNTHETIC and entry.arm not in WITHOUT_SAMPLES
        ]
        if not without or not samples:
            return None
        best, test = max(without, key=lambda name: scores[name]), self.answers("test")
        return self._compare({name: test[name] for name in (best, *(entry.name for entry in samples))}, best)

    def _compare(self, measured: dict[str, list[Answers]], baseline: str) -> ComparisonResult:
        first = RunDirectory.open(self.pretrained(Unit(self.seeds[0])))
        return compare_paired(
            measured,
            baseline=baseline,
            shared_items=self._parts_measure or first.split.test_is_own,
            rng=numpy_stream(0, "paired_comparison"),
            metric=self.settings.comparison.metric,
        )

    def choice(self) -> Choice | None:
        """The variant that validation prefers, or real data alone; None without two validation rows a seed."""
        # Pretrained weights are the best of many evaluations, those of a variant of few: not a fair candidate.
        names = {entry.name for entry in self.entries if entry.arm.branches_off}
        validation = {name: each for name, each in self.answers("validation").items() if name in names}
        if min(map(len, validation.get(BASELINE.name, [()]))) < 2 or len(validation) < 2:
            return None
        return self._choose(validation, shared_items=self.cross_fitting is not None)

    def _choose(self, validation: dict[str, list[Answers]], *, shared_items: bool) -> Choice:
        metric = self.settings.comparison.metric
        return choose(validation, baseline=BASELINE.name, shared_items=shared_items, metric=metric)

    def _nested_choice(self) -> list[Answers]:
        """What the variants chosen part by part answer on test, seed by seed: no row both chooses and measures."""
        seeds = []
        for seed in self.seeds:
            parts = []
            for unit in self._fold_units(seed):
                arms = {c.name: answers_of(self.folder(c, unit)) for c in self.entries if c.arm.branches_off}
                validation = {name: [each["validation"]] for name, each in arms.items() if "validation" in each}
                enough = len(validation) > 1 and len(validation[BASELINE.name][0]) > 1
                chosen = self._choose(validation, shared_items=False).arm if enough else BASELINE.name
                if "test" in arms[chosen]:
                    parts.append(arms[chosen]["test"])
            seeds.append(concatenate(parts))
        return seeds

    def report(self, paired_comparison: ComparisonResult, choice: Choice | None) -> dict[str, Any]:
        """All figures with settings, seeds and versions, for JSON."""
        against_best = self.comparison_with_best()
        whole = {unit: RunDirectory.open(self.pretrained(unit)) for unit in self.whole_units}
        split = whole[Unit(self.seeds[0])].split
        validation, test, metric = self.answers("validation"), self.answers("test"), self.settings.comparison.metric
        oracle = answers_of(self.oracle).get("test") if RunDirectory.exists(self.oracle) else None
        return {
            "source": self.origin.source,
            "settings": self.settings.model_dump(mode="json", exclude={"seed"}),
            "seeds": list(self.seeds),
            "versions": versions(),
            "split_hashes": {str(unit.seed): run.split.hash for unit, run in whole.items()},
            "cross_fitting": None if self.cross_fitting is None else vars(self.cross_fitting),
            "labeled": len(split.labeled),
            "unlabeled": len(split.unlabeled),
            "validation_examples": len(validation[BASELINE.name][0]) if BASELINE.name in validation else 0,
            "labels_for_choosing": 0 if self.cross_fitting is not None else len(split.validation),
            "oracle_accuracy": None if oracle is None else float(oracle.right.mean()),
            "pretrained": {str(unit.seed): _best_row(self.pretrained(unit)) for unit in whole},
            "paired_comparison": paired_comparison.as_dict(),
            "against_best": None if against_best is None else against_best.as_dict(),
            "choice": None if choice is None else choice.as_dict(),
            "validation": {name: [one.score(metric) for one in each] for name, each in validation.items()},
            "metrics": {
                name: mean_metrics([measure(one.y, one.probabilities, one.uncalibrated) for one in each])
                for name, each in test.items()
            },
            "groups": self.groups(),
            "arms": {entry.name: self._arm(entry) for entry in self.entries},
            "baselines": {  # without the time they took: the same command gives the same numbers again
                name: [{key: one.metadata[key] for key in ("chosen", "grid", "unlabeled", "failed")} for one in each]
                for name, each in self._classical().items()
            },
        }

    def _arm(self, entry: TableEntry) -> dict[str, Any]:
        folders = [self.folder(entry, unit) for unit in self.whole_units]
        return {
            "arm": str(entry.arm),
            "pool_size": entry.pool_size,
            "best": [_best_row(folder) for folder in folders],
            "selections": [
                [{name: value for name, value in row.items() if name != "seconds"} for row in read_figures(folder)]
                for folder in folders
            ],
        }

    def groups(self) -> dict[str, Group]:
        """The rows of the comparison, in order, and the kind of each: the baselines first.

        A classical method that could not be fitted to the data of every unit is left out.
        """
        fitted = [name for name, each in self._classical().items() if all(one.fitted for one in each)]
        ours = {entry.name: entry.arm.group for entry in self.entries}
        baselines = [*(name for name, group in ours.items() if group is Group.BASELINE), *fitted]
        chosen = {CHOSEN: Group.SYNTHETIC} if self._parts_measure else {}
        return {**dict.fromkeys(baselines, Group.BASELINE), **ours, **chosen}

    def drifts(self) -> list[str]:
        """A message for each metric that diverged in pretraining, or in a variant and not before it."""
        messages = []
        for unit in self.units:
            before = {drift.figure: drift for drift in drifts(read(self.pretrained(unit) / "history.jsonl"))}
            messages += [f"{PRETRAINED.name}, {unit}: {drift}" for drift in before.values()]
            for entry in (entry for entry in self.entries if entry != PRETRAINED):
                after = drifts(read(self.folder(entry, unit) / "history.jsonl"))
                messages += [f"{entry.name}, {unit}: {drift}" for drift in after if drift.figure not in before]
        return messages

    def answers(self, part: str) -> dict[str, list[Answers]]:
        """What every variant and baseline answered on a part, seed by seed; those without answers are left out.

        With cross-fitting the answers on the held-out parts are concatenated.
        """
        cross, classical, found = self.cross_fitting, self._classical(), {}
        by_fold = cross is not None and (part == "validation" or cross.measures)
        entries = {entry.name: entry for entry in self.entries}
        for name in self.groups():
            seeds = []
            for seed in self.seeds if by_fold or cross is None else [unit.seed for unit in self.whole_units]:
                units = self._fold_units(seed) if by_fold else [Unit(seed)]
                if name in entries:
                    each = [answers_of(self.folder(entries[name], unit)) for unit in units]
                elif name in classical:
                    each = [classical[name][self.units.index(unit)].answers for unit in units]
                else:
                    continue
                seeds.append([one[part] for one in each if part in one])
            if seeds and all(seeds):
                found[name] = [parts[0] if len(parts) == 1 else concatenate(parts) for parts in seeds]
        return found

    def _classical(self) -> dict[str, list[BaselineResult]]:
        """What the classical baselines answered, unit by unit."""
        found: dict[str, list[BaselineResult]] = {}
        for unit in self.units if self.settings.comparison.baselines else []:
            split = RunDirectory.open(self.pretrained(unit)).split
            for method in CLASSICAL:
                answer = BaselineResult.read(self.classical(unit) / f"{method.slug}.npz")
                if answer.metadata["split_hash"] != split.hash:
                    raise CheckpointError(
                        f"{self.classical(unit)} is of another split than {self.pretrained(unit)}: remove it, and the"
                        " same command measures again",
                        code="other-run",
                    )
                found.setdefault(method.name, []).append(answer)
        return found

    def _settings_of(self, unit: Unit) -> Settings:
        """Of one unit; with cross-fitting the last weights are kept, as no rows are left to choose them on."""
        settings = self.settings.model_copy(update={"seed": unit.seed})
        if self.cross_fitting is None:
            return settings
        return settings.changed("training", keep=Keep.LAST).changed("data", fold=unit.fold)

    def _has_oracle(self, dataset: Dataset) -> bool:
        labels = self.settings.data.labels
        return labels is not None and int((dataset.train.y != UNLABELED).sum()) >= MIN_ORACLE_LABELS * labels


def cross_fitting_of(dataset: Dataset, settings: Settings) -> CrossFitting | None:
    """How the labels of a data set are held out in turn; None where one split is enough."""
    if not cross_fits(dataset, settings.data):
        return None
    return CrossFitting(settings.data.folds, measures=not has_outside_test(dataset, settings.data))


def _best_row(folder: Path) -> dict[str, float]:
    """The row of the history whose weights were kept."""
    settings, rows = RunDirectory.open(folder).settings, read(folder / "history.jsonl")
    if settings.augmentation.steps:
        rows = [row for row in rows if row["step"] > settings.training.steps]
    return max(
        rows, key=lambda row: (row.get("validation_accuracy", row["step"]), -row.get("validation_cross_entropy", 0))
    )
