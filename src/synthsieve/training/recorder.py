"""What a training leaves behind: in memory, or in a run directory from which it can be resumed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from synthsieve.errors import CheckpointError, ConfigError
from synthsieve.io.files import link_or_copy, remove_stale_partials
from synthsieve.io.tensors import invalid_as_damaged
from synthsieve.models.calibration import Calibration
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.training import checkpoint, extra_data, history
from synthsieve.training.batches import BatchSource
from synthsieve.training.extra_data import ExtraData
from synthsieve.training.history import History, Row
from synthsieve.training.run_dir import RunDirectory
from synthsieve.training.state import TrainState


@dataclass
class Position:
    """The state of the training loop besides the weights.

    Attributes:
        best: the row whose weights were kept.
        generator_finished: whether the generator steps after pretraining are done.
    """

    batches: BatchSource
    history: History
    best: Row | None = None
    extra_data: ExtraData | None = None
    generator_finished: bool = False

    def notes(self) -> dict[str, Any]:
        """All of it as JSON, with rows and extra data by reference."""
        return {
            "batches": self.batches.state(),
            "history": self.history.state(),
            "best": self.best,
            "extra_data": None if self.extra_data is None else self.extra_data.step,
            "generator_finished": self.generator_finished,
        }

    def restore(self, notes: Mapping[str, Any], rows: Sequence[Row], chosen: ExtraData | None) -> None:
        """Go back to where `notes` was taken."""
        self.best = None if notes["best"] is None else history.checked_row(notes["best"])
        self.extra_data = chosen
        self.generator_finished = bool(notes.get("generator_finished"))  # a run of version 0.1 has none
        if chosen is not None:
            self.batches.add(chosen)
        self.batches.restore(notes["batches"])
        self.history.restore(notes["history"], rows)


class Recorder:
    """Follows a training and keeps history, best weights, last extra data and last position in memory.

    In data-parallel training every process has one.
    """

    def __init__(self, notes: Mapping[str, Any] | None = None, rows: Sequence[Row] = ()) -> None:
        self.rows: list[Row] = list(rows)
        self.best_weights: dict[str, Tensor] = {}
        self.calibration = Calibration()
        self.finished = False
        self.extra_data: ExtraData | None = None
        self._notes = notes

    def resume(self, state: TrainState, position: Position, log: Callable[[str], None]) -> None:
        """Put both where an earlier training stopped, if there is one; `log` is called with warnings."""
        if self._notes is not None:
            position.restore(self._notes, self.rows, self.extra_data)

    def save_row(self, rows: Sequence[Row]) -> None:
        """The history has a new row, the last of `rows`."""
        self.rows = list(rows)

    def save_best(self, state: TrainState, row: Row, calibration: Calibration) -> None:
        """The averaged weights are the best so far."""
        self.best_weights = {name: value.clone() for name, value in state.averaged.state_dict().items()}
        self.calibration = calibration

    def save_finished(self, state: TrainState, row: Row, model: GenerativeClassifier) -> None:
        """`model` has the best weights, of `row`, with a generator that was trained on."""
        self.best_weights = {name: value.clone() for name, value in model.state_dict().items()}
        self.finished = True

    def is_finished(self) -> bool:
        """Whether the best weights are those of `save_finished`: training may have stopped right after it."""
        return self.finished

    @property
    def has_best(self) -> bool:
        """Whether it has best weights of its own; a training that continues another has none at first."""
        return bool(self.best_weights)

    def save_extra_data(self, state: TrainState, chosen: ExtraData) -> None:
        """Step 7 chose extra data."""
        self.extra_data = chosen

    def save_checkpoint(self, state: TrainState, position: Position) -> None:
        """A place from which training can be resumed."""
        self._notes = position.notes()

    def best_model(self, state: TrainState) -> GenerativeClassifier:
        """After the training: the networks with the best averaged weights."""
        model = copy.deepcopy(state.averaged)
        model.load_state_dict(self.best_weights)
        model.calibration = self.calibration
        return model

    def branch(self) -> Recorder:
        """A recorder for a training that continues from the last checkpoint of this one."""
        return Recorder(self._notes, self.rows)


class RunRecorder(Recorder):
    """Writes history, checkpoints and extra data to a run directory and resumes from it.

    A new run with a `base` starts where that one ended; the settings of the two may differ in what comes after
    `training.steps`. The result equals that of a run that never stopped there.
    """

    def __init__(self, run: RunDirectory, *, base: RunDirectory | None = None, write: bool = True) -> None:
        super().__init__()
        self.run, self.base, self._write = run, base, write
        self._checkpointed: ExtraData | None = None

    def resume(self, state: TrainState, position: Position, log: Callable[[str], None]) -> None:
        run = self.run
        if run.last.is_file() or run.previous.is_file():
            try:
                self._restore(run.last, state, position)
            except CheckpointError as error:
                try:
                    self._restore(run.previous, state, position)
                except CheckpointError:
                    raise error from None
                found = f"resuming from the checkpoint before it, of step {state.step}"
                log(f"{run.last} cannot be used; {found} ({error})")
                if self._write:
                    link_or_copy(run.previous, run.last)
        elif self.base is not None:
            steps, augment_from = state.settings.training.steps, state.settings.augment_from_step
            if augment_from < steps:
                raise ConfigError(
                    f"augmentation.augment_from_step={augment_from} lies within pretraining (training.steps={steps}), "
                    "which variants share: leave it out",
                    code="augment-in-pretraining",
                )
            notes = checkpoint.load(self.base.last, state, pretrained=True)
            if state.step != steps:
                raise CheckpointError(
                    f"{self.base.path} is at step {state.step}, not at training.steps={steps}: finish it with --resume",
                    code="unfinished-run",
                )
            position.restore(notes, history.read(self.base.history), None)
        else:
            return
        self._checkpointed = position.extra_data
        self.save_row(position.history.rows)

    def _restore(self, path: Path, state: TrainState, position: Position) -> None:
        notes = checkpoint.load(path, state)
        with invalid_as_damaged(path):
            chosen_at = notes.get("extra_data")
            chosen = None if chosen_at is None else extra_data.read(self.run.path, int(chosen_at))
            rows = [row for row in history.read(self.run.history) if row["step"] <= state.step]
            position.restore(notes, rows, chosen)

    def save_row(self, rows: Sequence[Row]) -> None:
        if self._write:
            history.write(self.run.path, rows)

    def save_best(self, state: TrainState, row: Row, calibration: Calibration) -> None:
        if self._write:
            checkpoint.save_weights(self.run.best, state, {"best": row, "calibration": calibration.as_dict()})

    def save_finished(self, state: TrainState, row: Row, model: GenerativeClassifier) -> None:
        if self._write:
            notes = {"best": row, "calibration": model.calibration.as_dict(), "generator_finished": True}
            checkpoint.save_weights(self.run.best, state, notes, best=model, step=int(row["step"]))

    @property
    def has_best(self) -> bool:
        return self.run.best.is_file()

    def is_finished(self) -> bool:
        return bool(checkpoint.read_notes(self.run.best).get("generator_finished"))

    def save_extra_data(self, state: TrainState, chosen: ExtraData) -> None:
        if self._write:
            extra_data.write(chosen, self.run.path, state)

    def save_checkpoint(self, state: TrainState, position: Position) -> None:
        if self._write:
            checkpoint.save(self.run.last, state, position.notes(), previous=self.run.previous)
            extra_data.remove_older(self.run.path, self._checkpointed, position.extra_data)
        self._checkpointed = position.extra_data

    def best_model(self, state: TrainState) -> GenerativeClassifier:
        return self.run.load_model(device=state.model.device)


def prepare_resume(run: RunDirectory) -> None:
    """Remove what a killed process left half written, and checkpoints that are all damaged: training starts again."""
    remove_stale_partials(run.path)
    checkpoints = [path for path in (run.last, run.previous) if path.is_file()]
    best_is_damaged = run.best.is_file() and not checkpoint.is_valid(run.best)
    if best_is_damaged or (checkpoints and not any(map(checkpoint.is_valid, checkpoints))):
        for path in (*checkpoints, run.best):
            path.unlink(missing_ok=True)
