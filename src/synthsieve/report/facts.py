"""What exactly was run: the command that repeats it, settings, split, versions, files."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthsieve.config import Settings, load_settings, settings_from
from synthsieve.data.dataset import Dataset
from synthsieve.defaults import default_preset
from synthsieve.learning.run_folder import Origin, flat_settings
from synthsieve.report.wording import count
from synthsieve.review.run import Run

FILES = {
    "model": "the model kept; synthsieve sample, evaluate and Python read it",
    "synthetic.npz": "the samples it learned from, with weights, entropies and seeds",
    "synthetic.csv": "the same to read",
    "synthetic.parquet": "the same, with the types of the source",
    "synthetic.png": "the same to look at",
    "synthetic": "the same to listen to",
    "table.json": "every figure of this page",
    "table.md": "the tables of this page as text",
    "figures": "pictures for slides",
    "best.safetensors": "the weights that did best on validation",
    "history.csv": "how learning went",
    "run.json": "settings, classes and versions",
    "split.json": "which rows are labelled, unlabelled, validation and test",
}
FLAGS = ("label", "text")
PATHS = ("schema", "features", "data_dir")


@dataclass(frozen=True)
class Facts:
    """All of it, ready to be printed.

    Attributes:
        command: repeats the run, up to the number of threads, where the data lie; of paths it has the last part alone,
            for a report is handed round.
        settings: resolved, name -> value.
        split: part -> size; hashes: seed -> hash of its split.
        versions: package -> version.
        files: name -> what it is, of those that are there.
    """

    command: str
    settings: dict[str, str]
    split: dict[str, str]
    hashes: dict[str, str]
    versions: dict[str, str]
    files: dict[str, str]


def facts_of(run: Run, dataset: Dataset | None) -> Facts:
    """Of a whole run, or of a single fit."""
    first = run.first_phase
    split, table = first.split, run.table
    parts = {
        "labelled": split.labeled,
        "unlabelled": split.unlabeled,
        "validation": split.validation,
        "test": split.test,
        "left out": split.excluded,
    }
    if table is None:
        settings, seeds, hashes = first.settings, [first.settings.seed], {str(first.settings.seed): split.hash}
        versions: dict[str, str] = json.loads((run.path / "run.json").read_text(encoding="utf-8"))["versions"]
    else:
        settings = settings_from({**table["settings"], "seed": table["seeds"][0]})
        seeds, hashes, versions = table["seeds"], table["split_hashes"], table["versions"]
    verb = "run" if table is not None else ("fit --augment" if settings.augmentation.steps else "fit")
    return Facts(
        command_to_repeat(first.origin, settings, verb=verb, seeds=len(seeds), dataset=dataset),
        {name: _as_toml(value) for name, value in flat_settings(settings.model_dump(mode="json")).items()},
        {name: count(len(rows)) for name, rows in parts.items() if len(rows) or name != "left out"},
        hashes,
        versions,
        {name: words for name, words in FILES.items() if (run.path / name).exists()},
    )


def command_to_repeat(origin: Origin, settings: Settings, *, verb: str, seeds: int, dataset: Dataset | None) -> str:
    """A command line that asks for these settings: what differs from the source's own preset is said by --set."""
    usual = load_settings(default_preset(origin.source, dataset))
    usual = usual.first_phase() if verb == "fit" else usual
    mine, theirs = flat_settings(settings.model_dump(mode="json")), flat_settings(usual.model_dump(mode="json"))
    words = ["synthsieve", *verb.split(), last_part(origin.source)]
    for flag in (*FLAGS, *PATHS):
        value = getattr(origin, flag)
        value = last_part(value) if value and flag in PATHS else value
        words += [] if value is None else [f"--{flag.replace('_', '-')}", value]
    if settings.seed:
        words += ["--seed", str(settings.seed)]
    if seeds > 1:
        words += ["--seeds", str(seeds)]
    for name, value in mine.items():
        if name != "seed" and value != theirs[name]:
            words += ["--set", f"{name}={_as_toml(value)}"]
    return shlex.join([*words, "-o", "again"])


def last_part(path: str) -> str:
    """Of an absolute path its last part; anything else, such as the name of a source, as it is."""
    return Path(path).name if Path(path).is_absolute() else path


def _as_toml(value: Any) -> str:
    """As `--set` reads it."""
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)
