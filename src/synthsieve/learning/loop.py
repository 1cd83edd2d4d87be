"""The loop around the step: batches in, checkpoints and history out, the best on validation kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import torch

from synthsieve.config import Keep, LearningSettings, Metric, Objective, Settings
from synthsieve.data.dataset import Dataset
from synthsieve.errors import CheckpointError, ConfigError
from synthsieve.evaluation.accuracy import Scores, score_part
from synthsieve.files import named_again, write_text
from synthsieve.learning import checkpoint
from synthsieve.learning.additions import (
    Additions,
    Judge,
    branched_off,
    choose_additions,
    is_due,
    read,
    remove_older,
    write,
)
from synthsieve.learning.batch_source import BatchSource
from synthsieve.learning.drift import Watch, drifts, warn
from synthsieve.learning.history import History, Row, checked_row
from synthsieve.learning.learner import CPU, Learner, non_finite
from synthsieve.learning.run_folder import RunFolder
from synthsieve.learning.step import learn_labels, take_step
from synthsieve.progress import Progress, Silent
from synthsieve.together import ALONE, Together


@dataclass(frozen=True)
class FitResult:
    """How a fit ended.

    Attributes:
        steps: steps done in all.
        best_step: the step whose weights were kept as the best.
        validation_accuracy: the accuracy they had there; None without validation rows.
        seconds: wall time of this process's part.
        stopped_because: in words: all steps were done, or what `stop` said.
        drifts: a sentence for each figure that ran away.
    """

    steps: int
    best_step: int
    validation_accuracy: float | None
    seconds: float
    stopped_because: str
    drifts: tuple[str, ...] = ()


def fit(
    run: RunFolder,
    dataset: Dataset,
    *,
    judge: Judge | None = None,
    progress: Progress | None = None,
    on_row: Callable[[Row], None] | None = None,
    stop: Callable[[], str | None] | None = None,
    tell: Callable[[str], None] = warn,
    together: Together = ALONE,
    device: torch.device = CPU,
) -> FitResult:
    """Train to the last step, from the last checkpoint when there is one; a resumed run equals an unbroken one.

    `judge` names the classes of synthetic x for the figures of each choice; learning never sees its answers. `on_row`
    is called with each new row of the history, `tell` with a sentence on each figure that runs away, or on a damaged
    checkpoint. `stop` is asked after each step whether to end there, and why; what was learned until then is evaluated
    and kept. Of several processes that train `together` the first one writes. The networks are on `device`.
    """
    progress = progress or Silent()
    tell = tell if together.first else _silently
    checkpoints = [path for path in (run.last, run.previous) if path.is_file()]
    if checkpoints:
        run.check_size(max(checkpoints, key=lambda path: path.stat().st_size))
    settings, total_steps = run.settings.learning, run.settings.total_steps
    together.check_sizes(_batch_sizes(run.settings))
    learner, source = run.new_learner(together, device), BatchSource(run, dataset, together.share, device)
    history = History(run.path, write=together.first)
    best: Row | None = None
    additions: Additions | None = None
    if checkpoints:
        additions, best = _take_up(run, learner, source, history, tell)
    together.check_step(learner.step)
    checkpointed = additions
    watch = Watch(tell, history.rows)
    started, reason = time.monotonic(), None
    with closing(progress):
        while learner.step < total_steps and reason is None:
            if is_due(learner.step, run.settings):  # step 7
                trial = Trials(learner, run, dataset) if len(run.split.validation) else None
                drawing = _Within(progress, learner.step, total_steps)
                additions = choose_additions(
                    learner, run, dataset, additions, trial=trial, judge=judge, progress=drawing
                )
                if together.first:
                    write(additions, run.path, learner)
                source.add(additions)
            take_step(learner, next(source))
            history.add(learner.terms)
            reason = None if stop is None else stop()
            at_end = reason is not None or learner.step in (settings.steps, total_steps)  # of a phase
            if learner.step % settings.evaluate_every == 0 or at_end:
                scores = score_part(learner.averaged, run.encoding, dataset, run.split, "validation")
                if scores is not None and not math.isfinite(scores.cross_entropy):
                    raise non_finite(learner.step, "validation cross-entropy", scores.cross_entropy)
                row = history.close_row(step=learner.step, **_figures(scores))
                watch.look(row)
                if on_row is not None:
                    on_row(row)
                if best is None or settings.keep is Keep.LAST or _better(row, best, settings):
                    best = row
                    if together.first:
                        checkpoint.save_weights(run.best, learner, {"best": best})
            if learner.step % settings.checkpoint_every == 0 or at_end:
                chosen_at = None if additions is None else additions.step
                notes = {"batches": source.state(), "history": history.state(), "best": best, "additions": chosen_at}
                if together.first:
                    checkpoint.save(run.last, learner, notes, previous=run.previous)
                    remove_older(run.path, checkpointed, additions)
                checkpointed = additions
            progress.update(learner.step, total_steps, _message(learner, history))
    best = best or {"step": learner.step}
    return FitResult(
        steps=learner.step,
        best_step=int(best["step"]),
        validation_accuracy=best.get("validation_accuracy"),
        seconds=time.monotonic() - started,
        stopped_because=reason or f"all {total_steps} steps were done",
        drifts=tuple(map(str, drifts(history.rows))),
    )


def _take_up(
    run: RunFolder, learner: Learner, source: BatchSource, history: History, tell: Callable[[str], None]
) -> tuple[Additions | None, Row | None]:
    """Go on from the last checkpoint, or from the one before it where that is damaged: additions, and the best row."""
    try:
        return _restore(run.last, run, learner, source, history)
    except CheckpointError as error:
        try:
            restored = _restore(run.previous, run, learner, source, history)
        except CheckpointError:
            raise error from None
        tell(f"{run.last} cannot be used; going on from the checkpoint before it, of step {learner.step} ({error})")
    if learner.together.first:
        named_again(run.previous, run.last)
    return restored


def _restore(
    path: Path, run: RunFolder, learner: Learner, source: BatchSource, history: History
) -> tuple[Additions | None, Row | None]:
    """Put all back to where it was when the checkpoint at `path` was written."""
    notes = checkpoint.load(path, learner)
    with checkpoint.damage_told(path):
        additions = None if notes.get("additions") is None else read(run.path, int(notes["additions"]))
        best = None if notes["best"] is None else checked_row(notes["best"])
        if additions is not None:
            source.add(additions)
        source.restore(notes["batches"])
        history.restore(notes["history"], learner.step)
    return additions, best


def _silently(sentence: str) -> None:
    pass


def _batch_sizes(settings: Settings) -> dict[str, int]:
    """Every batch that processes share out, by the name of its setting."""
    sizes = {"learning.batch_labeled": settings.learning.batch_labeled}
    if settings.learning.objective is Objective.JOINT:
        sizes["learning.batch_unlabeled"] = settings.learning.batch_unlabeled
    if settings.augmentation.steps:
        sizes["augmentation.batch_synthetic"] = settings.augmentation.batch_synthetic
        sizes["pseudo_labels.batch"] = settings.pseudo_labels.batch
        sizes["implicit.batch"] = settings.implicit.batch
    return sizes


def _figures(scores: Scores | None) -> dict[str, float]:
    return {} if scores is None else scores.as_row("validation")


def branch(run: RunFolder, base: RunFolder) -> None:
    """Let `run` begin where `base` ended: its settings may differ in what comes after `learning.steps`.

    The branch then equals a run that never stopped there.
    """
    if run.settings.augment_from_step < run.settings.learning.steps:
        raise ConfigError(
            f"augmentation.augment_from_step={run.settings.augment_from_step} lies within the first phase "
            f"(learning.steps={run.settings.learning.steps}), which a branch shares with others: leave it out"
        )
    learner = run.new_learner()
    notes = checkpoint.load(base.last, learner, first_phase=True)
    if learner.step != run.settings.learning.steps:
        raise CheckpointError(
            f"{base.path} stands at step {learner.step}, not at learning.steps={run.settings.learning.steps}: "
            "finish it with --resume"
        )
    _copy_history(base, run)
    checkpoint.save(run.last, learner, notes)


def as_ended(run: RunFolder, dataset: Dataset, path: Path) -> RunFolder:
    """A run that `stop` ended early, written to `path` as one that was to end there: a branch can begin at its end."""
    learner, best = run.new_learner(), run.new_learner()
    notes, best_notes = checkpoint.load(run.last, learner), checkpoint.load_weights(run.best, best)
    learning = run.settings.learning.model_copy(update={"steps": learner.step})
    settings = run.settings.model_copy(update={"learning": learning})
    ended = RunFolder.create(path, run.origin, settings, dataset)
    learner.settings = best.settings = settings
    _copy_history(run, ended)
    checkpoint.save_weights(ended.best, best, best_notes)
    checkpoint.save(ended.last, learner, notes)
    return ended


def _copy_history(source: RunFolder, target: RunFolder) -> None:
    for name in ("history.jsonl", "history.csv"):
        write_text(target.path / name, (source.path / name).read_text(encoding="utf-8"))


class Trials:
    """Additions -> accuracy on validation after `trial_steps` label updates with them, on a copy of the learner."""

    def __init__(self, learner: Learner, run: RunFolder, dataset: Dataset) -> None:
        self.learner, self.run, self.dataset = learner, run, dataset

    def __call__(self, additions: Additions) -> float:
        copy = branched_off(self.learner)
        source = BatchSource(self.run, self.dataset, device=copy.model.device)
        source.add(additions)
        copy.model.train()
        for _ in range(self.run.settings.augmentation.trial_steps):
            learn_labels(copy, next(source))
            copy.step += 1
            copy.average()
        scores = score_part(copy.averaged, self.run.encoding, self.dataset, self.run.split, "validation")
        assert scores is not None
        return scores.accuracy


class _Within(Silent):
    """Progress of something that happens within one step: told as the step's message."""

    def __init__(self, outer: Progress, step: int, steps: int) -> None:
        self.outer, self.step, self.steps = outer, step, steps

    def update(self, done: int, total: int, message: str = "") -> None:
        self.outer.update(self.step, self.steps, f"{message} {done:,} of {total:,}")


def _better(row: dict[str, float], best: dict[str, float], settings: LearningSettings) -> bool:
    """Higher (balanced) accuracy on validation; at a tie the lower cross-entropy; without validation the later step.

    A row of the second phase is better than any of the first: what is compared is what the second phase leads to.
    """
    if "validation_accuracy" not in row or best["step"] <= settings.steps < row["step"]:
        return True
    balanced = settings.keep_metric is Metric.BALANCED_ACCURACY
    figure = "validation_balanced_accuracy" if balanced else "validation_accuracy"
    rank = [(r[figure], -r["validation_cross_entropy"]) for r in (row, best)]
    return rank[0] > rank[1]


def _message(learner: Learner, history: History) -> str:
    words = [f"cross-entropy {learner.terms['cross_entropy']:.3f}"]
    if history.rows and "validation_accuracy" in history.rows[-1]:
        words.append(f"validation {100 * history.rows[-1]['validation_accuracy']:.1f} %")
    return ", ".join(words)
