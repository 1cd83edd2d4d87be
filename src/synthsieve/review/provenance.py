"""Where an export's samples come from and what was found of them: the manifest's facts, and the card's words."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.config import AugmentationSettings, Ceiling, Coreset
from synthsieve.errors import CheckpointError
from synthsieve.evaluation.proof import Comparison
from synthsieve.experiments.rendering import quality
from synthsieve.export.formats import Format, Which
from synthsieve.learning.run_folder import RunFolder, versions
from synthsieve.review.fate import Fate, purity
from synthsieve.review.pool_view import PoolView
from synthsieve.review.run import ALONE

# What is known of each sample, and what it means.
MEANINGS = {
    "id": "row of the sample in the pool, from 0",
    "label": "the class it was asked for",
    "weight": "how many samples of the pool it stands for; 0 if it is not selected",
    "entropy": "of the classifier's answer to it, in nats; low is sure",
    "log_density": "log p(z given label) of its latent, in nats, up to a constant of each class",
    "nearest_real_row": "the nearest real training example, by its row in the training data, from 0",
    "nearest_real_distance": "how far that is: Euclidean, between means of the encoder's q(z given x)",
    "rank": "the turn in which it was chosen within its class, from 0; -1 if it is not selected",
    "selected": "whether it is meant for training",
    "reason": "what became of it, in words",
    "source": "the arm that drew it and the hash of the weights",
    "seed": "of its chain: with the weights that ran it, it gives the latent again",
}
CHOSEN_BY = {
    Coreset.EVERYTHING: "All of them are taken, each with weight 1.",
    Coreset.RANDOM: "Of each class {share} were taken at random.",
    Coreset.CRAIG: "Of each class {share} were taken by CRAIG: those whose gradients stand for all the others'.",
    Coreset.ADACORE: "Of each class {share} were taken by AdaCore: those whose preconditioned gradients stand for all.",
}
NOT_PROVED = "Whether these samples help was not measured: `synthsieve run` trains with and without them, and tells."


def provenance(
    view: PoolView, fate: Fate, table: dict[str, Any] | None, *, formats: Sequence[Format] | None, which: Which
) -> dict[str, Any]:
    """Everything that decided which samples these are, and what was measured: plain values for JSON."""
    run, origin = view.run, dict(view.pool.origin)
    split = run.split
    return {
        "name": view.dataset.name,
        "kind": str(run.encoding.layout.kind),
        "classes": list(view.classes),
        "source": {
            "arm": view.name,
            "seed": run.settings.seed,
            "step": view.step,
            "model_hash": origin.pop("model_hash"),
            "chains": origin,
        },
        "sieve": {
            "entropy_ceiling": fate.entropy_ceiling if np.isfinite(fate.entropy_ceiling) else None,
            "settings": fate.settings.model_dump(mode="json"),
            "changed": changes(view.settings, fate.settings),
            "rejected_by_hand": len(view.marked),
            **fate.figures,
        },
        "run": {
            "origin": {name: _base(value) for name, value in vars(run.origin).items() if name != "data_dir"},
            "settings": run.settings.model_dump(mode="json"),
            "versions": _versions_of(run),
            "threads": run.threads,
        },
        "versions": versions(),
        "split": {
            "hash": split.hash,
            **{part: len(getattr(split, part)) for part in ("labeled", "unlabeled", "validation", "test")},
        },
        "counts": counts(view, fate),
        "purity": purity(view.pool, view.scores, fate.selected),
        "proof": proved(view, fate, table),
        "quality": None if table is None else table.get("quality"),
        "command": command(view, fate, formats=formats, which=which),
    }


def words_for_card(view: PoolView, fate: Fate, table: dict[str, Any] | None) -> dict[str, Any]:
    """What the card says of the sieve and of the pool beside real data."""
    share = f"{100 * fate.settings.coreset_fraction:g} %"
    told = {"sieve": _filter_words(fate), "chosen_by": CHOSEN_BY[fate.settings.coreset].format(share=share)}
    return {**told, "quality": [] if table is None or not table.get("quality") else _told(quality, table["quality"])}


def counts(view: PoolView, fate: Fate) -> dict[str, Any]:
    """How many samples were drawn, stayed and were selected: in all, for each reason, of each class."""
    y, selected = view.pool.y, fate.weight > 0
    per_class = {
        label: {
            "drawn": int((y == number).sum()),
            "kept": int((fate.kept & (y == number)).sum()),
            "selected": int((selected & (y == number)).sum()),
        }
        for number, label in enumerate(view.classes)
    }
    whole = {"drawn": len(view), "kept": int(fate.kept.sum()), "selected": int(selected.sum())}
    missing = [label for label, number in per_class.items() if not number["selected"]]
    there = {"num_classes": len(per_class) - len(missing), "empty_classes": missing}
    return {**whole, **there, "reasons": fate.counts(), "classes": per_class}


def proved(view: PoolView, fate: Fate, table: dict[str, Any] | None) -> dict[str, Any]:
    """What the run's proof says of the arm that drew the samples: a sentence, figures in % and points, and notes."""
    if table is None or view.name == ALONE:
        return {"words": NOT_PROVED, "verdict": None, "rows": [], "notes": []}
    return dict(_told(lambda value: _proof(view, fate, value), table))


