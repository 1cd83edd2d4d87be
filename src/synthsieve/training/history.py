"""Metrics measured during training: a row each `evaluate_every` steps, in memory, as CSV, JSON lines or TensorBoard."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from synthsieve.errors import CheckpointError, ConfigError
from synthsieve.io.files import parse_json, write_text

Row = dict[str, float]


class History:
    """Rows of metrics; between rows, `add` accumulates the metrics of each step and `close_row` stores their means."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._sums: Row = {}
        self._count = 0

    def add(self, metrics: Mapping[str, float]) -> None:
        """Count one step's metrics into the open row."""
        for name, value in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        self._count += 1

    def close_row(self, **figures: float) -> Row:
        """End the open row: `figures`, then the mean of each metric since the last row."""
        row = {**figures, **{name: total / self._count for name, total in self._sums.items()}}
        self._sums, self._count = {}, 0
        self.rows.append(row)
        return row

    def state(self) -> dict[str, Any]:
        """The open row, for a checkpoint."""
        return {"sums": dict(self._sums), "count": self._count}

    def restore(self, state: Mapping[str, Any], rows: Sequence[Row]) -> None:
        """Continue with the open row of a checkpoint, after `rows`."""
        self.rows = list(rows)
        self._sums = {str(name): float(total) for name, total in dict(state["sums"]).items()}
        self._count = int(state["count"])


def write(folder: Path, rows: Sequence[Row]) -> None:
    """Write history.csv and history.jsonl, each atomically."""
    table = io.StringIO()
    writer = csv.DictWriter(table, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(folder / "history.csv", table.getvalue())
    write_text(folder / "history.jsonl", "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows))


def read(path: Path) -> list[Row]:
    """The rows of a `history.jsonl`; none when there is no such file."""
    if not path.is_file():
        return []
    try:
        return [checked_row(parse_json(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged ({error}): remove it and resume", code="damaged-file") from None


def checked_row(value: object) -> Row:
    """`value` if it is a row; a ValueError if not."""
    if not isinstance(value, dict) or not isinstance(value.get("step"), int):
        raise ValueError("a row without its step")
    if not all(name.isidentifier() and isinstance(number, int | float) for name, number in value.items()):
        raise ValueError("a row holds something else than numbers")
    return value


def require_tensorboard() -> None:
    """A ConfigError, before any work, when the tensorboard package is not installed."""
    if find_spec("tensorboard") is None:
        raise ConfigError(
            "--tensorboard needs the tensorboard package: pip install 'synthsieve[tensorboard]'",
            code="missing-package",
        )


def tensorboard_writer(folder: Path) -> Callable[[Row], None]:
    """A function that adds a row's metrics to event files in `folder`/tensorboard.

    After a resume, TensorBoard leaves out what an earlier process wrote from the step of the first new row on.
    """
    from torch.utils.tensorboard import SummaryWriter

    writer = None

    def add(row: Row) -> None:
        nonlocal writer
        if writer is None:
            writer = SummaryWriter(folder / "tensorboard", purge_step=int(row["step"]))
        for name, value in row.items():
            if name != "step":
                writer.add_scalar(name, value, int(row["step"]))
        writer.flush()

    return add
