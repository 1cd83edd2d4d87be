"""What was measured as learning went on: a row each `evaluate_every` steps, as CSV and as JSON lines."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from synthsieve.errors import CheckpointError
from synthsieve.files import json_of, write_text

Row = dict[str, float]


class History:
    """Rows of figures, and the two files that always show all of them.

    Between rows, `add` gathers the terms of each step; `close_row` stores their means.
    """

    def __init__(self, folder: Path, *, write: bool = True) -> None:
        self.csv_path = folder / "history.csv"
        self.jsonl_path = folder / "history.jsonl"
        self.rows: list[Row] = []
        self._writes = write
        self._sums: Row = {}
        self._count = 0

    def add(self, terms: Row) -> None:
        """Count one step's terms into the row that is open."""
        for name, value in terms.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        self._count += 1

    def close_row(self, **figures: float) -> Row:
        """End the open row: `figures`, then the mean of each term since the last row. Both files are rewritten."""
        row = {**figures, **{name: total / self._count for name, total in self._sums.items()}}
        self._sums, self._count = {}, 0
        self.rows.append(row)
        self.write()
        return row

    def write(self) -> None:
        """Write both files, whole; of several processes one does."""
        if not self._writes:
            return
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        table = io.StringIO()
        writer = csv.DictWriter(table, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        write_text(self.csv_path, table.getvalue())
        write_text(self.jsonl_path, "".join(json.dumps(row, allow_nan=False) + "\n" for row in self.rows))

    def state(self) -> dict[str, object]:
        """The open row, for the checkpoint."""
        return {"sums": self._sums, "count": self._count}

    def restore(self, state: dict[str, object], step: int) -> None:
        """Go back to where the checkpoint of `step` was written: later rows are dropped, the open row is taken up."""
        self.rows = [row for row in read(self.jsonl_path) if row["step"] <= step]
        self._sums = {str(name): float(total) for name, total in dict(state["sums"]).items()}  # type: ignore[call-overload]
        self._count = int(state["count"])  # type: ignore[call-overload]
        self.write()


def read(path: Path) -> list[Row]:
    """The rows of a `history.jsonl`; none when there is no such file."""
    if not path.is_file():
        return []
    try:
        return [checked_row(json_of(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged ({error}): remove it and resume") from None


def checked_row(value: object) -> Row:
    """A row that was read; a ValueError where it is none."""
    if not isinstance(value, dict) or not isinstance(value.get("step"), int):
        raise ValueError("a row without its step")
    if not all(name.isidentifier() and isinstance(number, int | float) for name, number in value.items()):
        raise ValueError("a row holds something else than numbers")
    return value
