"""How learning went, in words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from synthsieve.learning.history import Row, read
from synthsieve.report.wording import count, counted, percent
from synthsieve.review.run import Run


@dataclass(frozen=True)
class Learned:
    """`heading` answers; `sentences` follow."""

    heading: str
    sentences: tuple[str, ...]


def learned(run: Run, arm: str | None) -> Learned:
    """Of the first phase, and of the arm whose pool is looked at."""
    first = read(run.first_phase.path / "history.jsonl")
    if not first:
        return Learned("No history of learning was kept", ())
    sentences = []
    if run.table is not None and arm is not None:
        sentences += _second_phase(arm, run.pooled[arm], last_of_first=int(first[-1]["step"]))
    return Learned(_first_phase(first, single=run.table is None), tuple(sentences))


def _first_phase(rows: list[Row], *, single: bool) -> str:
    what = "Learning" if single else "The first phase"
    best = _best(rows)
    if best is None:
        return f"{what} took {count(rows[-1]['step'])} steps; there were no validation rows to watch it by"
    reached = f"{what} reached {percent(best['validation_accuracy'])} on validation"
    return f"{reached} after {count(best['step'])} of {counted(int(rows[-1]['step']), 'step')}"


def _second_phase(arm: str, folder: Path, *, last_of_first: int) -> list[str]:
    rows = [row for row in read(folder / "history.jsonl") if row["step"] > last_of_first]
    best = _best(rows)
    if not rows:
        return []
    took = f"With additions, {arm} took {counted(int(rows[-1]['step']) - last_of_first, 'further step')}"
    return [f"{took}." if best is None else f"{took} and reached {percent(best['validation_accuracy'])} on validation."]


def _best(rows: list[Row]) -> Row | None:
    seen = [row for row in rows if "validation_accuracy" in row]
    return max(seen, key=lambda row: row["validation_accuracy"]) if seen else None
