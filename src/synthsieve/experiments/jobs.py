"""Jobs of an experiment: as many processes at once as there are cores, each single-threaded, every job resumable."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from synthsieve.config import Settings
from synthsieve.data.dataset import Dataset
from synthsieve.errors import SynthsieveError, in_one_sentence
from synthsieve.evaluation.accuracy import part_of, probabilities
from synthsieve.evaluation.answers import Answers, read_answers, write_answers
from synthsieve.files import remove_stale_partials
from synthsieve.learning import checkpoint
from synthsieve.learning.run_folder import Origin, RunFolder
from synthsieve.progress import Progress, Silent

ANSWERS = "answers.npz"
TELL_EVERY = 0.5  # seconds from one word of a worker to the next


class Task(Protocol):
    """Something that a worker can bring to its end, from wherever an earlier one left it."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def place(self) -> Path:
        """The folder or file it fills: no other task has the same."""
        ...

    @property
    def after(self) -> tuple[Path, ...]:
        """Places of tasks that must be done before."""
        ...

    @property
    def steps(self) -> int:
        """How many steps it takes, from where it begins."""
        ...

    def is_done(self) -> bool:
        """Whether it was brought to its end."""
        ...

    def is_whole(self) -> bool:
        """Whether those that wait for it can use what it left there."""
        ...

    def carry_out(self, origin: Origin, dataset: Dataset, *, tell: Callable[[int], None]) -> None:
        """Begin it or go on with it, and tell now and then how many steps are done."""
        ...


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
    def place(self) -> Path:
        return self.folder

    @property
    def steps(self) -> int:
        return self.settings.total_steps - (self.settings.learning.steps if self.branch_of else 0)

    def is_done(self) -> bool:
        return is_finished(self.folder)

    def is_whole(self) -> bool:
        run = RunFolder.open(self.folder)
        return checkpoint.is_whole(run.last) and checkpoint.is_whole(run.best)

    def carry_out(self, origin: Origin, dataset: Dataset, *, tell: Callable[[int], None]) -> None:
        _bring_to_its_end(self, origin, dataset, tell=tell)


def run_jobs(jobs: Sequence[Task], origin: Origin, *, workers: int, progress: Progress | None = None) -> None:
    """Bring every job to its end, each after those it waits for; runs begun earlier go on where they stopped.

    One that is done, but damaged since, is done again where others wait for it. An error in one of them, or Ctrl-C,
    ends all workers at once: what they wrote is whole, and can be gone on with.
    """
    progress = progress or Silent()
    done = {job.place for job in jobs if job.is_done()}
    needed = {place for job in jobs if job.place not in done for place in job.after}
    done -= {job.place for job in jobs if job.place in done & needed and not job.is_whole()}
    waiting = [job for job in jobs if job.place not in done]
    steps = {job.place: job.steps if job.place in done else 0 for job in jobs}
    total = sum(job.steps for job in jobs)
    progress.update(sum(steps.values()), total, f"{len(done)} of {len(jobs)} done")
    with closing(progress), closing(_Crew(origin)) as crew:
        while waiting or crew.busy:
            ready = [job for job in waiting if done.issuperset(job.after)]
            for job in ready[: workers - len(crew.busy)]:
                waiting.remove(job)
                crew.begin(job)
            assert crew.busy, f"nobody does what {waiting[0].name} waits for"
            for job, steps_done in crew.news(seconds=1.0):
                steps[job.place] = job.steps if steps_done is None else steps_done
                if steps_done is None:
                    done.add(job.place)
            progress.update(sum(steps.values()), total, _state(len(done), len(jobs), crew))


def _state(done: int, total: int, crew: _Crew) -> str:
    """`3 of 12 done, now first phase, seed 0`."""
    running = [job.name for _, job in crew.busy.values()]
    return f"{done} of {total} done" + (f", now {running[0]}" if running else "")


def is_finished(folder: Path) -> bool:
    """Whether a job was brought to its end there: its answers are the last thing written."""
    return (folder / ANSWERS).is_file()


