"""Few labels across kinds of data: our arms, their supervised baseline and scikit-learn's rivals on the same splits.

    python benchmarks/modalities.py --data digits --seeds 2 --out runs/modalities
    python benchmarks/modalities.py --data-dir DATA --out runs/modalities          every data set, 5 seeds
    python benchmarks/modalities.py --out runs/modalities --render-only

An interrupted run can be resumed: every training and every answer of a rival is kept under OUT. Finished results, whole
seeds at a time, go to RESULTS.md and RESULTS.json.

OUT/NAME/plan.json                what is compared, with all settings
OUT/NAME/columns.json             for tables: real columns beside synthetic ones, of the first seed
OUT/NAME/seed-S/ARM/              a run; its answers.npz has its answers on validation and test examples
OUT/NAME/seed-S/rivals/RIVAL.npz  the same of a rival, and how its grid was decided
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import rivals
from modalities_columns import measure_columns
from modalities_report import SUPERVISED_BASELINE, Evidence, write_report

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.data.origin import Origin
from synthsieve.data.splits import Split, split_dataset
from synthsieve.errors import SynthsieveError
from synthsieve.experiments.arms import Arm, TableEntry, supervised_settings
from synthsieve.experiments.baselines.search import BaselineResult, GridMethod, fit_baseline
from synthsieve.experiments.experiment import Experiment, Unit
from synthsieve.experiments.runner import ANSWERS, answers_of, is_finished
from synthsieve.experiments.workers import Job, default_workers, run_jobs
from synthsieve.io.files import write_json
from synthsieve.io.progress import for_stream
from synthsieve.io.versions import versions
from synthsieve.settings import Settings, settings_from
from synthsieve.training.defaults import settings_for
from synthsieve.training.run_dir import RunDirectory

PLAN, COLUMNS = "plan.json", "columns.json"
LABELS = {"digits": 50, "mnist": 100, "adult": 200, "spoken-digits": 50, "sst2": 200}
# In the order of a tie: the simpler first.
OURS = {
    "joint": Arm.PRETRAINED,
    "joint, further steps": Arm.REAL_ONLY,
    "entropy + CRAIG": Arm.CRAIG,
    "entropy + CRAIG + PL": Arm.CRAIG_PSEUDO,
}


@dataclass(frozen=True)
class Comparison:
    """One data set's comparison.

    Attributes:
        folder: where all of it is kept.
        origin: where the data come from.
        settings: of our arms; the seed in it is not used.
        supervised_baseline: of that.
        seeds: each with its own split.
    """

    folder: Path
    origin: Origin
    settings: Settings
    supervised_baseline: Settings
    seeds: tuple[int, ...]

    @classmethod
    def of(cls, folder: Path, origin: Origin, dataset: Dataset, *, seeds: int, overrides: Iterable[str]) -> Comparison:
        """With the data set's default preset, and labels as many as LABELS says."""
        requested = LABELS.get(origin.source)
        labels = [] if requested is None else [f"data.labels={requested}"]
        settings = settings_for(origin.source, dataset, overrides=[*labels, *overrides])
        if not settings.augmentation.steps:
            settings = settings.with_retraining()
        supervised_baseline = supervised_settings(settings).model_copy(
            update={"model": settings.model}
        )  # both towers, where there are two
        return cls(folder, origin, settings, supervised_baseline, tuple(range(seeds)))

    @cached_property
    def experiment(self) -> Experiment:
        sizes = self.settings.comparison.pool_sizes
        pool = sizes[min(1, len(sizes) - 1)]
        pooled = (Arm.CRAIG, Arm.CRAIG_PSEUDO)
        entries = tuple(TableEntry(arm, pool if arm in pooled else 0) for arm in OURS.values())
        return Experiment(self.folder, self.origin, self.settings, self.seeds, entries)

    def jobs(self, dataset: Dataset) -> list[Job]:
        """Our arms and the supervised baseline, seed by seed, without the oracle classifier."""
        oracle = self.experiment.oracle
        ours = [
            replace(job, after=tuple(folder for folder in job.after if folder != oracle), oracle=None)
            for job in self.experiment.jobs(dataset)
            if job.folder != oracle
        ]
        supervised_baselines = [
            Job(
                f"{SUPERVISED_BASELINE}, seed {seed}",
                self.run(SUPERVISED_BASELINE, seed),
                self.supervised_baseline.model_copy(update={"seed": seed}),
            )
            for seed in self.seeds
        ]
        return sorted([*ours, *supervised_baselines], key=lambda job: job.settings.seed)

    def run(self, arm: str, seed: int) -> Path:
        """The folder of one of our arms, or of the supervised baseline."""
        if arm == SUPERVISED_BASELINE:
            return self.folder / f"seed-{seed}" / "supervised-baseline"
        (entry,) = (entry for entry in self.experiment.entries if entry.arm is OURS[arm])
        return self.experiment.folder(entry, Unit(seed))

    def rival(self, rival: GridMethod, seed: int) -> Path:
        """The file of a rival's answer."""
        return self.folder / f"seed-{seed}" / "rivals" / f"{rival.slug}.npz"

    def split(self, dataset: Dataset, seed: int) -> Split:
        """The same split that the runs of that seed have."""
        return split_dataset(dataset, self.settings.data, seed=seed)

    def is_valid(self, seed: int) -> bool:
        """Whether all of that seed is there."""
        runs = all(is_finished(self.run(arm, seed)) for arm in (*OURS, SUPERVISED_BASELINE))
        return runs and all(self.rival(rival, seed).is_file() for rival in rivals.RIVALS)

    def write_plan(self, dataset: Dataset, workers: int) -> None:
        write_json(
            self.folder / PLAN,
            {
                "name": dataset.name,
                "kind": str(dataset.kind),
                "origin": asdict(self.origin),
                "settings": self.settings.model_dump(mode="json"),
                "supervised_baseline": self.supervised_baseline.model_dump(mode="json"),
                "seeds": list(self.seeds),
                "versions": versions(),
                "machine": {"cores": os.cpu_count(), "workers": workers, "threads_of_a_process": 1},
            },
        )

    @classmethod
    def read_plan(cls, folder: Path, plan: dict[str, Any]) -> Comparison:
        settings, supervised_baseline = (settings_from(plan[name]) for name in ("settings", "supervised_baseline"))
        return cls(folder, Origin(**plan["origin"]), settings, supervised_baseline, tuple(plan["seeds"]))


