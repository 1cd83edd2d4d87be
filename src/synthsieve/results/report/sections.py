"""What the sections of the report say: headings that a reader learns from, counts of samples, and what was run."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from typing import Any

import numpy as np

from synthsieve.data.dataset import Dataset
from synthsieve.data.origin import Origin
from synthsieve.evaluation import memorization
from synthsieve.evaluation.comparison import Verdict
from synthsieve.evaluation.prior_match import PriorMatch
from synthsieve.experiments.arms import Group
from synthsieve.results.finished import FinishedRun
from synthsieve.results.pool_view import PoolView
from synthsieve.results.provenance import last_part, run_versions
from synthsieve.results.report.wording import count, counted, figure, listed, percent, sentence
from synthsieve.results.table import QualityRecord, ResultsTable
from synthsieve.settings import Settings, flat_settings, load_settings, settings_from
from synthsieve.training.defaults import default_preset
from synthsieve.training.history import Row, read
from synthsieve.training.pool import Outcomes

CLOSE = 0.9  # of the fidelity of held-out real examples
FILES = {
    "model": "the kept model, for synthsieve predict, sample, evaluate and Python",
    "synthetic.npz": "the samples it was trained on, with weights, entropies and seeds",
    "synthetic.csv": "the same as text",
    "synthetic.parquet": "the same with the types of the source",
    "synthetic.png": "the same as a picture",
    "synthetic": "the same as sounds",
    "table.json": "every figure of this page",
    "table.md": "the tables of this page as text",
    "figures": "pictures for slides",
    "best.safetensors": "the weights with the best validation score",
    "history.csv": "losses and accuracies during training",
    "run.json": "settings, classes and versions",
    "split.json": "which rows are labelled, unlabelled, validation and test",
}
OPTIONS = ("label", "text")
PATH_OPTIONS = ("schema", "features", "data_dir")


def _verdicts(table: ResultsTable) -> Counter[Verdict]:
    """How many variants with additions have which verdict on test."""
    return Counter(one.verdict for name, one in table.comparisons.items() if table.groups.get(name) is Group.SYNTHETIC)


def verdict_heading(table: ResultsTable) -> str:
    """The heading over all variants."""
    counts = _verdicts(table)
    total, helping, hurting = counts.total(), counts[Verdict.HELPS], counts[Verdict.HURTS]
    if not total:
        return "No variant with additions was trained"
    if not helping and not hurting:
        return "On test, no variant with additions is clearly different from real data alone"
    helps, hurts = "helps" if helping == 1 else "help", f"hurt{'s' if hurting == 1 else ''}"
    if not helping:
        return f"On test, no variant with additions helps, and {hurting} of {total} {hurts}"
    heading = f"On test, {helping} of {total} variants with additions {helps}"
    return f"{heading}, and {hurting} {hurts}" if hurting else heading


def verdict_sentence(table: ResultsTable) -> str:
    """The test results of all variants with additions; empty without any."""
    counts = _verdicts(table)
    total, unclear = counts.total(), counts[Verdict.CANNOT_TELL]
    variants = f"{counted(total, 'variant')} with additions"
    if unclear == total:
        return f"On test none of {variants} is clearly different from real data alone." if total else ""
    words = {Verdict.HELPS: "help", Verdict.HURTS: "hurt"}
    parts = [f"{counts[v]} {word}{'s' if counts[v] == 1 else ''}" for v, word in words.items() if counts[v]]
    if unclear:
        parts.append(f"{unclear} {'is' if unclear == 1 else 'are'} not clearly different from real data alone")
    return f"On test, of {variants}, {listed(parts)}."


def fidelity_heading(quality: QualityRecord) -> str:
    """Realistic, varied, copied or not."""
    pool, real = quality.manifold, quality.same_law.manifold
    if pool is None or real is None:
        return "Too few held-out rows to tell how close the samples are to real data"
    heading = {
        (True, True): "The samples look like real examples and vary like them",
        (True, False): "Each sample looks real, but together they vary less than real data",
        (False, True): "The samples vary like real data, but many lie where no real example does",
        (False, False): "The samples differ from real data and vary less",
    }[pool.precision >= CLOSE * real.precision, pool.recall >= CLOSE * real.recall]
    copies = quality.memorisation is not None and quality.memorisation.verdict == memorization.CopyVerdict.COPIES
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


def selection_summary(view: PoolView, outcome: Outcomes) -> dict[str, Any]:
    """For the template: what filter and coreset did with the samples, in all and of each class."""
    counts, purity = view.class_counts(outcome), view.class_purity(outcome)
    drawn, kept, selected = (int(number.sum()) for number in counts.values())
    stand_for = f"{counted(selected, 'sample')}, each with a weight, stand for {count(kept)}"
    everything = f"No coreset: all {counted(kept, 'kept sample')} are used for training"
    return {
        "arm": view.name,
        "outcome": outcome,
        "total": {"drawn": drawn, "kept": kept, "selected": selected, "purity": view.pool.purity(outcome.selected)},
        "selects": selected < kept,
        "classes": [
            {"name": name, **{key: int(number[c]) for key, number in counts.items()}, "purity": purity[c]}
            for c, name in enumerate(view.classes)
        ],
        "rejected": {reason: number for reason, number in list(outcome.counts().items())[2:] if number},
        "rejected_by_hand": len(view.rejected),
        "prior_match": _prior_match(view),
        "filter_heading": filter_heading(outcome, kept, drawn),
        "coreset_heading": stand_for if selected < kept else everything,
    }


def _prior_match(view: PoolView) -> str:
    """How well the latents of the pool match encoded examples; empty where it was not measured."""
    match = view.figures.get("prior_match")
    return "" if match is None else sentence(PriorMatch(tuple(match["auc"])).describe())


def filter_heading(outcome: Outcomes, kept: int, drawn: int) -> str:
    """How many samples are kept, and the entropy ceiling."""
    samples, ceiling = f"{count(kept)} of {count(drawn)} samples", outcome.entropy_ceiling
    if not np.isfinite(ceiling):
        return f"No ceiling: {samples} are kept"
    if outcome.settings.entropy_ceiling is None:
        return f"{samples} are below the ceiling of their class, at most {figure(ceiling)} nats"
    return f"{samples} are below the entropy ceiling, {figure(ceiling)} nats"


def facts_of(run: FinishedRun, dataset: Dataset | None) -> dict[str, Any]:
    """For the template: the command, and tables of settings, split sizes and hashes, versions and files."""
    first, table = run.pretrained, run.table
    split = first.split
    parts = {"labelled": split.labeled, "unlabelled": split.unlabeled, "validation": split.validation}
    parts |= {"test": split.test, "left out": split.excluded}
    if table is None:
        settings, seeds, hashes = first.settings, 1, {str(first.settings.seed): split.hash}
        verb = "fit --augment" if settings.augmentation.steps else "fit"
    else:
        settings, verb = settings_from({**table.settings, "seed": table.seeds[0]}), "run"
        seeds, hashes = len(table.seeds), table.split_hashes
    return {
        "command": command_to_repeat(first.origin, settings, verb=verb, seeds=seeds, dataset=dataset),
        "settings": {name: _as_toml(value) for name, value in flat_settings(settings.model_dump(mode="json")).items()},
        "split": {name: count(len(rows)) for name, rows in parts.items() if len(rows) or name != "left out"},
        "hashes": hashes,
        "versions": run_versions(first) if table is None else table.versions,
        "files": {name: meaning for name, meaning in FILES.items() if (run.path / name).exists()},
    }


def command_to_repeat(origin: Origin, settings: Settings, *, verb: str, seeds: int, dataset: Dataset | None) -> str:
    """A command line with these settings: `--set` for what differs from the preset of the source.

    Paths are reduced to their last part, since reports are shared.
    """
    preset = load_settings(default_preset(origin.source, dataset))
    preset = preset.pretrained() if verb == "fit" else preset
    values, defaults = (flat_settings(each.model_dump(mode="json")) for each in (settings, preset))
    words = ["synthsieve", *verb.split(), last_part(origin.source)]
    for name in (*OPTIONS, *PATH_OPTIONS):
        value = getattr(origin, name)
        if value is not None:
            words += [f"--{name.replace('_', '-')}", last_part(value) if name in PATH_OPTIONS else value]
    if settings.seed:
        words += ["--seed", str(settings.seed)]
    if seeds > 1:
        words += ["--seeds", str(seeds)]
    for name, value in values.items():
        if name != "seed" and value != defaults[name]:
            words += ["--set", f"{name}={_as_toml(value)}"]
    return shlex.join([*words, "-o", "again"])


def _as_toml(value: Any) -> str:
    """A value as `--set` reads it."""
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)
