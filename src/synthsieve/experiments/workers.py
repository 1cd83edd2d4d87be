"""Tasks of an experiment in worker processes: each single-threaded, every task resumable."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

import torch

from synthsieve.data.dataset import Dataset
from synthsieve.data.origin import Origin
from synthsieve.data.splits import split_dataset
from synthsieve.errors import CheckpointError, SynthsieveError, in_one_sentence
from synthsieve.experiments.baselines.features import Views
from synthsieve.experiments.baselines.search import BaselineResult, GridMethod, fit_baseline
from synthsieve.experiments.baselines.sklearn_models import CLASSICAL, MAX_UNLABELED
from synthsieve.experiments.runner import is_finished, run_arm
from synthsieve.io.files import remove_stale_partials
from synthsieve.io.progress import NOTHING, NullProgress, Progress
from synthsieve.settings import Settings
from synthsieve.training import checkpoint
from synthsieve.training.finish_generator import finishing_work
from synthsieve.training.run_dir import RunDirectory
from synthsieve.training.state import CPU

REPORT_INTERVAL = 0.5  # seconds between two reports of a worker


@dataclass(frozen=True)
class Job:
    """A task that trains one run to its last step."""

    name: str  # what people call it
    folder: Path  # the run's directory
    settings: Settings  # everything that decides it
    after: tuple[Path, ...] = ()  # folders of jobs that must be done before
    branch_of: Path | None = None  # the folder of the pretrained run that it continues; None without one
    oracle: Path | None = None  # the folder of a run whose predictions measure how pure a pool is; None without
    device: torch.device = CPU

    @property
    def output_path(self) -> Path:
        return self.folder

    @property
    def steps(self) -> int:
        """Of progress: those of training, and what the generator steps take."""
        if self.branch_of:
            return self.settings.total_steps - self.settings.training.steps
        return self.settings.total_steps + finishing_work(self.settings)

    def is_done(self) -> bool:
        return is_finished(self.folder)

    def is_valid(self) -> bool:
        run = RunDirectory.open(self.folder)
        return checkpoint.is_valid(run.last) and checkpoint.is_valid(run.best)

    def run(self, origin: Origin, dataset: Dataset, *, report: Callable[[int], None]) -> None:
        remove_stale_partials(self.folder)
        base = None if self.branch_of is None else RunDirectory.open(self.branch_of)
        run = RunDirectory.open_or_create(self.folder, origin, self.settings, dataset, base=base, device=self.device)
        progress = _StepReporter(report, self.settings.training.steps if self.branch_of else 0)
        run_arm(run, dataset, base=base, oracle=self.oracle, device=self.device, progress=progress)


@dataclass(frozen=True)
class ClassicalJob:
    """A task that fits a baseline method on one split, by grid search: OUT/seed-S/baselines/METHOD.npz."""

    name: str  # name of the job
    output_path: Path  # the file of its answer
    method: str  # the method's name
    candidates: tuple[str, ...]  # names of its grid
    settings: Settings  # of the experiment, for the data and the seed
    after: tuple[Path, ...] = ()  # jobs that must be done before: none

    @classmethod
    def of(cls, method: GridMethod, folder: Path, settings: Settings, dataset: Dataset) -> ClassicalJob:
        """The job that writes its result to `folder`."""
        candidates = tuple(candidate.name for candidate in method.grid(dataset))
        name = f"{method.name}, seed {settings.seed}"
        return cls(name, folder / f"{method.slug}.npz", method.name, candidates, settings)

    @property
    def steps(self) -> int:
        return len(self.candidates)

    def is_done(self) -> bool:
        """Whether there is a readable result of the same grid on the same split."""
        try:
            metadata = BaselineResult.read(self.output_path).metadata if self.output_path.is_file() else {}
        except CheckpointError:
            return False
        return (list(metadata.get("grid", ())), metadata.get("data")) == (list(self.candidates), self._data)

    def is_valid(self) -> bool:
        return True  # no other job depends on it

    def run(self, origin: Origin, dataset: Dataset, *, report: Callable[[int], None]) -> None:
        """Split as the runs of that seed do, fit the grid, write the answer."""
        remove_stale_partials(self.output_path.parent)
        (method,) = (one for one in CLASSICAL if one.name == self.method)
        split = split_dataset(dataset, self.settings.data, seed=self.settings.seed)
        views = Views(dataset, split, self.settings.seed, MAX_UNLABELED, MAX_UNLABELED)
        found = fit_baseline(method, views, metric=self.settings.comparison.metric, report=report)
        replace(found, metadata={**found.metadata, "data": self._data}).write(self.output_path)

    @property
    def _data(self) -> dict[str, object]:
        return self.settings.data.model_dump(mode="json")


class Task(Protocol):
    """Something that a worker can finish, from wherever an earlier one stopped."""

    @property
    def name(self) -> str: ...

    @property
    def output_path(self) -> Path:
        """Unlike that of any other task."""
        ...

    @property
    def after(self) -> tuple[Path, ...]:
        """The `output_path` of tasks that must be done before."""
        ...

    @property
    def steps(self) -> int: ...

    def is_done(self) -> bool: ...

    def is_valid(self) -> bool:
        """Whether tasks that depend on it can use its output."""
        ...

    def run(self, origin: Origin, dataset: Dataset, *, report: Callable[[int], None]) -> None:
        """Start or resume it; `report` is called now and then with the number of steps done."""
        ...


def run_jobs(
    tasks: Sequence[Task],
    origin: Origin,
    *,
    workers: int,
    progress: Progress | None = None,
) -> None:
    """Finish every task, each after those it depends on; interrupted ones are resumed.

    A finished task whose output was damaged since is run again where others depend on it. An error in one of them, or
    Ctrl-C, ends all workers at once; what they wrote can be resumed. With 0 `workers` all run in this process.
    """
    progress = progress or NullProgress()
    done = {task.output_path for task in tasks if task.is_done()}
    needed = {path for task in tasks if task.output_path not in done for path in task.after}
    done -= {task.output_path for task in tasks if task.output_path in done & needed and not task.is_valid()}
    waiting = [task for task in tasks if task.output_path not in done]
    steps = {task.output_path: task.steps if task.output_path in done else 0 for task in tasks}
    total = sum(task.steps for task in tasks)
    progress.update(sum(steps.values()), total, f"{len(done)} of {len(tasks)} done")
    pool = WorkerPool(origin) if workers else InProcessPool(origin)
    with closing(progress), closing(pool):
        while waiting or pool.running:
            ready = [task for task in waiting if done.issuperset(task.after)]
            for task in ready[: max(1, workers) - len(pool.running)]:
                waiting.remove(task)
                pool.start(task)
            assert pool.running, f"no task makes what {waiting[0].name} depends on"
            for task, steps_done in pool.poll(seconds=1.0):
                steps[task.output_path] = task.steps if steps_done is None else steps_done
                if steps_done is None:
                    done.add(task.output_path)
            now = f", now {pool.running[0].name}" if pool.running else ""
            progress.update(sum(steps.values()), total, f"{len(done)} of {len(tasks)} done{now}")


def default_workers(device: torch.device = CPU) -> int:
    """One for each core of this process; one where the networks are not on the CPU: trainings do not share a GPU."""
    if device.type != "cpu":
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class InProcessPool:
    """Runs one task at a time in this process, single-threaded, as a worker would.

    `poll` yields tasks that have advanced, with the steps they have done; None for one that is done.
    """

    def __init__(self, origin: Origin) -> None:
        self.running: list[Task] = []
        self._origin, self._load = origin, functools.cache(origin.load)

    def start(self, task: Task) -> None:
        self.running.append(task)

    def poll(self, *, seconds: float) -> Iterator[tuple[Task, int | None]]:
        reports: list[int] = []
        task, threads = self.running[0], torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            task.run(self._origin, self._load(), report=reports.append)
        finally:
            torch.set_num_threads(threads)
        self.running.remove(task)
        yield from ((task, steps) for steps in (*reports, None))

    def close(self) -> None:
        self.running.clear()


class WorkerPool:
    """Worker processes, started when needed; each runs one task at a time and reports through a pipe.

    Unlike concurrent.futures.ProcessPoolExecutor it can end workers in the middle of a task and name the signal that
    killed one.
    """

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._idle: list[tuple[Connection, BaseProcess]] = []
        self._busy: dict[Connection, tuple[BaseProcess, Task]] = {}

    @property
    def running(self) -> list[Task]:
        return [task for _, task in self._busy.values()]

    def start(self, task: Task) -> None:
        connection, process = self._idle.pop() if self._idle else self._start_worker()
        self._busy[connection] = process, task
        connection.send(task)

    def poll(self, *, seconds: float) -> Iterator[tuple[Task, int | None]]:
        for connection in wait(list(self._busy), timeout=seconds):
            assert isinstance(connection, Connection)
            process, task = self._busy[connection]
            try:
                message = connection.recv()  # steps done; None at the end; the text of an error
            except (EOFError, OSError):
                process.join()
                message = _death_message(process)
            if isinstance(message, str):
                raise SynthsieveError(f"{task.name}: {message}", code="worker-failed")
            if message is None:
                del self._busy[connection]
                self._idle.append((connection, process))
            yield task, message

    def close(self) -> None:
        processes = [process for _, process in self._idle] + [process for process, _ in self._busy.values()]
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()

    def _start_worker(self) -> tuple[Connection, BaseProcess]:
        context = multiprocessing.get_context("spawn")
        connection, remote = context.Pipe()
        process = context.Process(target=_work, args=(remote, self._origin), daemon=True)
        with _sigint_ignored():  # inherited by the worker: this process handles Ctrl-C
            process.start()
        remote.close()
        return connection, process


def _work(connection: Connection, origin: Origin) -> None:
    """In a worker: run one task after another."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    load = functools.cache(origin.load)
    while True:
        task = connection.recv()
        try:
            task.run(origin, load(), report=connection.send)
            connection.send(None)
        except Exception as error:
            message = in_one_sentence(error)
            if message is None:
                raise
            connection.send(message)


def _exit_with_parent() -> None:
    """A worker whose parent was killed must stop: the next command would write to the same folders."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _death_message(process: BaseProcess) -> str:
    if process.exitcode is not None and process.exitcode < 0:
        return (
            f"its process was killed ({signal.Signals(-process.exitcode).name}), possibly out of memory: "
            "run the same command again to resume, with fewer --workers if it was memory"
        )
    return "its process failed, as shown above: please report it; the same command resumes where it stopped"


@contextmanager
def _sigint_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # signals can only be set there
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _StepReporter(NullProgress):
    """Progress that is reported now and then as a number of steps."""

    def __init__(self, report: Callable[[int], None], first: int) -> None:
        self.report, self.first, self.next = report, first, 0.0

    def update(self, done: int, total: int, message: str = "", beside: tuple[int, int] = NOTHING) -> None:
        if time.monotonic() >= self.next:
            self.next = time.monotonic() + REPORT_INTERVAL
            self.report(done + beside[0] - self.first)
