"""`synthsieve.benchmark`: semi-supervised methods side by side, at equal compute, on your data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch

from synthsieve.api.source import SourceOptions, read_source
from synthsieve.data.dataset import Dataset
from synthsieve.data.splits import fingerprint, split_dataset
from synthsieve.errors import ConfigError, DataError
from synthsieve.evaluation.comparison import visible_difference
from synthsieve.experiments.baselines.registry import chosen_methods
from synthsieve.experiments.benchmark import Benchmark, folds_of
from synthsieve.experiments.workers import default_workers
from synthsieve.io.devices import AUTO, device_of
from synthsieve.io.files import write_text
from synthsieve.io.locks import locked
from synthsieve.io.progress import NullProgress, Progress
from synthsieve.results.benchmark import BenchmarkResult, result_of
from synthsieve.settings import Metric

MAX_SHARE = 1000.0


def benchmark(
    source: Any,
    out: str | Path,
    *,
    methods: str | Sequence[str] | None = None,
    seeds: int = 1,
    budgets: str | Sequence[float] = (1.0,),
    metric: Metric | str | None = None,
    workers: int | None = None,
    device: str | torch.device = AUTO,
    progress: Callable[[str], Progress] | None = None,
    log: Callable[[str], None] = print,
    **options: Unpack[SourceOptions],
) -> BenchmarkResult:
    """Train several methods on the same data, splits, network and budget, and say which one to use here.

    The same call continues where an earlier one was interrupted; the result is the same.

    Args:
        source: the data, as for `run`.
        out: the folder to write to: benchmark.md, benchmark.json, benchmark.svg and the answers of every training.
        methods: names, as a list or with commas between them; None takes all. Our own model is always among them.
        seeds: how often all is repeated, each time with its own split, weights and batches.
        budgets: compute of a training, as multiples of our own preset's; the first is compared, the others are shown.
        metric: what is chosen and compared by; None takes accuracy, or balanced accuracy with unbalanced classes.
        workers: parallel processes; None takes one per core (one with a GPU), 0 runs everything in this process.
        device: as for `fit`; scikit-learn's methods use the CPU.
        progress: returns the progress bar of a stage by its name; None shows none.
        log: called with messages before the training.
        options: how the data are read, and settings: see `synthsieve.api.source.SourceOptions`.
    """
    out, bar, torch_device = Path(out), progress or (lambda name: NullProgress()), device_of(device)
    names = chosen_methods(methods.split(",") if isinstance(methods, str) else methods)
    shares = _shares(budgets)
    if seeds < 1:
        raise ConfigError(f"seeds must be 1 or more, got {seeds}", code="bad-seeds")
    changes = {} if metric is None else {"comparison": {"metric": str(metric)}}
    origin, dataset, settings = read_source(source, out, changes, progress=bar("data"), **options)
    settings = settings.changed("training", shift=0)  # hand-made augmentation: no method has any
    each = tuple(range(settings.seed, settings.seed + seeds))
    plan = Benchmark(out, origin, settings, each, tuple(names), shares, folds_of(dataset, settings), torch_device)
    with locked(out):
        measured, left_out = plan.check(dataset), plan.left_out(dataset)
        _check_unchanged(out, dataset)
        split = split_dataset(dataset, plan.settings_of(plan.units[0]).data, seed=each[0])
        log(
            f"{dataset.name}: {len(split.labeled):,} labels, {len(split.unlabeled):,} unlabelled rows; "
            f"with {measured:,} labels to measure on, differences below about "
            f"{100 * visible_difference(measured):.0f} points of accuracy cannot be detected"
        )
        for name, reason in left_out.items():
            log(f"{name} is left out: {reason}")
        workers = default_workers(torch_device) if workers is None else workers
        outcomes = plan.run(dataset, workers=workers, progress=bar("benchmark"))
        sizes = {name: len(getattr(split, name)) for name in ("labeled", "unlabeled", "validation")}
        shared = plan.folds > 0 or split.test_is_own
        result = result_of(plan, outcomes, left_out, shared_items=shared, sizes={**sizes, "test": measured})
        result.write()
        return result


def _check_unchanged(out: Path, dataset: Dataset) -> None:
    """Refuse a folder with results of other data."""
    path, given = out / "data.sha256", fingerprint(dataset)
    if not path.is_file():
        write_text(path, given)
    elif path.read_text(encoding="utf-8") != given:
        message = f"{out} has results of other rows or labels than {dataset.name!r} has now: choose another folder"
        raise DataError(message, code="other-data")


def _shares(budgets: str | Sequence[float]) -> tuple[float, ...]:
    """Distinct budgets, in the given order."""
    try:
        given = budgets.split(",") if isinstance(budgets, str) else budgets
        shares = tuple(dict.fromkeys(float(share) for share in given))
        if not shares or not all(0 < share <= MAX_SHARE and np.isfinite(share) for share in shares):
            raise ValueError
    except (TypeError, ValueError):
        message = f"expected budgets above 0 and up to {MAX_SHARE:g}, such as 1 or 1,0.5,2, got {budgets!r}"
        raise ConfigError(message, code="bad-budget") from None
    return shares
