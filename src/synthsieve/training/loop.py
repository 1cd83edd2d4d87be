"""The training loop: batches in, history, best weights and checkpoints out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import torch

from synthsieve.data.dataset import Dataset
from synthsieve.evaluation.predict import Oracle
from synthsieve.io.progress import LOGGER, NOTHING, NullProgress, Progress
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.settings import Keep, Metric, Objective, Settings, TrainingSettings
from synthsieve.training.batches import BatchSource
from synthsieve.training.data import TrainingData
from synthsieve.training.drift import DriftMonitor, drifts, warn
from synthsieve.training.extra_data import ExtraData, choose_extra_data, is_due
from synthsieve.training.finish_generator import (
    copy_generator,
    finish_generator,
    finishing_work,
    seconds_of_finishing,
    wants_finishing,
)
from synthsieve.training.history import History, Row
from synthsieve.training.parallel import SINGLE_PROCESS, ProcessGroup
from synthsieve.training.recorder import Position, Recorder, RunRecorder
from synthsieve.training.run_dir import RunDirectory
from synthsieve.training.state import CPU, TrainState, non_finite
from synthsieve.training.step import learn_labels, take_step, with_synthetic

TIMED_STEPS = 5
SHARE = 0.9  # share of the given time that is planned for steps; the rest is for reading, evaluating and writing
MIN_STEPS = 10


@dataclass(frozen=True)
class FitResult:
    """How a training ended: the steps done, the step whose weights were best, and their accuracy on validation.

    `validation_accuracy` is None without validation rows; `seconds` is the wall time of this process's part;
    `stopped_because`: all steps were done, or what `stop` returned; `drifts`: a message for each metric that diverged.
    """

    steps: int
    best_step: int
    validation_accuracy: float | None
    seconds: float
    stopped_because: str
    drifts: tuple[str, ...] = ()


def fit(
    run: RunDirectory,
    dataset: Dataset,
    *,
    base: RunDirectory | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
    device: torch.device = CPU,
    **options: Any,
) -> FitResult:
    """Train in a run directory, from its last checkpoint if there is one, or else from the end of `base`.

    A resumed run equals an uninterrupted one. In data-parallel training rank 0 writes. `options` are those of `train`.
    """
    state = run.new_train_state(group, device)
    return train(state, run.data(dataset), RunRecorder(run, base=base, write=group.first), **options)


@dataclass(frozen=True)
class Trained:
    """A training that is finished, in memory; others can continue from there."""

    state: TrainState
    data: TrainingData
    recorder: Recorder
    result: FitResult

    def best_model(self) -> GenerativeClassifier:
        """The averaged weights that did best on validation."""
        return self.recorder.best_model(self.state)


def fit_in_memory(
    data: TrainingData, settings: Settings, *, base: Trained | None = None, device: torch.device = CPU, **options: Any
) -> Trained:
    """Train without writing any file, from the end of `base`, on its device, where it is given.

    `options` are those of `train`.
    """
    if base is None:
        state, recorder = data.init_state(settings, device=device), Recorder()
    else:
        state, recorder = base.state.fork(settings), base.recorder.branch()
    return Trained(state, data, recorder, train(state, data, recorder, **options))


def train(
    state: TrainState,
    data: TrainingData,
    recorder: Recorder,
    *,
    oracle: Oracle | None = None,
    progress: Progress | None = None,
    on_row: Callable[[Row], None] | None = None,
    stop: Callable[[], str | None] | None = None,
    log: Callable[[str], None] = warn,
) -> FitResult:
    """Train to the last step, from wherever `recorder` resumes.

    Args:
        state: is changed in place.
        recorder: keeps history, best weights and checkpoints, in memory or on disk.
        oracle: gives labels of synthetic x, for the figures of each choice; training never sees them.
        on_row: is called with each new row of the history.
        stop: is called after each step; a string, the reason, ends the training after an evaluation and a checkpoint.
        log: is called with a message for each metric that diverges, and for a damaged checkpoint.
    """
    settings, group, progress = state.settings, state.group, progress or NullProgress()
    log = log if group.first else lambda message: None
    group.check_sizes(_batch_sizes(settings))
    position = Position(BatchSource(data, settings, group, state.model.device), History())
    recorder.resume(state, position, log)
    if state.step == 0:
        data.start_generator(state)
    group.check_step(state.step)
    monitor = DriftMonitor(log, position.history.rows)
    started, stopped_because, total_steps = time.monotonic(), None, settings.total_steps
    ahead = state.step < settings.training.steps or (state.step == settings.training.steps and recorder.has_best)
    later = finishing_work(settings) if ahead and not position.generator_finished else 0

    def beside() -> tuple[int, int]:
        return (later if position.generator_finished else 0), later

    def finish() -> str | None:
        due = state.step == settings.training.steps and not position.generator_finished
        shown = _WithinStep(progress, state.step, total_steps, later)
        return _finish_generator(state, data, recorder, position, shown, stop) if due else None

    with closing(progress):
        while state.step < total_steps and (stopped_because := stopped_because or finish()) is None:
            if is_due(state.step, settings):  # step 7
                trial = Trial(state, data) if len(data.split.validation) else None
                shown = _WithinStep(progress, state.step, total_steps, beside=beside())
                before = position.extra_data
                chosen = choose_extra_data(state, data, before, trial=trial, oracle=oracle, progress=shown)
                recorder.save_extra_data(state, chosen)
                position.batches.add(chosen)
                position.extra_data = chosen
            if settings.augmentation.reinitialise and state.step == settings.augment_from_step:
                state.reinitialise()

            take_step(state, next(position.batches))
            position.history.add(state.metrics)
            stopped_because = None if stop is None else stop()
            at_end = stopped_because is not None or state.step in (settings.training.steps, total_steps)

            if state.step % settings.training.evaluate_every == 0 or at_end:
                scores, calibration = data.score_validation(state.averaged, settings)
                if scores is not None and not math.isfinite(scores.log_loss):
                    raise non_finite(state.step, "validation cross-entropy", scores.log_loss)
                figures = {} if scores is None else scores.as_row("validation")
                row = position.history.close_row(step=state.step, **figures)
                recorder.save_row(position.history.rows)
                monitor.check(row)
                LOGGER.debug("%s", row)
                if on_row is not None:
                    on_row(row)
                if _is_better(row, position.best, settings.training):
                    position.best = row
                    recorder.save_best(state, row, calibration)
            if state.step % settings.training.checkpoint_every == 0 or at_end:
                recorder.save_checkpoint(state, position)
            message = f"cross-entropy {state.metrics['cross_entropy']:.3f}"
            if position.history.rows and "validation_accuracy" in position.history.rows[-1]:
                message += f", validation {100 * position.history.rows[-1]['validation_accuracy']:.1f} %"
            progress.update(state.step, total_steps, message, beside())
        stopped_because = stopped_because or finish()
    best = position.best or {"step": state.step}
    stopped_because = stopped_because or f"all {total_steps} steps were done"
    seconds, found = time.monotonic() - started, tuple(map(str, drifts(position.history.rows)))
    return FitResult(state.step, int(best["step"]), best.get("validation_accuracy"), seconds, stopped_because, found)


def _finish_generator(
    state: TrainState,
    data: TrainingData,
    recorder: Recorder,
    position: Position,
    progress: Progress,
    stop: Callable[[], str | None] | None,
) -> str | None:
    """The generator steps that follow pretraining, where the settings have any; the reason if `stop` ended them.

    The generator of the best weights is trained, and training goes on with it. Processes that train one model together
    all do the same. A training that continues another, which was stopped before these steps, goes on without them.
    """
    if not wants_finishing(state.settings):
        return None
    state.group.wait()  # until the best weights are written
    if recorder.has_best:
        best, was_finished = recorder.best_model(state), recorder.is_finished()
        if not was_finished:
            found = finish_generator(best, data, state.settings, progress=progress, stop=stop)
            if isinstance(found, str):
                return found
            best = found
        copy_generator(best, state.model, state.averaged)
        state.group.wait()  # until every process has read them
        assert position.best is not None
        if not was_finished:
            recorder.save_finished(state, position.best, best)
        position.generator_finished = True
        recorder.save_checkpoint(state, position)
    return None


def _is_better(row: Row, best: Row | None, settings: TrainingSettings) -> bool:
    """Higher (balanced) accuracy on validation; at a tie the lower cross-entropy; without validation the later step.

    A row of augmented training is better than any of pretraining: variants are compared by what they lead to.
    """
    if best is None or settings.keep is Keep.LAST or "validation_accuracy" not in row:
        return True
    if best["step"] <= settings.steps < row["step"]:
        return True
    balanced = settings.keep_metric is Metric.BALANCED_ACCURACY
    metric = "validation_balanced_accuracy" if balanced else "validation_accuracy"
    return (row[metric], -row["validation_cross_entropy"]) > (best[metric], -best["validation_cross_entropy"])


class Trial:
    """Extra data -> accuracy on validation after `trial_steps` label updates with them, on a copy of the state."""

    def __init__(self, state: TrainState, data: TrainingData) -> None:
        self.state, self.data = state, data

    def __call__(self, extra_data: ExtraData) -> float:
        state = self.state.fork(fresh_rngs=True)
        batches = BatchSource(self.data, state.settings, device=state.model.device)
        batches.add(extra_data)
        state.model.train()
        for _ in range(state.settings.augmentation.trial_steps):
            learn_labels(state, with_synthetic(state, next(batches)))
            state.step += 1
            state.average()
        scores, _ = self.data.score_validation(state.averaged, state.settings)
        assert scores is not None
        return scores.accuracy


class _WithinStep(NullProgress):
    """Progress of something that happens at one step, shown in the message; it takes as long as `work` steps."""

    def __init__(
        self, outer: Progress, step: int, steps: int, work: int = 0, *, beside: tuple[int, int] = NOTHING
    ) -> None:
        self.outer, self.step, self.steps, self.work, self.beside = outer, step, steps, work, beside

    def update(self, done: int, total: int, message: str = "", beside: tuple[int, int] = NOTHING) -> None:
        so_far = (self.work * done // total, self.work) if self.work else self.beside
        self.outer.update(self.step, self.steps, f"{message} {done:,} of {total:,}", so_far)


def _batch_sizes(settings: Settings) -> dict[str, int]:
    """Every batch that is divided among processes, by the name of its setting."""
    sizes = {"training.batch_labeled": settings.training.batch_labeled}
    if settings.training.objective is Objective.JOINT:
        sizes["training.batch_unlabeled"] = settings.training.batch_unlabeled
    if settings.augmentation.steps:
        sizes["augmentation.batch_synthetic"] = settings.augmentation.batch_synthetic
        sizes["pseudo_labels.batch"] = settings.pseudo_labels.batch
        sizes["implicit.batch"] = settings.implicit.batch
    return sizes


def seconds_per_step(
    data: TrainingData,
    settings: Settings,
    *,
    device: torch.device = CPU,
    until: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> float:
    """Wall time of one step of pretraining, measured on up to `TIMED_STEPS` of them that begin before `until`.

    The first step, which also sets things up, is not counted unless it is the only one. The time of the generator steps
    after pretraining is divided among its steps.
    """
    settings = settings.pretrained()
    state, batches = data.init_state(settings, device=device), BatchSource(data, settings, device=device)
    times = [clock()]
    while len(times) <= TIMED_STEPS and (len(times) == 1 or times[-1] < until):
        take_step(state, next(batches))
        times.append(clock())
    counted = times[1:] if len(times) > 2 else times
    pace = (counted[-1] - counted[0]) / (len(counted) - 1)
    later = seconds_of_finishing(state.model, data, settings, clock=clock) if times[-1] < until else 0.0
    return pace + later / settings.training.steps


def shortened(settings: Settings, share: float) -> Settings:
    """The same schedule with a share of the steps of pretraining and of augmented training."""
    steps = max(MIN_STEPS, round(share * settings.training.steps))
    settings = settings.over(min(steps, settings.training.steps))
    more = settings.augmentation.steps
    augmentation = settings.augmentation.model_copy(update={"steps": min(more, max(MIN_STEPS, round(share * more)))})
    return settings.model_copy(update={"augmentation": augmentation})
