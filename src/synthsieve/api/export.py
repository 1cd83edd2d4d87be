"""`synthsieve.export`: save the synthetic samples of a finished run as files for other programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from synthsieve.errors import ConfigError
from synthsieve.io.devices import AUTO
from synthsieve.io.locks import locked_beside
from synthsieve.io.progress import Progress
from synthsieve.results.export.formats import Format, Which
from synthsieve.results.export.from_pool import ExportResult, export_pool
from synthsieve.results.labeled_set import NAME
from synthsieve.results.pool_view import changed_settings
from synthsieve.results.run import Run, open_run
from synthsieve.settings import Coreset


def export(
    out: str | Path,
    to: str | Path | None = None,
    *,
    format: str | Sequence[str] | None = None,
    variant: str | None = None,
    seed: int | None = None,
    entropy_ceiling: float | None = None,
    keep_fraction: float | None = None,
    budget: float | None = None,
    coreset: Coreset | str | None = None,
    require_label: bool | None = None,
    which: Which | str = Which.DEFAULT,
    allow_empty_classes: bool = False,
    real_rows: bool = False,
    device: str | torch.device = AUTO,
    progress: Callable[[str], Progress] | None = None,
) -> ExportResult:
    """Write the samples of a run with a data card, a manifest and checksums; nothing is trained or generated.

    With `entropy_ceiling`, `keep_fraction`, `budget`, `coreset` or `require_label`, or if samples were rejected in the
    gallery, the pool is filtered and selected from again; otherwise the selected samples are those of training.

    Args:
        out: the directory that `synthsieve.run`, or `synthsieve fit --augment`, wrote.
        to: the directory to write to; None takes OUT/export. An earlier export there is replaced.
        format: one or several of "parquet", "npz", "images", "sounds", "hf" and "csv"; None chooses by the data.
        variant: whose samples; None takes the chosen variant, or CRAIG.
        seed: one of the seeds of the run; None takes the first.
        entropy_ceiling: keep samples below this entropy in nats, in all classes.
        keep_fraction: instead, keep this fraction of each class, lowest entropy first.
        budget: the fraction of each class's kept samples to select.
        coreset: how they are selected: "herding" (follows the latents of the real rows), "craig", "adacore", "random"
            or "everything"; None: as in training, or herding if that selected everything.
        require_label: reject samples for which the classifier predicts another class.
        which: "selected" or "all" samples in every file; "default" writes all to data.parquet, else the selected.
        allow_empty_classes: export even if the selection leaves no sample of a class.
        real_rows: also export OUT/dataset.*, your own rows with your labels or the model's, each with its origin,
            probability and weight.
        device: as for `fit`.
        progress: returns the progress bar of a stage by its name; None shows none.
    """
    to = Path(out) / "export" if to is None else Path(to)
    names = [format] if isinstance(format, str) else format
    try:
        formats = None if names is None else [Format(name) for name in names]
        which, coreset = Which(which), None if coreset is None else Coreset(coreset)
    except ValueError as error:
        raise ConfigError(
            f"{error}: choose from {', '.join([*Format, *Which, *Coreset])}", code="unknown-format"
        ) from None
    run = open_run(out, seed=seed, device=device)
    with locked_beside(to):
        view = run.pool(variant)
        settings = changed_settings(
            view.settings,
            entropy_ceiling=entropy_ceiling,
            keep_fraction=keep_fraction,
            budget=budget,
            coreset=coreset,
            require_label=require_label,
        )
        outcomes = view.select(settings, progress=progress and progress("select"))
        return export_pool(
            view,
            outcomes,
            to=to,
            formats=formats,
            which=which,
            table=run.table,
            allow_empty_classes=allow_empty_classes,
            real_rows=_labeled_set(run) if real_rows else (),
            progress=progress and progress("export"),
        )


def _labeled_set(run: Run) -> list[Path]:
    """The files of the labelled data set that `synthsieve run` wrote."""
    found = sorted(run.path.glob(f"{NAME}.*"))
    if not found:
        message = f"{run.path} has no labelled data set ({NAME}.npz): `synthsieve run` writes one, `fit` does not"
        raise ConfigError(message, code="no-labeled-set")
    return found
