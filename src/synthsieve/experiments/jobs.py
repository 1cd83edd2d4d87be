"""Jobs of an experiment: a process each, as many at once as there are cores, each single-threaded and resumable."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.config import Settings
from synthsieve.data.dataset import Dataset
from synthsieve.errors import SynthsieveError
from synthsieve.evaluation.accuracy import part_of, probabilities
from synthsieve.files import written_atomically
from synthsieve.learning.run_folder import Origin, RunFolder
from synthsieve.progress import Progress, Silent


@dataclass(frozen=True)
class Job:
    """One run to bring to its last step.

    Attributes:
        name: what people call it.
        folder: where it is.
        settings: everything that decides it.
        after: folders of jobs that must be done before.
        branch_of: the folder of the first phase it branches off; None for a first phase.
        judge: the folder of a run whose predictions say how pure a pool is; None without.
    """

    name: str
    folder: Path
    settings: Settings
    after: tuple[Path, ...] = ()
    branch_of: Path | None = None
    judge: Path | None = None

    @property
    def steps(self) -> int:
        """How many steps it takes, from where it begins."""
        return self.settings.total_steps - (self.settings.learning.steps if self.branch_of else 0)


def run_jobs(jobs: Sequence[Job], origin: Origin, *, workers: int, progress: Progress | None = None) -> None:
    """Bring every job to its end, each after those it waits for. Runs begun earlier go on where they stopped."""
    progress = progress or Silent()
    context = multiprocessing.get_context("spawn")
    counters: Any = context.Array(ctypes.c_int64, len(jobs))
    waiting, done = dict(enumerate(jobs)), set[Path]()
    running: dict[Future[str | None], int] = {}
    total = sum(job.steps for job in jobs)
    with (
        closing(progress),
        ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(counters,)) as pool,
    ):
        while waiting or running:
            for number in [n for n, job in waiting.items() if done.issuperset(job.after)]:
                running[pool.submit(_bring_to_its_end, number, waiting.pop(number), origin)] = number
            finished, _ = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
            for future in finished:
                job = jobs[running.pop(future)]
                _raise_for(future, job, pool)
                done.add(job.folder)
            progress.update(sum(counters), total, f"{len(done)} of {len(jobs)} runs done")


def default_workers() -> int:
    """As many as there are cores for this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_counters: Any = None  # of this worker process: steps done by each job


def _begin(counters: Any) -> None:
    import torch

    global _counters  # an initializer is how a pool hands over what no task may carry
    _counters = counters
    torch.set_num_threads(1)


def _bring_to_its_end(number: int, job: Job, origin: Origin) -> str | None:
    """In a worker: begin or resume one run. Returns the sentence of an error a user can cure, or None."""
    from synthsieve.learning.loop import branch, fit

    try:
        dataset = origin.load()
        if RunFolder.exists(job.folder):
            run = RunFolder.open(job.folder)
            run.check_asked(job.settings, dataset)
            run.sweep()
        else:
            run = RunFolder.create(job.folder, origin, job.settings, dataset)
        if job.branch_of is not None and not run.last.is_file():
            branch(run, RunFolder.open(job.branch_of))
        judge = None if job.judge is None else judge_of(job.judge)
        fit(run, dataset, judge=judge, progress=_Counting(number, job))
        store_right(run, dataset)
        _counters[number] = job.steps
    except SynthsieveError as error:
        return str(error)
    return None


def judge_of(folder: Path) -> Any:
    """x as stored -> the classes that the run in `folder` gives them."""
    run = RunFolder.open(folder)
    model = run.model()
    return lambda x: probabilities(model, run.encoding, x).argmax(axis=1)


def store_right(run: RunFolder, dataset: Dataset) -> None:
    """Which examples of validation and test the run's best model gets right: OUT/right.npz, once it is finished."""
    path = run.path / "right.npz"
    if path.is_file():
        return
    model, parts = run.model(), {}
    for part in ("validation", "test"):
        x, y = part_of(dataset, run.split, part)
        if len(y):
            parts[part] = probabilities(model, run.encoding, x).argmax(axis=1) == y
    with written_atomically(path) as partial, partial.open("wb") as file:
        np.savez(file, **parts)


def right(folder: Path, part: str) -> np.ndarray:
    """Which examples of a part a finished run got right: bool (n,); empty where the part is."""
    with np.load(folder / "right.npz", allow_pickle=False) as stored:
        return stored[part] if part in stored.files else np.empty(0, dtype=bool)


class _Counting(Silent):
    """Progress told to the parent process as a number of steps."""

    def __init__(self, number: int, job: Job) -> None:
        self.number, self.first = number, job.settings.total_steps - job.steps

    def update(self, done: int, total: int, message: str = "") -> None:
        _counters[self.number] = done - self.first


def _raise_for(future: Future[str | None], job: Job, pool: ProcessPoolExecutor) -> None:
    try:
        sentence = future.result()
    except BrokenProcessPool:
        sentence = "its process was killed, perhaps for want of memory: run the same command again to go on"
    if sentence is not None:
        pool.shutdown(wait=False, cancel_futures=True)
        raise SynthsieveError(f"{job.name}: {sentence}")
