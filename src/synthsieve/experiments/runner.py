"""Runs variants: training continued from one pretrained model in several ways, and their answers on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from synthsieve.data.dataset import Dataset
from synthsieve.evaluation.answers import PARTS, Answers, read_answers, write_answers
from synthsieve.evaluation.predict import part_of, probabilities
from synthsieve.experiments.arms import TableEntry, settings_of
from synthsieve.io.progress import Progress
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.settings import Settings
from synthsieve.training.data import TrainingData
from synthsieve.training.extra_data import ExtraData, Oracle
from synthsieve.training.loop import Trained, fit_in_memory, train
from synthsieve.training.recorder import RunRecorder, prepare_resume
from synthsieve.training.run_dir import RunDirectory
from synthsieve.training.state import CPU

ANSWERS = "answers.npz"


@dataclass(frozen=True)
class ArmResult:
    """A variant after its training in memory."""

    entry: TableEntry  # which one
    model: GenerativeClassifier  # its best weights
    extra_data: ExtraData | None  # the synthetic samples and pseudo-labels that it chose last
    answers: Answers | None  # on the held-out rows; None without any


def run_arms(
    base: Trained,
    entries: Sequence[TableEntry],
    settings: Settings,
    held_out: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    progress: Callable[[str], Progress],
) -> list[ArmResult]:
    """Continue `base` in each way, in memory; `held_out` are x, as stored, and y (n,) that training never sees."""
    results = []
    for entry in entries:
        arm = fit_in_memory(base.data, settings_of(entry, settings), base=base, progress=progress(entry.name))
        model = arm.best_model()
        answers = None
        if held_out is not None:
            answers = answers_on(model, base.data, np.arange(len(held_out[1])), *held_out)
        results.append(ArmResult(entry, model, arm.recorder.extra_data, answers))
    return results


def run_arm(
    run: RunDirectory,
    dataset: Dataset,
    *,
    base: RunDirectory | None = None,
    oracle: Path | None = None,
    device: torch.device = CPU,
    progress: Progress | None = None,
) -> dict[str, Answers]:
    """Train a run directory to its last step, from the end of `base` where it is given, and write its answers.

    An interrupted run is resumed; one whose checkpoints are all damaged starts again, with the same result.
    """
    (run.path / ANSWERS).unlink(missing_ok=True)  # written last: without it the run is not finished
    prepare_resume(run)
    label = None if oracle is None else oracle_of(oracle, device)
    state, data, recorder = run.new_train_state(device=device), run.data(dataset), RunRecorder(run, base=base)
    train(state, data, recorder, oracle=label, progress=progress, log=lambda _: None)  # the history has the warnings
    model, answers = recorder.best_model(state), {}
    for part in PARTS:
        x, y = part_of(dataset, run.split, part)
        if len(y):
            answers[part] = answers_on(model, data, getattr(run.split, part), x, y)
    write_answers(run.path / ANSWERS, answers)
    return answers


def answers_on(
    model: GenerativeClassifier, data: TrainingData, rows: np.ndarray, x: np.ndarray, y: np.ndarray
) -> Answers:
    """What the model answers on x, as stored, which are `rows` (n,) of the data set with labels y (n,)."""
    before = probabilities(model, data.encoding, x, calibrated=False)
    return Answers(rows, y, model.calibration.apply(before).astype(np.float32), before.astype(np.float32))


def answers_of(folder: Path) -> dict[str, Answers]:
    """What a finished run answered, by part; parts without examples are absent."""
    return read_answers(folder / ANSWERS)[0]


def is_finished(folder: Path) -> bool:
    """Whether a run was trained to its end: its answers are the last file written."""
    return (folder / ANSWERS).is_file()


def oracle_of(folder: Path, device: torch.device = CPU) -> Oracle:
    """x as stored -> the classes that the model of the run in `folder` gives them."""
    run = RunDirectory.open(folder)
    model = run.load_model(device=device)
    return lambda x: probabilities(model, run.encoding, x).argmax(axis=1)
