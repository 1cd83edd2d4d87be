"""`synthsieve.fit`: train one generative classifier into a run folder, or resume an interrupted training."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import torch

from synthsieve.api.source import SourceOptions, read_source
from synthsieve.data.dataset import Dataset
from synthsieve.data.origin import Origin
from synthsieve.errors import ConfigError
from synthsieve.evaluation.metrics import Metrics
from synthsieve.evaluation.predict import score_part
from synthsieve.evaluation.prior_match import PriorMatch
from synthsieve.io.devices import AUTO, device_of
from synthsieve.io.files import remove_stale_partials
from synthsieve.io.locks import locked
from synthsieve.io.progress import NullProgress, Progress
from synthsieve.models.calibration import Calibration
from synthsieve.settings import Objective, Settings
from synthsieve.training import loop
from synthsieve.training.history import require_tensorboard, tensorboard_writer
from synthsieve.training.parallel import ProcessGroup, init_process_group, is_restart
from synthsieve.training.reference_file import attach_or_fit
from synthsieve.training.run_dir import RunDirectory
from synthsieve.training.state import check_precision


@dataclass(frozen=True)
class FitSummary:
    """A finished training."""

    run: RunDirectory  # the run folder: settings, split, encoding; `run.load_model()` loads the trained model
    steps: int  # steps done in all
    best_step: int  # the step whose weights were kept
    validation_accuracy: float | None  # of those weights; None without validation rows
    test: Metrics | None  # figures on the test rows; None without test rows
    seconds: float  # wall time of this call's part of the training
    warnings: tuple[str, ...]  # a sentence for each figure that diverged during training
    prior_match: PriorMatch | None = None  # how well drawn latents match encoded examples; None if supervised
    calibration: Calibration | None = None  # of its probabilities; None in all but the main process
    is_main: bool = True  # False in all but one of the processes that torchrun started

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "out": str(self.run.path),
            "steps": self.steps,
            "best_step": self.best_step,
            "validation_accuracy": self.validation_accuracy,
            "test_accuracy": None if self.test is None else self.test.accuracy,
            "test_calibration_error": None if self.test is None else self.test.calibration_error,
            "calibration": None if self.calibration is None else self.calibration.as_dict(),
            "test_interval": None if self.test is None else self.test.interval(),
            "seconds": round(self.seconds, 1),
            "drifts": list(self.warnings),
            "prior_match": None if self.prior_match is None else self.prior_match.as_dict(),
        }

    def lines(self) -> list[str]:
        """The summary that the command line prints."""
        lines = [f"{self.steps} steps in {self.seconds:.0f} s, best on validation at step {self.best_step}"]
        if self.validation_accuracy is not None:
            lines.append(f"validation accuracy {100 * self.validation_accuracy:.1f} %")
        if self.test is not None:
            lines.append(self.test.describe("test"))
        if self.calibration is not None:
            lines.append(self.calibration.describe())
        if self.prior_match is not None:
            lines.append(self.prior_match.describe())
        return [*lines, f"draw samples with: synthsieve sample {self.run.path} --per-class 10"]


def fit(
    source: Any,
    out: str | Path,
    *,
    supervised: bool = False,
    augment: bool = False,
    resume: bool = False,
    tensorboard: bool = False,
    threads: int | None = None,
    device: str | torch.device = AUTO,
    progress: Callable[[str], Progress] | None = None,
    log: Callable[[str], None] = print,
    **options: Unpack[SourceOptions],
) -> FitSummary:
    """Train a generative classifier on few labels and many unlabelled examples.

    Under torchrun all processes train one model together; one of them writes.

    Args:
        source: the data, as for `run`.
        out: the folder to write to.
        supervised: train the baseline that uses only the labelled rows.
        augment: continue after training.steps with synthetic data and pseudo-labels.
        resume: continue from the last checkpoint in `out`.
        tensorboard: also write TensorBoard event files.
        threads: torch threads of this process; None leaves the number as it is.
        device: "auto", "cpu", "cuda", "cuda:N" or "mps"; auto takes a GPU if there is one.
        progress: returns the progress bar of a stage by its name; None shows none.
        log: called with messages about the data and with warnings.
        options: label, text, schema, features, image_size, data_dir, test, validation, labels, config, overrides and
            seed, as for `run`.
    """
    out, bar, torch_device = Path(out), progress or (lambda name: NullProgress()), device_of(device)
    if tensorboard:
        require_tensorboard()
    changes = {"training": {"objective": "supervised"}} if supervised else {}
    origin, dataset, settings = read_source(source, out, changes, progress=bar("data"), **options)
    settings = _with_augmentation(settings) if augment else settings.pretrained()
    check_precision(settings, torch_device)
    with ExitStack() as stack:
        group = stack.enter_context(init_process_group())
        if group.first:
            stack.enter_context(locked(out))
        else:
            log, bar = (lambda message: None), (lambda name: NullProgress())
        run = _create_or_resume(
            out, origin, settings, dataset, group, resume=resume, threads=threads, device=torch_device, log=log
        )
        split = run.split
        for note in (*dataset.notes, *split.notes):
            log(note)
        log(
            f"{dataset.name}: {len(split.labeled)} labelled, {len(split.unlabeled)} unlabelled, "
            f"{len(split.validation)} validation, {len(split.test)} test"
        )
        result = loop.fit(
            run,
            dataset,
            progress=bar("fit"),
            on_row=tensorboard_writer(out) if tensorboard and group.first else None,
            log=lambda sentence: log(f"warning: {sentence}"),
            group=group,
            device=torch_device,
        )
        scores = match = calibration = None
        if group.first:
            model = run.load_model(device=torch_device)
            calibration = model.calibration
            scores = score_part(model, run.encoding, dataset, split, "test")
            if run.settings.training.objective is Objective.JOINT:
                match = attach_or_fit(run, model, dataset)
    best = result.best_step, result.validation_accuracy
    seconds, drifts = result.seconds, result.drifts
    return FitSummary(run, result.steps, *best, scores, seconds, drifts, match, calibration, is_main=group.first)


def _create_or_resume(
    out: Path,
    origin: Origin,
    settings: Settings,
    dataset: Dataset,
    group: ProcessGroup,
    *,
    resume: bool,
    threads: int | None,
    device: torch.device,
    log: Callable[[str], None],
) -> RunDirectory:
    """The run in `out` where there is one to resume, else a new one."""
    exists = RunDirectory.exists(out)
    group.wait()  # until every process has looked
    if threads is not None:
        torch.set_num_threads(threads)
    if not (exists and (resume or is_restart())):
        return RunDirectory.create(out, origin, settings, dataset, write=group.first, device=device)
    run = RunDirectory.open(out)
    run.check_unchanged(settings, dataset)
    torch.set_num_threads(threads or run.threads)
    if group.first:
        remove_stale_partials(run.path)
    if threads not in (None, run.threads):
        log(f"started with {run.threads} threads, resuming with {threads}: sums may round differently")
    if str(device) != run.device:
        log(f"started on {run.device}, resuming on {device}: sums may round differently")
    return run


def _with_augmentation(settings: Settings) -> Settings:
    """Settings with augmented training after the first part; refused where there is nothing to augment with."""
    if not settings.augmentation.steps and settings.augmentation.augment_from_step is None:
        settings = settings.with_retraining()
    if settings.augment_from_step >= settings.total_steps:
        raise ConfigError(
            f"augmentation.augment_from_step={settings.augment_from_step} must lie before the last step, "
            f"{settings.total_steps}: lower it, or raise augmentation.steps",
            code="augment-after-end",
        )
    uses_generator = settings.augmentation.enabled or settings.implicit.enabled
    if settings.training.objective is Objective.SUPERVISED and uses_generator:
        raise ConfigError(
            "training.objective=supervised trains no generator to draw from: "
            "leave --augment out, or use pseudo-labels only with --set augmentation.enabled=false",
            code="no-generator",
        )
    return settings
