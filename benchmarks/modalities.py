"""Few labels across kinds of data: our arms, their supervised twin and scikit-learn's rivals on the same splits.

    python benchmarks/modalities.py --data digits --seeds 2 --out runs/modalities
    python benchmarks/modalities.py --data-dir DATA --out runs/modalities          every data set, 5 seeds
    python benchmarks/modalities.py --out runs/modalities --render-only

A stopped run goes on where it was: every training and every rival's answer is kept under OUT. What is there, whole
seeds at a time, goes to RESULTS.md and RESULTS.json.

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
from modalities_report import TWIN, Evidence, write_report

from synthsieve.config import Settings, settings_from
from synthsieve.data.dataset import Dataset, Kind
from synthsieve.data.splits import Split, split_dataset
from synthsieve.defaults import settings_for
from synthsieve.errors import SynthsieveError
from synthsieve.experiments.arms import Arm, Cell
from synthsieve.experiments.classical import Answer, Method, answer
from synthsieve.experiments.jobs import ANSWERS, Job, answers_of, default_workers, is_finished, run_jobs
from synthsieve.experiments.supervised import twin_settings
from synthsieve.experiments.table import Experiment, Unit
from synthsieve.files import write_json
from synthsieve.learning.run_folder import Origin, RunFolder, versions
from synthsieve.progress import for_stream

PLAN, COLUMNS = "plan.json", "columns.json"
LABELS = {"digits": 50, "mnist": 100, "adult": 200, "spoken-digits": 50, "sst2": 200}
# In the order of a tie: the simpler first.
OURS = {
    "joint": Arm.FIRST_PHASE,
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
        twin: of the twin.
        seeds: each with its own split.
    """

    folder: Path
    origin: Origin
    settings: Settings
    twin: Settings
    seeds: tuple[int, ...]

    @classmethod
    def of(cls, folder: Path, origin: Origin, dataset: Dataset, *, seeds: int, overrides: Iterable[str]) -> Comparison:
        """With the data set's default preset, and labels as many as LABELS says."""
        asked = LABELS.get(origin.source)
        labels = [] if asked is None else [f"data.labels={asked}"]
        settings = settings_for(origin.source, dataset, overrides=[*labels, *overrides])
        if not settings.augmentation.steps:
            settings = settings.with_second_phase()
        twin = twin_settings(settings).model_copy(update={"model": settings.model})  # both towers, where there are two
        return cls(folder, origin, settings, twin, tuple(range(seeds)))

    @cached_property
    def experiment(self) -> Experiment:
        sizes = self.settings.proof.pool_sizes
        pool = sizes[min(1, len(sizes) - 1)]
        pooled = (Arm.CRAIG, Arm.CRAIG_PSEUDO)
        cells = tuple(Cell(arm, pool if arm in pooled else 0) for arm in OURS.values())
        return Experiment(self.folder, self.origin, self.settings, self.seeds, cells)

    def jobs(self, dataset: Dataset) -> list[Job]:
        """Our arms and the twin, seed by seed; nobody judges how pure the pools are."""
        judge = self.experiment.judge
        ours = [
            replace(job, after=tuple(folder for folder in job.after if folder != judge), judge=None)
            for job in self.experiment.jobs(dataset)
            if job.folder != judge
        ]
        twins = [
            Job(f"{TWIN}, seed {seed}", self.run(TWIN, seed), self.twin.model_copy(update={"seed": seed}))
            for seed in self.seeds
        ]
        return sorted([*ours, *twins], key=lambda job: job.settings.seed)

    def run(self, arm: str, seed: int) -> Path:
        """The folder of one of our arms, or of the twin."""
        if arm == TWIN:
            return self.folder / f"seed-{seed}" / "supervised-twin"
        (cell,) = (cell for cell in self.experiment.cells if cell.arm is OURS[arm])
        return self.experiment.folder(cell, Unit(seed))

    def rival(self, rival: Method, seed: int) -> Path:
        """The file of a rival's answer."""
        return self.folder / f"seed-{seed}" / "rivals" / f"{rival.slug}.npz"

    def split(self, dataset: Dataset, seed: int) -> Split:
        """The same split that the runs of that seed have."""
        return split_dataset(dataset, self.settings.data, seed=seed)

    def is_whole(self, seed: int) -> bool:
        """Whether all of that seed is there."""
        runs = all(is_finished(self.run(arm, seed)) for arm in (*OURS, TWIN))
        return runs and all(self.rival(rival, seed).is_file() for rival in rivals.RIVALS)

    def write_plan(self, dataset: Dataset, workers: int) -> None:
        write_json(
            self.folder / PLAN,
            {
                "name": dataset.name,
                "kind": str(dataset.kind),
                "origin": asdict(self.origin),
                "settings": self.settings.model_dump(mode="json"),
                "twin": self.twin.model_dump(mode="json"),
                "seeds": list(self.seeds),
                "versions": versions(),
                "machine": {"cores": os.cpu_count(), "workers": workers, "threads_of_a_process": 1},
            },
        )

    @classmethod
    def read_plan(cls, folder: Path, plan: dict[str, Any]) -> Comparison:
        settings, twin = (settings_from(plan[name]) for name in ("settings", "twin"))
        return cls(folder, Origin(**plan["origin"]), settings, twin, tuple(plan["seeds"]))


