"""`synthsieve.label`: label the rows of a file with a trained model, and say which labels not to trust."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from synthsieve.api.predict import check_target, predict
from synthsieve.data.formats.table import read_csv, read_parquet
from synthsieve.evaluation.labeling import MIN_PROBABILITY, LabeledRows, label_rows
from synthsieve.io.devices import AUTO, device_of
from synthsieve.io.files import atomic_write
from synthsieve.io.locks import locked_beside
from synthsieve.io.progress import Progress
from synthsieve.results.export.block import unique_names
from synthsieve.results.export.writers import write_csv

SUFFIXES = (".csv", ".parquet")
TABLES = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True)
class LabeledFile:
    """What `label` wrote.

    Attributes:
        path: the file.
        rows: the labels.
        notes: messages for the user.
    """

    path: Path
    rows: LabeledRows
    notes: tuple[str, ...]

    def counts(self) -> dict[str, int]:
        """Number of rows of each label that are not rejected."""
        labels, counts = np.unique(self.rows.y[self.rows.kept].astype(str), return_counts=True)
        return dict(zip(labels.tolist(), counts.tolist(), strict=True))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rejected = int(self.rows.rejected.sum())
        figures = {"labelled": str(self.path), "count": len(self.rows), "rejected": rejected, "labels": self.counts()}
        return {**figures, "notes": list(self.notes)}

    def lines(self) -> list[str]:
        """A summary to print."""
        rejected = int(self.rows.rejected.sum())
        return [
            *(f"note: {note}" for note in self.notes),
            f"{len(self.rows):,} rows labelled, {rejected:,} of them rejected: {self.path}",
            *(f"  {name}: {count:,}" for name, count in self.counts().items()),
        ]


def label(
    model: str | Path,
    new: str | Path,
    to: str | Path,
    *,
    min_probability: float = MIN_PROBABILITY,
    features: str | Path | None = None,
    text: str | None = None,
    force: bool = False,
    threads: int | None = 1,
    device: str | torch.device = AUTO,
    progress: Callable[[str], Progress] | None = None,
) -> LabeledFile:
    """Label the examples in a file or folder and write them to `to`, a .csv or .parquet.

    A table keeps its columns; other examples are named by row or file. The columns label, probability, entropy, weight
    (for `sample_weight`), rejected and reason follow.

    Args:
        model: a folder of `run` or `fit`, or a file of `LatentEBMClassifier.save`.
        new: a file or a folder like those that the model was trained on; labels in it are not used.
        min_probability: rows whose label is less probable are rejected: weight 0, with the reason.
        features, text, threads, device, progress: as for `predict`.
        force: replace `to` if it exists; an input is never replaced.
    """
    new, to, torch_device = Path(new).expanduser(), Path(to).expanduser(), device_of(device)
    with ExitStack() as stack:
        check_target(to, [Path(model).expanduser(), new], force=force, suffixes=SUFFIXES, what="labelled rows")
        stack.enter_context(locked_beside(to))
        given: dict[str, Any] = {"features": features, "text": text, "threads": threads, "progress": progress}
        predictions = predict(model, new, device=torch_device, **given)
        rows = label_rows(predictions.probabilities, predictions.classes, min_probability=min_probability)
        table = _table(new, predictions.files, len(rows))
        names = unique_names(table.column_names, rows.columns())
        for name, values in zip(names, rows.columns().values(), strict=True):
            table = table.append_column(name, [values])
        if to.suffix.lower() == ".csv":
            write_csv(to, table)
        else:
            from pyarrow import parquet

            with atomic_write(to) as partial:
                parquet.write_table(table, partial)
    return LabeledFile(to, rows, predictions.notes)


def _table(new: Path, files: tuple[str, ...] | None, count: int) -> Any:
    """The columns of the examples: those of a table, or their files or row numbers."""
    import pyarrow as pa

    if files is not None:
        return pa.table({"file": list(files)})
    if new.suffix.lower() in TABLES:
        return read_parquet(new) if new.suffix.lower() == ".parquet" else read_csv(new)
    return pa.table({"row": np.arange(count)})