def compare(comparison: Comparison, dataset: Dataset, *, workers: int) -> None:
    """Run the rivals, our arms and the supervised baseline."""
    comparison.experiment.check(dataset)
    for job in comparison.jobs(dataset):
        if RunDirectory.exists(job.folder):
            RunDirectory.open(job.folder).check_unchanged(job.settings, dataset)
    comparison.write_plan(dataset, workers)
    answer_rivals(comparison, dataset, workers=workers)
    name = comparison.folder.name
    run_jobs(comparison.jobs(dataset), comparison.origin, workers=workers, progress=for_stream(name))
    if dataset.kind == Kind.TABLE and not (comparison.folder / COLUMNS).is_file():
        first = RunDirectory.open(comparison.run("joint", comparison.seeds[0]))
        temperature = comparison.settings.augmentation.temperature
        write_json(comparison.folder / COLUMNS, measure_columns(first, dataset, temperature=temperature))


def answer_rivals(comparison: Comparison, dataset: Dataset, *, workers: int) -> None:
    """Every rival of every seed, a seed at a time in each process."""
    if workers == 1 or len(comparison.seeds) == 1:
        for seed in comparison.seeds:
            _answer_seed(comparison, seed, dataset)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        list(pool.map(_answer_seed, [comparison] * len(comparison.seeds), comparison.seeds))


