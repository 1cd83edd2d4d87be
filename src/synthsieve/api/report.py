"""`synthsieve.report`: a finished run on one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from synthsieve.io.devices import AUTO
from synthsieve.io.progress import Progress
from synthsieve.results.report.page import WrittenReport, write_report
from synthsieve.results.run import open_run


def report(
    out: str | Path,
    *,
    to: str | Path | None = None,
    variant: str | None = None,
    seed: int | None = None,
    device: str | torch.device = AUTO,
    progress: Callable[[str], Progress] | None = None,
) -> WrittenReport:
    """Write the report of the run in `out`: did it help, what do the samples look like, are they like real data.

    Args:
        out: the directory that `run`, `reproduce` or `fit` wrote.
        to: the file to write; OUT/report.html by default.
        variant: whose samples are shown, such as "entropy, L=5,000"; the chosen one by default.
        seed: the seed whose variants are shown; the first of the run by default.
        device: as for `fit`.
        progress: makes a progress bar from a name; None shows none.
    """
    bar = None if progress is None else progress("draw")
    target = None if to is None else Path(to)
    return write_report(open_run(out, seed=seed, device=device), target, variant=variant, progress=bar)
