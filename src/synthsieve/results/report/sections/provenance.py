"""Section 7: what exactly was run: the command that repeats it, settings, split, versions, files."""

from __future__ import annotations

import json
import shlex
from typing import Any

from synthsieve.data.dataset import Dataset
from synthsieve.data.origin import Origin
from synthsieve.results.finished import FinishedRun
from synthsieve.results.provenance import last_part, run_versions
from synthsieve.results.report.wording import count
from synthsieve.settings import Settings, flat_settings, load_settings, settings_from
from synthsieve.training.defaults import default_preset

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


def facts_of(run: FinishedRun, dataset: Dataset | None) -> dict[str, Any]:
    """For the template: the command, and tables of settings, split sizes and hashes, versions and files."""
    first, table = run.pretrained, run.table
    split = first.split
    parts = {
        "labelled": split.labeled,
        "unlabelled": split.unlabeled,
        "validation": split.validation,
        "test": split.test,
        "left out": split.excluded,
    }
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