def _proof(view: PoolView, fate: Fate, table: dict[str, Any]) -> dict[str, Any]:
    proof = table["proof"]
    one = proof["comparisons"][view.name]
    low, high = one["interval_95"]
    compared = Comparison(view.name, tuple(one["differences"]), (low, high), int(one["differing_answers"]))
    examples = " and ".join(f"{number:,}" for number in dict.fromkeys(proof["test_examples"]))
    words = f"Against training on real data alone, on {examples} test examples: {compared.in_words()}."
    if not np.array_equal(fate.weight, view.pool.weight):
        words = (
            f"Nothing was trained on exactly these samples: they were sieved anew. Of training's own choice: {words}"
        )
    choice = "" if table["choice"] is None else f"{table['choice']['words']}."
    return {
        "words": words,
        "verdict": str(compared.verdict),
        "rows": [_row(proof["baseline"], proof, None), _row(view.name, proof, one)],
        "notes": [note for note in (choice, proof["note"]) if note],
    }


def _row(name: str, proof: dict[str, Any], one: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "name": name,
        "accuracy": 100 * proof["mean"][name],
        "difference": None if one is None else 100 * one["difference"],
        "interval": None if one is None else [100 * end for end in one["interval_95"]],
        "verdict": "baseline" if one is None else one["verdict"],
    }


def changes(before: AugmentationSettings, after: AugmentationSettings) -> dict[str, list[Any]]:
    """Settings of the sieve that are not those of training: [then, now]."""
    then, now = before.model_dump(mode="json"), after.model_dump(mode="json")
    return {name: [then[name], now[name]] for name in then if then[name] != now[name]}


def command(view: PoolView, fate: Fate, *, formats: Sequence[Format] | None, which: Which) -> str:
    """The command that makes the same export of the run in OUT."""
    words = ["synthsieve", "export", "OUT"]
    if view.name != ALONE:
        words += ["--arm", view.name, "--seed", str(view.run.settings.seed)]
    changed, settings = changes(view.settings, fate.settings), fate.settings
    if changed.keys() & {"entropy_ceiling", "keep_fraction"}:
        ceiling = settings.entropy_ceiling
        name, value = ("--keep-fraction", settings.keep_fraction) if ceiling is None else ("--entropy-ceiling", ceiling)
        words += [name, str(value)]
    if "require_asked_class" in changed:
        words.append("--asked-class" if settings.require_asked_class else "--any-class")
    if changed.keys() & {"coreset", "coreset_fraction"}:
        words += ["--budget", str(settings.coreset_fraction)]
    if len(view.lost_classes(fate)):
        words.append("--allow-empty-classes")
    words += [word for one in formats or () for word in ("--format", str(one))]
    words += {Which.USUAL: [], Which.ALL: ["--all"], Which.SELECTED: ["--only-selected"]}[which]
    return shlex.join(words)


def _filter_words(fate: Fate) -> str:
    """What had to be true of a sample that stayed."""
    settings, conditions = fate.settings, []
    if settings.require_asked_class:
        conditions.append("the classifier gives it the class asked for")
    if settings.entropy_ceiling is not None:
        found = ", a ceiling found on validation" if isinstance(settings.entropy_ceiling, Ceiling) else ""
        conditions.append(f"its entropy lies below {fate.entropy_ceiling:.4g} nats{found}")
    elif settings.keep_fraction is not None:
        conditions.append(f"its entropy is among the lowest {100 * settings.keep_fraction:g} % of its class")
    return f"A sample stays if {', and '.join(conditions)}." if conditions else "There was no filter."


def _versions_of(run: RunFolder) -> Any:
    """Of the libraries that the run was begun with; an opened run's run.json is known to be JSON."""
    return json.loads((run.path / "run.json").read_text(encoding="utf-8")).get("versions")


def _base(value: str | None) -> str | None:
    """A source's name, or the last part of a path: where things lay is nobody's business."""
    return None if value is None else Path(value).name or value


def _told(told: Any, value: Any) -> Any:
    """What `told` makes of figures that were read from table.json, or a sentence where they are damaged."""
    try:
        return told(value)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise CheckpointError(
            f"table.json of the run lacks what the card tells ({error!r}): give the same `synthsieve run` again"
        ) from None