def _answer_seed(comparison: Comparison, seed: int, dataset: Dataset | None = None) -> None:
    dataset = dataset or comparison.origin.load()
    split = comparison.split(dataset, seed)
    views = rivals.views_of(dataset, split, seed)
    for rival in rivals.RIVALS:
        path = comparison.rival(rival, seed)
        if not rivals.is_answered(rival, path, dataset, split):
            fit_baseline(rival, views).write(path)


def gather(folder: Path) -> Evidence | None:
    """What a folder of OUT holds, for the seeds that are whole; None where none is."""
    plan = _read_json(folder / PLAN)
    comparison = Comparison.read_plan(folder, plan)
    seeds = tuple(seed for seed in comparison.seeds if comparison.is_valid(seed))
    if not seeds:
        return None
    runs = {arm: [comparison.run(arm, seed) for seed in seeds] for arm in (*OURS, SUPERVISED_BASELINE)}
    answers = {one.name: [BaselineResult.read(comparison.rival(one, seed)) for seed in seeds] for one in rivals.RIVALS}
    splits = [RunDirectory.open(run).split for run in runs["joint"]]
    for name, each in answers.items():
        for split, given in zip(splits, each, strict=True):
            assert given.metadata["split_hash"] == split.hash, (
                f"{name} was measured on another split: remove its answers"
            )
    validation, test = (
        {
            **{arm: [answers_of(run)[part].right for run in each] for arm, each in runs.items()},
            **{name: [given.right(part) for given in each] for name, each in answers.items()},
        }
        for part in ("validation", "test")
    )
    return Evidence(
        name=plan["name"],
        seeds=seeds,
        ours=tuple(OURS),
        rivals=tuple(answers),
        validation=validation,
        test=test,
        shared_items=splits[0].test_is_own,
        seconds={
            **{arm: [seconds_of(run) for run in each] for arm, each in runs.items()},
            **{name: [given.metadata["seconds"] for given in each] for name, each in answers.items()},
        },
        grids={name: [given.metadata for given in each] for name, each in answers.items()},
        counts=splits[0].counts,
        metadata={
            **{name: plan[name] for name in ("kind", "settings", "supervised_baseline", "versions", "machine")},
            "split_hashes": {str(seed): split.hash for seed, split in zip(seeds, splits, strict=True)},
        },
        columns=_read_json(folder / COLUMNS) if (folder / COLUMNS).is_file() else None,
    )


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def seconds_of(run: Path) -> float:
    """Wall time of a training, from the file it begins with to the one it ends with; pauses of a resumed one count."""
    return (run / ANSWERS).stat().st_mtime - (run / "run.json").stat().st_mtime


def render(out: Path, results: Path) -> str:
    """The results of every data set under `out` that has a whole seed."""
    found = [gather(path.parent) for path in sorted(out.glob(f"*/{PLAN}"))]
    order = list(LABELS)
    evidence = sorted(
        (one for one in found if one is not None), key=lambda one: order.index(one.name) if one.name in order else 99
    )
    notes = [f"{one.name}: {one.notes}." for one in rivals.RIVALS]
    notes.append(f"{rivals.FEATURES} Of more than {rivals.MAX_UNLABELED:,} unlabelled rows, so many at random.")
    return write_report(results, evidence, notes)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(LABELS), help="names of sources, or paths")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--workers", type=int, default=default_workers())
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="settings of all runs")
    parser.add_argument("--results", type=Path, default=Path("docs/results/modalities"))
    parser.add_argument("--render-only", action="store_true", help="write the results of what is there")
    requested = parser.parse_args(words)

    for source in [] if requested.render_only else requested.data:
        origin = Origin.of(source, data_dir=requested.data_dir)
        dataset = origin.load(for_stream(source))
        folder = requested.out / Path(source).stem
        comparison = Comparison.of(folder, origin, dataset, seeds=requested.seeds, overrides=requested.set)
        compare(comparison, dataset, workers=requested.workers)
        render(requested.out, requested.results)
    print(render(requested.out, requested.results))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the worker processes
    try:
        main()
    except SynthsieveError as error:
        raise SystemExit(str(error)) from None
