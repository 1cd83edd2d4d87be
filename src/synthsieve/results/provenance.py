"""Where exported samples come from and what was measured: facts for the manifest, sentences for the data card."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.io.versions import versions
from synthsieve.results.export.formats import Format, Which
from synthsieve.results.finished import SINGLE_FIT
from synthsieve.results.markdown import quality
from synthsieve.results.pool_view import PoolView
from synthsieve.results.table import ResultsTable
from synthsieve.settings import AugmentationSettings, Ceiling, Coreset
from synthsieve.training.pool import Outcomes
from synthsieve.training.run_dir import RunDirectory

# Columns of an export and their meaning.
MEANINGS = {
    "id": "row of the sample in the pool, from 0",
    "label": "the requested class",
    "weight": "how many samples of the pool it stands for; 0 if it is not selected",
    "entropy": "of the classifier's prediction, in nats; low is certain",
    "log_density": "log p(z given label) of its latent, in nats, up to a constant of each class",
    "nearest_real_row": "the nearest real training example, by its row in the training data, from 0",
    "nearest_real_distance": "Euclidean distance to it between means of the encoder's q(z given x)",
    "rank": "order of selection within its class, from 0; -1 if it is not selected",
    "selected": "whether it is for training",
    "reason": "outcome: selected, or why not",
    "source": "the variant that drew it and the hash of its weights",
    "seed": "of its chain: with the same weights it gives the same latent",
}
CHOSEN_BY = {
    Coreset.EVERYTHING: "All of them are selected, each with weight 1.",
    Coreset.RANDOM: "{share} of each class were selected at random.",
    Coreset.HERDING: "{share} of each class were selected by kernel herding, to follow the latents of the real rows.",
    Coreset.CRAIG: "{share} of each class were selected by CRAIG, to approximate the gradient of all.",
    Coreset.ADACORE: "{share} of each class were selected by AdaCore, to approximate the preconditioned gradient.",
}
NOT_COMPARED = "Whether these samples help was not measured: `synthsieve run` trains with and without them."


def provenance(
    view: PoolView, outcome: Outcomes, table: ResultsTable | None, *, formats: Sequence[Format] | None, which: Which
) -> dict[str, Any]:
    """Everything that determines the samples, and what was measured: plain values for JSON."""
    run, origin = view.run, dict(view.pool.origin)
    split = run.split
    return {
        "name": view.dataset.name,
        "kind": str(run.encoding.input_spec.kind),
        "classes": list(view.classes),
        "source": {
            "arm": view.name,
            "seed": run.settings.seed,
            "step": view.step,
            "model_hash": origin.pop("model_hash"),
            "chains": origin,
        },
        "selection": {
            "entropy_ceiling": outcome.entropy_ceiling if np.isfinite(outcome.entropy_ceiling) else None,
            "settings": outcome.settings.model_dump(mode="json"),
            "changed": changes(view.settings, outcome.settings),
            "rejected_by_hand": len(view.rejected),
            **outcome.figures,
        },
        "run": {
            "origin": {
                name: value if value is None else last_part(value)
                for name, value in vars(run.origin).items()
                if name != "data_dir"
            },
            "settings": run.settings.model_dump(mode="json"),
            "versions": run_versions(run),
            "threads": run.threads,
        },
        "versions": versions(),
        "split": {
            "hash": split.hash,
            **{part: len(getattr(split, part)) for part in ("labeled", "unlabeled", "validation", "test")},
        },
        "counts": counts(view, outcome),
        "purity": view.pool.purity(outcome.selected),
        "paired_comparison": compared(view, outcome, table),
        "recommended": recommended(table),
        "quality": None if table is None or table.quality is None else table.quality.model_dump(mode="json"),
        "command": command(view, outcome, formats=formats, which=which),
    }


def words_for_card(outcome: Outcomes, table: ResultsTable | None) -> dict[str, Any]:
    """What the data card says about filter, selection and quality."""
    measured = [] if table is None or table.quality is None else quality(table.quality)
    return {"selection": describe_filter(outcome), "chosen_by": describe_coreset(outcome), "quality": measured}


def counts(view: PoolView, outcome: Outcomes) -> dict[str, Any]:
    """How many samples were drawn, kept and selected: in all, by reason, by class."""
    numbers = view.class_counts(outcome)
    per_class = {label: {name: int(each[c]) for name, each in numbers.items()} for c, label in enumerate(view.classes)}
    missing = [label for label, number in per_class.items() if not number["selected"]]
    return {
        **{name: int(each.sum()) for name, each in numbers.items()},
        "num_classes": len(per_class) - len(missing),
        "empty_classes": missing,
        "reasons": outcome.counts(),
        "classes": per_class,
    }


def compared(view: PoolView, outcome: Outcomes, table: ResultsTable | None) -> dict[str, Any]:
    """The result of the variant that drew the samples: a sentence, figures in % and points, and notes."""
    if table is None or view.name == SINGLE_FIT:
        return {"words": NOT_COMPARED, "verdict": None, "rows": [], "notes": []}
    paired, one = table.paired_comparison, table.comparisons[view.name]
    examples = " and ".join(f"{number:,}" for number in dict.fromkeys(paired.num_items))
    words = f"Against training on real data alone, on {examples} test examples: {one.describe()}."
    if not np.array_equal(outcome.weight, view.pool.weight):
        again = "Nothing was trained on exactly these samples: they were selected again. Selection in training"
        words = f"{again}: {words}"
    rows = [
        {
            "name": name,
            "accuracy": 100 * table.means[name],
            "difference": None if each is None else 100 * each.difference,
            "interval": None if each is None else [100 * end for end in each.interval],
            "verdict": table.verdict_word(name),
        }
        for name, each in ((paired.baseline, None), (view.name, one))
    ]
    choice = "" if table.choice is None else f"{table.choice.describe()}."
    notes = [note for note in (choice, paired.note) if note]
    return {"words": words, "verdict": str(one.verdict), "rows": rows, "notes": notes}


def recommended(table: ResultsTable | None) -> str | None:
    """What to add to the labels for other models, by the data set of the run; None where that was not measured."""
    used = None if table is None else table.usefulness
    if used is None:
        return None
    gain, chosen = (
        used["mean"][used["chosen"]],
        "chosen on validation" if used["chosen_on_validation"] else "not chosen",
    )
    low, high = (100 * end for end in gain["interval_95"])
    return (
        f"What to add for other models ({chosen}): {used['chosen']}, from the data set of the run; common models gain "
        f"{100 * gain['difference']:+.1f} points (95 % interval {low:+.1f} to {high:+.1f})."
    )


def changes(before: AugmentationSettings, after: AugmentationSettings) -> dict[str, list[Any]]:
    """Selection settings that differ from those of training: [then, now]."""
    then, now = before.model_dump(mode="json"), after.model_dump(mode="json")
    return {name: [then[name], now[name]] for name in then if then[name] != now[name]}


def command(view: PoolView, outcome: Outcomes, *, formats: Sequence[Format] | None, which: Which) -> str:
    """The command that repeats the export of the run in OUT."""
    words = ["synthsieve", "export", "OUT"]
    if view.name != SINGLE_FIT:
        words += ["--variant", view.name, "--seed", str(view.run.settings.seed)]
    changed, settings = changes(view.settings, outcome.settings), outcome.settings
    if changed.keys() & {"entropy_ceiling", "keep_fraction"}:
        ceiling = settings.entropy_ceiling
        name, value = ("--keep-fraction", settings.keep_fraction) if ceiling is None else ("--entropy-ceiling", ceiling)
        words += [name, str(value)]
    if "require_label" in changed:
        words.append("--require-label" if settings.require_label else "--no-require-label")
    if changed.keys() & {"coreset", "coreset_fraction"}:
        words += ["--budget", str(settings.coreset_fraction)]
    if "coreset" in changed:
        words += ["--coreset", str(settings.coreset)]
    if len(view.lost_classes(outcome)):
        words.append("--allow-empty-classes")
    words += [word for one in formats or () for word in ("--format", str(one))]
    words += {Which.DEFAULT: [], Which.ALL: ["--all"], Which.SELECTED: ["--only-selected"]}[which]
    return shlex.join(words)


def describe_coreset(outcome: Outcomes) -> str:
    """How samples were selected among those kept."""
    return CHOSEN_BY[outcome.settings.coreset].format(share=f"{100 * outcome.settings.coreset_fraction:g} %")


def describe_filter(outcome: Outcomes) -> str:
    """The conditions that a kept sample meets."""
    settings, conditions = outcome.settings, []
    if settings.require_label:
        conditions.append("the classifier gives it the requested class")
    if settings.entropy_ceiling is not None:
        found = ", a ceiling chosen on validation" if isinstance(settings.entropy_ceiling, Ceiling) else ""
        conditions.append(f"its entropy is below {outcome.entropy_ceiling:.4g} nats{found}")
    elif settings.keep_fraction is not None:
        conditions.append(f"its entropy is among the lowest {100 * settings.keep_fraction:g} % of its class")
    return f"A sample is kept if {', and '.join(conditions)}." if conditions else "There was no filter."


def run_versions(run: RunDirectory) -> dict[str, str]:
    """Versions of the libraries that the run was started with."""
    stored: dict[str, str] = json.loads((run.path / "run.json").read_text(encoding="utf-8")).get("versions", {})
    return stored


def last_part(path: str) -> str:
    """The last part of an absolute path, since directories are private; a source's name or relative path as it is."""
    return Path(path).name if Path(path).is_absolute() else path