def compare(comparison: Comparison, dataset: Dataset, *, workers: int) -> None:
    """Bring the rivals, our arms and the twin to their end."""
    comparison.experiment.check(dataset)
    for job in comparison.jobs(dataset):
        if RunFolder.exists(job.folder):
            RunFolder.open(job.folder).check_asked(job.settings, dataset)  # the twins too
    comparison.write_plan(dataset, workers)
    answer_rivals(comparison, dataset, workers=workers)
    name = comparison.folder.name
    run_jobs(comparison.jobs(dataset), comparison.origin, workers=workers, progress=for_stream(name))
    if dataset.kind == Kind.TABLE and not (comparison.folder / COLUMNS).is_file():
        first = RunFolder.open(comparison.run("joint", comparison.seeds[0]))
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
            answer(rival, views).write(path)


def gather(folder: Path) -> Evidence | None:
    """What a folder of OUT holds, for the seeds that are whole; None where none is."""
    plan = _read_json(folder / PLAN)
    comparison = Comparison.read_plan(folder, plan)
    seeds = tuple(seed for seed in comparison.seeds if comparison.is_whole(seed))
    if not seeds:
        return None
    runs = {arm: [comparison.run(arm, seed) for seed in seeds] for arm in (*OURS, TWIN)}
    answers = {one.name: [Answer.read(comparison.rival(one, seed)) for seed in seeds] for one in rivals.RIVALS}
    splits = [RunFolder.open(run).split for run in runs["joint"]]
    for name, each in answers.items():
        for split, given in zip(splits, each, strict=True):
            assert given.about["split_hash"] == split.hash, f"{name} was judged on another split: remove its answers"
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
            **{name: [given.about["seconds"] for given in each] for name, each in answers.items()},
        },
        grids={name: [given.about for given in each] for name, each in answers.items()},
        counts=splits[0].counts,
        about={
            **{name: plan[name] for name in ("kind", "settings", "twin", "versions", "machine")},
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
    notes.append(f"{rivals.FEATURES} Of more than {rivals.MOST_UNLABELED:,} unlabelled rows, so many at random.")
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
    asked = parser.parse_args(words)

    for source in [] if asked.render_only else asked.data:
        origin = Origin.of(source, data_dir=asked.data_dir)
        dataset = origin.load(for_stream(source))
        folder = asked.out / Path(source).stem
        comparison = Comparison.of(folder, origin, dataset, seeds=asked.seeds, overrides=asked.set)
        compare(comparison, dataset, workers=asked.workers)
        render(asked.out, asked.results)
    print(render(asked.out, asked.results))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the worker processes
    try:
        main()
    except SynthsieveError as error:
        raise SystemExit(str(error)) from None