def default_workers() -> int:
    """As many as there are cores for this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Crew:
    """Worker processes, started when they are needed; each has one job at a time, and a line to this process."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.idle: list[tuple[Connection, SpawnProcess]] = []
        self.busy: dict[Connection, tuple[SpawnProcess, Task]] = {}

    def begin(self, job: Task) -> None:
        """Give a job to an idle worker, or to a new one."""
        line, process = self.idle.pop() if self.idle else self._start()
        self.busy[line] = process, job
        line.send(job)

    def news(self, *, seconds: float) -> Iterator[tuple[Task, int | None]]:
        """Jobs and the steps they have done, None at the end: of those that tell something within `seconds`."""
        telling = wait(list(self.busy), timeout=seconds)
        for line in [line for line in self.busy if line in telling]:
            process, job = self.busy[line]
            try:
                told = line.recv()
            except (EOFError, OSError):
                process.join()
                told = _ended(process)
            if isinstance(told, str) and told:
                raise SynthsieveError(f"{job.name}: {told}")
            if told == "":
                del self.busy[line]
                self.idle.append((line, process))
            yield job, told if isinstance(told, int) else None

    def close(self) -> None:
        """End every worker, whatever it is doing."""
        processes = [process for _, process in self.idle] + [process for process, _ in self.busy.values()]
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()

    def _start(self) -> tuple[Connection, SpawnProcess]:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, self.origin), daemon=True)
        with _interrupts_ignored():  # and by the worker from birth: Ctrl-C is this process's to answer
            process.start()
        theirs.close()
        return ours, process


def _ended(process: SpawnProcess) -> str:
    """Why a worker fell silent."""
    if process.exitcode is not None and process.exitcode < 0:
        return (
            f"its process was killed ({signal.Signals(-process.exitcode).name}), perhaps for want of memory: "
            "run the same command again to go on, with fewer --workers if it was memory"
        )
    return "its process failed, as shown above: please report it; the same command goes on where it stopped"


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only there may signals be set
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(line: Connection, origin: Origin) -> None:
    """In a worker: one job after another. Each is answered by steps done, then by "" or the sentence of an error."""
    import torch

    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    load = functools.cache(origin.load)
    while True:
        job = line.recv()
        try:
            job.carry_out(origin, load(), tell=line.send)
            line.send("")
        except Exception as error:
            said = in_one_sentence(error)
            if said is None:
                raise
            line.send(said)


def _end_with_parent() -> None:
    """A worker whose parent was killed must not go on: the next command would write to the same folders."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _bring_to_its_end(job: Job, origin: Origin, dataset: Dataset, *, tell: Callable[[int], None]) -> None:
    """Begin or resume one run."""
    from synthsieve.learning.loop import branch, fit

    remove_stale_partials(job.folder)
    (job.folder / ANSWERS).unlink(missing_ok=True)  # of one that is done again: it is no longer finished
    if RunFolder.exists(job.folder):
        run = RunFolder.open(job.folder)
        run.check_asked(job.settings, dataset)
    else:
        run = RunFolder.create(job.folder, origin, job.settings, dataset)
    if not _can_go_on(run):  # rather than an error that only who knows the folder could cure: it ends the same
        for path in (run.last, run.previous, run.best):
            path.unlink(missing_ok=True)
    if job.branch_of is not None and not run.last.is_file():
        branch(run, RunFolder.open(job.branch_of))
    judge = None if job.judge is None else judge_of(job.judge)
    telling = _Telling(tell, job.settings.total_steps - job.steps)
    fit(run, dataset, judge=judge, progress=telling, tell=lambda _: None)  # told at the end, from the history
    store_answers(run, dataset)


def _can_go_on(run: RunFolder) -> bool:
    """Whether one of the two checkpoints is whole, and the best weights so far are; or whether there is none yet."""
    there = [path for path in (run.last, run.previous) if path.is_file()]
    if run.best.is_file() and not checkpoint.is_whole(run.best):
        return False
    return not there or any(map(checkpoint.is_whole, there))


def judge_of(folder: Path) -> Any:
    """x as stored -> the classes that the run in `folder` gives them."""
    run = RunFolder.open(folder)
    model = run.model()
    return lambda x: probabilities(model, run.encoding, x).argmax(axis=1)


def store_answers(run: RunFolder, dataset: Dataset) -> None:
    """What the run's kept model answers on validation and test: OUT/answers.npz, once it is finished."""
    model, found = run.model(), {}
    for part in ("validation", "test"):
        x, y = part_of(dataset, run.split, part)
        if len(y):
            answers = probabilities(model, run.encoding, x).astype(np.float32)
            found[part] = Answers(getattr(run.split, part), y, answers)
    write_answers(run.path / ANSWERS, found)


def answers_of(folder: Path) -> dict[str, Answers]:
    """What a finished run answered, by part; parts without examples are absent."""
    return read_answers(folder / ANSWERS)[0]


class _Telling(Silent):
    """Progress told to the parent process, now and then, as a number of steps."""

    def __init__(self, tell: Callable[[int], None], first: int) -> None:
        self.tell, self.first, self.next = tell, first, 0.0

    def update(self, done: int, total: int, message: str = "") -> None:
        if time.monotonic() >= self.next:
            self.next = time.monotonic() + TELL_EVERY
            self.tell(done - self.first)
