"""Trains one method within its budget: batches, counted compute, evaluations on validation, checkpoints.

The unit of compute is one floating point operation of matrix products and convolutions, forward and backward, as
PyTorch's table of operations counts them: the same for every method and network.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from synthsieve.errors import CheckpointError, NonFiniteLossError
from synthsieve.evaluation.answers import FIELDS, PARTS, Answers
from synthsieve.evaluation.predict import BLOCK, part_of, predict_rows
from synthsieve.experiments.baselines.methods.ours import Ours
from synthsieve.experiments.baselines.protocol import BenchmarkMethod, BenchmarkTask
from synthsieve.io.tensors import invalid_as_damaged, named_tensors, read_tensors, tensors_under, write_tensors
from synthsieve.settings import Metric
from synthsieve.training.batches import BatchSource

FORMAT = "synthsieve benchmark checkpoint 2"
EVALUATIONS = 20  # at most, evenly spaced over the budget
FEWEST_EVALUATIONS = 4
EVALUATION_SHARE = 0.25  # of the budget: fewer evaluations where they would take more operations than that
REPORTS = 100  # of progress


@dataclass
class TrainerState:
    """How far a training has come; all of it is stored in checkpoints."""

    spent: int = 0  # operations
    costs: dict[str, int] = field(default_factory=dict)  # of one step of each phase
    evaluations: int = 0  # how many are done
    history: list[dict[str, float]] = field(default_factory=list)  # one row for each evaluation
    best: tuple[float, float] | None = None  # metric and negative log-loss on validation
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    answers: dict[str, Answers] = field(default_factory=dict)  # of the best weights, by part
    diverged: str | None = None  # the reason, where the loss became infinite: the best weights before it count


def budget_of(task: BenchmarkTask) -> int:
    """The operations of our own training for this task."""
    ours = Ours(task, **Ours.grid[0])
    cost = count_operations(lambda: ours.advance(next(_batches(task))))
    return cost * ours.state.settings.total_steps


def count_operations(compute: Callable[[], Any]) -> int:
    """Floating point operations of matrix products and convolutions in `compute`."""
    with _Counter() as counter:
        compute()
    return counter.total


def _batches(task: BenchmarkTask) -> BatchSource:
    return BatchSource(task.data, task.settings, device=task.device)


class _Counter(TorchDispatchMode):
    """Adds up operations; unlike torch's `FlopCounterMode` it hooks into no module, and so allows `autograd.grad`."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        found = func(*args, **kwargs)
        # The chains of our model add a product to a buffer in place, which torch's table does not have.
        packet = func._overloadpacket
        formula = flop_registry.get(torch.ops.aten.addmm if packet is torch.ops.aten.addmm_ else packet)
        if formula is not None:
            self.total += int(formula(*args, **kwargs, out_val=found))
        return found


def train(
    method: BenchmarkMethod,
    task: BenchmarkTask,
    budget: int,
    *,
    metric: Metric,
    test: bool = True,
    checkpoint: Path | None = None,
    identity: Any = None,
    report: Callable[[int], None] = lambda percent: None,
    stop: Callable[[], bool] = lambda: False,
) -> TrainerState:
    """Train until `budget` operations are spent, from `checkpoint` where there is one; the result is then the same.

    Args:
        metric: which weights are kept, by validation; without validation rows the last ones.
        test: whether test rows are predicted as well, at the end; without validation rows they are at each evaluation.
        identity: JSON that a checkpoint must have been written with to be continued.
        report: is called with the percentage that is done.
        stop: is called after each evaluation; True ends the training early, with a checkpoint.
    """
    source, progress = _batches(task), TrainerState()
    if checkpoint is not None and checkpoint.is_file():
        progress = _restore(checkpoint, method, source, identity)
    reported, evaluations = -1, evaluations_within(budget, method, task)
    while progress.spent < budget and progress.diverged is None:
        method.done, batch = progress.spent / budget, next(source)
        phase = method.phase
        try:
            if phase in progress.costs:
                method.advance(batch)
            else:
                progress.costs[phase] = count_operations(lambda: method.advance(batch))  # noqa: B023
        except NonFiniteLossError as error:
            progress.diverged = str(error)
        progress.spent += max(1, progress.costs.get(phase, 1))
        passed = math.floor(evaluations * progress.spent / budget)
        if passed > progress.evaluations or progress.diverged is not None:
            progress.evaluations = passed
            if method.ready and progress.diverged is None:
                evaluate(method, task, progress, metric)
            if checkpoint is not None:
                _save(checkpoint, method, source, progress, identity)
            if stop():
                break
        percent = min(REPORTS, math.floor(REPORTS * progress.spent / budget))
        if percent > reported:
            reported = percent
            report(percent)
    if test and progress.best_weights and "test" not in progress.answers:
        method.averaged.load_state_dict(progress.best_weights)
        measured = answers_on(method, task, "test")
        progress.answers |= {} if measured is None else {"test": measured}
    return progress


