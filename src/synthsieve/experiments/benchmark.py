"""The benchmark: every method on the same splits with the same budget, tuned by the same number of trials.

OUT/seed-S/METHOD/trial-SHARE-N.npz   the answers of a trial on validation rows; .safetensors: unfinished
OUT/seed-S/METHOD/SHARE.npz           on test rows, too: the best hyperparameters, this share of our own compute
OUT/seed-S/baselines/METHOD.npz       those of scikit-learn's methods
OUT/seed-S/fold-K/                    the same with part K of the labels held out, where labels are few
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from synthsieve.data.dataset import Dataset
from synthsieve.data.origin import Origin
from synthsieve.data.splits import cross_fits, split_dataset
from synthsieve.errors import CheckpointError, DataError
from synthsieve.evaluation.answers import Answers, concatenate, read_answers, write_answers
from synthsieve.experiments.baselines.protocol import BenchmarkTask
from synthsieve.experiments.baselines.registry import METHODS, SKLEARN
from synthsieve.experiments.baselines.search import BaselineResult
from synthsieve.experiments.baselines.trainer import budget_of, train
from synthsieve.experiments.experiment import Unit
from synthsieve.experiments.workers import ClassicalJob, Task, run_jobs
from synthsieve.io.files import remove_stale_partials
from synthsieve.io.progress import Progress
from synthsieve.settings import Settings
from synthsieve.training.data import TrainingData
from synthsieve.training.state import CPU

TRIAL_SHARE = 0.25  # of the first budget, for a trial


@dataclass(frozen=True)
class MethodJob:
    """A task of a worker: train one method on one split, in a trial of hyperparameters or with the best of them."""

    name: str
    output_path: Path
    method: str
    trial: int | None  # of the method's grid; None: the trial that validation prefers
    settings: Settings
    share: float  # of the compute of our own training
    device: torch.device = CPU
    after: tuple[Path, ...] = ()  # the trials to choose from

    @property
    def steps(self) -> int:
        """Units of progress."""
        return max(1, round(100 * self.share))

    @property
    def best_trial(self) -> int:
        """The trial with the best score on validation; the first among equals, and where there are no such rows."""
        if self.trial is not None:
            return self.trial
        metric, scores = self.settings.comparison.metric, []
        for path in self.after:
            answers, _ = read_answers(path)
            score = answers["validation"].score(metric) if "validation" in answers else 0.0
            scores.append(score if answers else -math.inf)  # without answers it diverged at once
        return max(range(len(scores)), key=scores.__getitem__)

    def identity(self, trial: int) -> dict[str, Any]:
        """What decides the result."""
        parameters, settings = METHODS[self.method].grid[trial], self.settings.model_dump(mode="json")
        return {"method": self.method, "parameters": parameters, "share": self.share, "settings": settings}

    def is_done(self) -> bool:
        if not all(path.is_file() for path in (self.output_path, *self.after)):
            return False
        try:
            return read_answers(self.output_path)[1].get("identity") == self.identity(self.best_trial)
        except CheckpointError:
            return False

    def is_valid(self) -> bool:
        return self.is_done()

    def run(self, origin: Origin, dataset: Dataset, *, report: Callable[[int], None]) -> None:
        remove_stale_partials(self.output_path.parent)
        task = BenchmarkTask(_prepared(dataset, self.settings), self.settings, self.share, self.device)
        kind, trial, started = METHODS[self.method], self.best_trial, time.monotonic()
        budget, checkpoint = budget_of(task), self.output_path.with_suffix(".safetensors")
        method = kind(task, **kind.grid[trial])
        done = train(
            method,
            task,
            budget,
            metric=self.settings.comparison.metric,
            test=self.trial is None,  # predicting test rows can take longer than a short trial
            checkpoint=checkpoint,
            identity=self.identity(trial),
            report=lambda percent: report(round(percent * self.share)),
        )
        metadata = {
            "identity": self.identity(trial),
            "split_hash": task.data.split.hash,
            "budget": budget,
            "spent": done.spent,
            "steps": method.steps,
            "costs": done.costs,
            "history": done.history,
            "diverged": done.diverged,
            "seconds": time.monotonic() - started,
            "device": str(self.device),
        }
        write_answers(self.output_path, done.answers, metadata)
        checkpoint.unlink(missing_ok=True)


_LAST: dict[str, Any] = {}


def _prepared(dataset: Dataset, settings: Settings) -> TrainingData:
    """The split and its encoding; jobs that follow on the same split share them, and the graph labels with them."""
    split = settings.data.model_dump_json(), settings.seed
    if _LAST.get("dataset") is not dataset or _LAST.get("split") != split:
        _LAST.update(dataset=dataset, split=split, data=TrainingData.prepare(dataset, settings))
    data: TrainingData = _LAST["data"]
    return data


@dataclass(frozen=True)
class MethodResult:
    """One method at one budget: the answers of the trial that validation chose, seed by seed."""

    test: list[Answers]
    validation: list[Answers] | None  # None without validation rows
    chosen: list[str]  # the hyperparameters, unit by unit
    trials: list[dict[str, Any]]  # metadata of the chosen trials, unit by unit; empty for scikit-learn's methods


MethodResults = dict[float, dict[str, MethodResult]]  # budget -> method -> result


@dataclass(frozen=True)
class Benchmark:
    """What is compared, on what data, and where."""

    out: Path
    origin: Origin
    settings: Settings
    seeds: tuple[int, ...]
    methods: tuple[str, ...]  # names of the registry
    shares: tuple[float, ...] = (1.0,)  # budgets, as multiples of our own training; the first is the one compared
    folds: int = 0  # parts of the labels that are held out in turn; 0: one split for each seed
    device: torch.device = CPU  # of the networks; scikit-learn's methods use the CPU

    @property
    def units(self) -> list[Unit]:
        return [unit for seed in self.seeds for unit in self._units_of(seed)]

    def _units_of(self, seed: int) -> list[Unit]:
        return [Unit(seed, fold) for fold in range(self.folds)] if self.folds else [Unit(seed)]

    def settings_of(self, unit: Unit) -> Settings:
        settings = self.settings.model_copy(update={"seed": unit.seed})
        return settings if unit.fold is None else settings.changed("data", fold=unit.fold)

    def trials(self, method: str, unit: Unit) -> list[MethodJob]:
        """Every set of hyperparameters of a method, with a part of the budget."""
        share = TRIAL_SHARE * self.shares[0]
        return [
            MethodJob(
                f"{method}, {unit}, trial {trial + 1}",
                self.out / unit.path / method / f"trial-{share:g}-{trial + 1}.npz",
                method,
                trial,
                self.settings_of(unit),
                share,
                self.device,
            )
            for trial in range(len(METHODS[method].grid))
        ]

    def job(self, method: str, unit: Unit, share: float) -> MethodJob:
        """The training that counts, with the hyperparameters of the best trial."""
        path = self.out / unit.path / method / f"{share:g}.npz"
        after = [trial.output_path for trial in self.trials(method, unit)]
        name = f"{method}, {unit}" + ("" if share == 1 else f", budget {share:g}")
        return MethodJob(name, path, method, None, self.settings_of(unit), share, self.device, tuple(after))

    def sklearn_job(self, method: str, unit: Unit, dataset: Dataset) -> ClassicalJob:
        folder = self.out / unit.path / "baselines"
        return ClassicalJob.of(SKLEARN[method], folder, self.settings_of(unit), dataset)

    def left_out(self, dataset: Dataset) -> dict[str, str]:
        """Methods that do not apply to these data, with the reason."""
        spec = TrainingData.prepare(dataset, self.settings_of(self.units[0])).encoding.input_spec
        reasons = {name: METHODS[name].refuses(spec) for name in self.methods if name in METHODS}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def check(self, dataset: Dataset) -> int:
        """Refuse data that leave nothing to measure on; returns the number of test rows of a seed."""
        first = self.settings_of(self.units[0])
        splits = [split_dataset(dataset, self.settings_of(u).data, seed=first.seed) for u in self._units_of(first.seed)]
        rows = sum(len(split.test) for split in splits)
        if rows < 2:
            message = f"{dataset.name}: a benchmark needs at least 2 labelled rows to measure on, but {rows} are left"
            raise DataError(f"{message}: label more rows, or give a test set with --test", code="no-test-rows")
        return rows

    def run(self, dataset: Dataset, *, workers: int, progress: Progress | None = None) -> MethodResults:
        """Train what is not trained yet; the result of every method for each budget."""
        left_out = self.left_out(dataset)
        ours = [name for name in self.methods if name in METHODS and name not in left_out]
        classical = [name for name in self.methods if name in SKLEARN]
        jobs: list[Task] = []
        for unit in self.units:
            for name in ours:
                jobs += [*self.trials(name, unit), *(self.job(name, unit, share) for share in self.shares)]
            jobs += [self.sklearn_job(name, unit, dataset) for name in classical]
        run_jobs(jobs, self.origin, workers=workers, progress=progress)
        _LAST.clear()
        found: MethodResults = {}
        for share in self.shares:
            outcomes = {name: self._outcome(name, share) for name in ours}
            outcomes |= {name: self._sklearn_outcome(name) for name in classical}
            found[share] = {name: outcome for name, outcome in outcomes.items() if outcome is not None}
        return found

    def _outcome(self, method: str, share: float) -> MethodResult | None:
        read = {unit: read_answers(self.job(method, unit, share).output_path) for unit in self.units}
        if any("test" not in answers for answers, _ in read.values()):
            return None
        chosen = [", ".join(f"{k} {v:g}" for k, v in m["identity"]["parameters"].items()) for _, m in read.values()]
        found = {unit: answers for unit, (answers, _) in read.items()}
        return MethodResult(*self._by_seed(found), chosen, [metadata for _, metadata in read.values()])

    def _sklearn_outcome(self, method: str) -> MethodResult | None:
        paths = {unit: self.out / unit.path / "baselines" / f"{method}.npz" for unit in self.units}
        results = {unit: BaselineResult.read(path) for unit, path in paths.items()}
        if not all(result.fitted and "test" in result.answers for result in results.values()):
            return None
        chosen = [str(result.metadata["chosen"]) for result in results.values()]
        return MethodResult(*self._by_seed({unit: each.answers for unit, each in results.items()}), chosen, [])

    def _by_seed(self, answers: dict[Unit, dict[str, Answers]]) -> tuple[list[Answers], list[Answers] | None]:
        """Test and validation answers, the parts of a seed as one."""

        def gathered(part: str) -> list[Answers]:
            seeds = [[answers[unit] for unit in self._units_of(seed)] for seed in self.seeds]
            return [concatenate(each[part] for each in units if part in each) for units in seeds]

        has_validation = all("validation" in each for each in answers.values())
        return gathered("test"), gathered("validation") if has_validation else None


def folds_of(dataset: Dataset, settings: Settings) -> int:
    """How many parts of the labels are held out in turn; 0 where one split is enough."""
    return settings.data.folds if cross_fits(dataset, settings.data) else 0
