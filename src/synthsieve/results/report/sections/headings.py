"""Headings and sentences of the sections: what a reader learns without reading the figures."""

from __future__ import annotations

from collections import Counter

from synthsieve.evaluation import memorization
from synthsieve.evaluation.comparison import Verdict
from synthsieve.experiments.arms import Group
from synthsieve.results.finished import FinishedRun
from synthsieve.results.report.wording import count, counted, listed, percent
from synthsieve.results.table import QualityRecord, ResultsTable
from synthsieve.training.history import Row, read

CLOSE = 0.9  # of the fidelity of held-out real examples


def _verdicts(table: ResultsTable) -> Counter[Verdict]:
    """How many variants with additions have which verdict on test."""
    return Counter(one.verdict for name, one in table.comparisons.items() if table.groups.get(name) is Group.SYNTHETIC)


def _verb(word: str, number: int) -> str:
    return f"{word}s" if number == 1 else word


def verdict_heading(table: ResultsTable) -> str:
    """The heading over all variants."""
    counts = _verdicts(table)
    total, helping, hurting = counts.total(), counts[Verdict.HELPS], counts[Verdict.HURTS]
    if not total:
        return "No variant with additions was trained"
    if not helping and not hurting:
        return "On test, no variant with additions is clearly different from real data alone"
    if not helping:
        return f"On test, no variant with additions helps, and {hurting} of {total} {_verb('hurt', hurting)}"
    heading = f"On test, {helping} of {total} variants with additions {_verb('help', helping)}"
    return f"{heading}, and {hurting} {_verb('hurt', hurting)}" if hurting else heading


def verdict_sentence(table: ResultsTable) -> str:
    """The test results of all variants with additions; empty without any."""
    counts = _verdicts(table)
    total, unclear = counts.total(), counts[Verdict.CANNOT_TELL]
    variants = f"{counted(total, 'variant')} with additions"
    if unclear == total:
        return f"On test none of {variants} is clearly different from real data alone." if total else ""
    words = {Verdict.HELPS: "help", Verdict.HURTS: "hurt"}
    parts = [f"{counts[v]} {_verb(word, counts[v])}" for v, word in words.items() if counts[v]]
    if unclear:
        parts.append(f"{unclear} {'is' if unclear == 1 else 'are'} not clearly different from real data alone")
    return f"On test, of {variants}, {listed(parts)}."


def fidelity_heading(quality: QualityRecord) -> str:
    """Realistic, varied, copied or not."""
    pool, real = quality.manifold, quality.same_law.manifold
    if pool is None or real is None:
        return "Too few rows to tell how close the samples are to real data"
    heading = {
        (True, True): "The samples look like real examples and vary like them",
        (True, False): "Each sample looks real, but together they vary less than real data",
        (False, True): "The samples vary like real data, but many lie where no real example does",
        (False, False): "The samples differ from real data and vary less",
    }[pool.precision >= CLOSE * real.precision, pool.recall >= CLOSE * real.recall]
    copies = quality.memorisation is not None and quality.memorisation.verdict == memorization.Verdict.COPIES
    return f"{heading}; copies are suspected" if copies else heading


def training_heading(run: FinishedRun, arm: str | None) -> tuple[str, str]:
    """A heading on pretraining, and a sentence on the variant whose pool is shown; it may be empty."""
    first = read(run.pretrained.path / "history.jsonl")
    if not first:
        return "There is no training history", ""
    what, last, best = "Training" if run.table is None else "Pretraining", int(first[-1]["step"]), _best(first)
    if best is None:
        heading = f"{what} took {count(last)} steps; there were no validation rows"
    else:
        reached = f"{what} reached {percent(best['validation_accuracy'])} on validation"
        heading = f"{reached} after {count(best['step'])} of {counted(last, 'step')}"
    further = run.table is not None and arm is not None
    rows = [row for row in read(run.pooled[str(arm)] / "history.jsonl") if row["step"] > last] if further else []
    if not rows:
        return heading, ""
    then = f"{arm} was then trained for {counted(int(rows[-1]['step']) - last, 'further step')}"
    best = _best(rows)
    reached = "" if best is None else f" and reached {percent(best['validation_accuracy'])} on validation"
    return heading, f"{then}{reached}."


def _best(rows: list[Row]) -> Row | None:
    measured = [row for row in rows if "validation_accuracy" in row]
    return max(measured, key=lambda row: row["validation_accuracy"]) if measured else None