def evaluations_within(budget: int, method: BenchmarkMethod, task: BenchmarkTask) -> int:
    """How many evaluations leave most operations to training."""
    part = "validation" if len(task.data.split.validation) else "test"
    x, _ = part_of(task.data.dataset, task.data.split, part)
    few = x[:BLOCK]
    if not len(few):
        return FEWEST_EVALUATIONS
    one = count_operations(lambda: _logits(method, task, few)) * len(x) / BLOCK  # a block is filled up
    return int(np.clip(EVALUATION_SHARE * budget / max(1.0, one), FEWEST_EVALUATIONS, EVALUATIONS))


def evaluate(method: BenchmarkMethod, task: BenchmarkTask, progress: TrainerState, metric: Metric) -> None:
    """Add a row to the history; keep weights that are better on validation than all before.

    Without validation rows the last weights count, and those of each evaluation are measured on test rows.
    """
    row, validation = {"spent": float(progress.spent)}, answers_on(method, task, "validation")
    if validation is not None:
        found = {"validation": validation}
        score = row["validation"] = validation.score(metric)
        better = score, validation.score(Metric.LOG_LOSS)
    else:
        measured = answers_on(method, task, "test")
        found = {} if measured is None else {"test": measured}
        row |= {part: each.score(metric) for part, each in found.items()}
        better = float(progress.spent), 0.0
    if not all(map(math.isfinite, better)):
        return
    if progress.best is None or better > progress.best:
        progress.best, progress.answers = better, found
        progress.best_weights = {name: value.clone() for name, value in method.averaged.state_dict().items()}
    progress.history.append(row)


def answers_on(method: BenchmarkMethod, task: BenchmarkTask, part: str) -> Answers | None:
    """The probabilities of the method on a part of the split; None without rows."""
    data = task.data
    x, y = part_of(data.dataset, data.split, part)
    if not len(y):
        return None
    logits = _logits(method, task, x)
    shifted = np.nan_to_num(logits - logits.max(axis=1, keepdims=True), nan=0.0, posinf=0.0, neginf=-1e3)
    p = np.exp(shifted)
    return Answers(getattr(data.split, part), y, (p / p.sum(axis=1, keepdims=True)).astype(np.float32))


def _logits(method: BenchmarkMethod, task: BenchmarkTask, x: np.ndarray) -> np.ndarray:
    return predict_rows(method.predict_logits, method, task.data.encoding, x, task.num_classes)


def _save(path: Path, method: BenchmarkMethod, source: BatchSource, progress: TrainerState, identity: Any) -> None:
    tensors = {**method.tensors(), **_answer_tensors(progress), **named_tensors("best", progress.best_weights)}
    plain = {name: value for name, value in vars(progress).items() if name not in ("answers", "best_weights")}
    header = {"format": FORMAT, "identity": identity, "steps": method.steps, "batches": source.state(), **plain}
    write_tensors(path, header, tensors)


def _restore(path: Path, method: BenchmarkMethod, source: BatchSource, identity: Any) -> TrainerState:
    """Continue a checkpoint; a damaged one, or one of other settings, is ignored: the training starts again."""
    try:
        header, tensors = read_tensors(path, FORMAT)
    except CheckpointError:
        return TrainerState()
    if header.get("identity") != identity:
        return TrainerState()
    with invalid_as_damaged(path):
        method.restore(tensors, int(header["steps"]))
        source.restore(header["batches"])
        best = header["best"]
        return TrainerState(
            spent=header["spent"],
            costs=header["costs"],
            evaluations=header["evaluations"],
            history=header["history"],
            best=None if best is None else (best[0], best[1]),
            best_weights=tensors_under("best", tensors),
            answers=_answers_in(tensors),
            diverged=header["diverged"],
        )


def _answer_tensors(progress: TrainerState) -> dict[str, Tensor]:
    found = {f"{part}/{name}": getattr(each, name) for part, each in progress.answers.items() for name in FIELDS}
    return named_tensors("answers", {name: torch.from_numpy(value) for name, value in found.items()})


def _answers_in(tensors: dict[str, Tensor]) -> dict[str, Answers]:
    parts: dict[str, dict[str, Any]] = {part: tensors_under(f"answers/{part}", tensors) for part in PARTS}
    return {part: Answers(**{k: v.numpy() for k, v in each.items()}) for part, each in parts.items() if each}
