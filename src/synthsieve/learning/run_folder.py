"""The folder of a run: what was asked, how the data were split, how learning went, and the weights.

OUT/run.json             source, settings, classes, encoding, versions
OUT/split.json           who is labelled, unlabelled, validation, test
OUT/history.csv, .jsonl  figures as learning went on
OUT/last.safetensors     all that `--resume` needs
OUT/previous.safetensors the same of one checkpoint earlier, for when the last one is damaged
OUT/best.safetensors     the averaged weights that did best on validation
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from synthsieve import __version__
from synthsieve.config import Settings, settings_from
from synthsieve.data.dataset import Dataset
from synthsieve.data.encoding import Encoding, fit_encoding, from_json
from synthsieve.data.own_sets import with_own_set
from synthsieve.data.sources import load, source_names
from synthsieve.data.splits import Split, split_dataset
from synthsieve.errors import CheckpointError, ConfigError, SynthsieveError
from synthsieve.files import json_of, remove_stale_partials, write_json
from synthsieve.learning import checkpoint
from synthsieve.learning.learner import CPU, Learner
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.progress import Progress
from synthsieve.together import ALONE, Together

FORMAT = "synthsieve run 1"


@dataclass(frozen=True)
class Origin:
    """Where a run's data come from: a source's name or an absolute path, so that it is found from any folder."""

    source: str
    label: str | None = None
    data_dir: str | None = None
    text: str | None = None
    schema: str | None = None
    features: str | None = None
    image_size: str | None = None
    test: str | None = None
    validation: str | None = None

    @classmethod
    def of(
        cls,
        source: str,
        *,
        label: str | None = None,
        text: str | None = None,
        schema: Path | None = None,
        features: Path | None = None,
        image_size: str | None = None,
        data_dir: Path | None = None,
        test: Path | None = None,
        validation: Path | None = None,
    ) -> Origin:
        """What the user said, with relative paths made absolute."""
        path = Path(source).expanduser()
        found = source not in source_names() and path.exists()
        schema_path, features_path, data_path, test_path, validation_path = (
            None if given is None else str(given.expanduser().resolve())
            for given in (schema, features, data_dir, test, validation)
        )
        place = str(path.resolve()) if found and source else source
        return cls(place, label, data_path, text, schema_path, features_path, image_size, test_path, validation_path)

    def load(self, progress: Progress | None = None) -> Dataset:
        """The data set."""
        schema, features, data_dir = (
            None if given is None else Path(given) for given in (self.schema, self.features, self.data_dir)
        )
        dataset = load(
            self.source,
            label=self.label,
            text=self.text,
            schema=schema,
            features=features,
            image_size=self.image_size,
            data_dir=data_dir,
            progress=progress,
        )
        for part, given in (("test", self.test), ("validation", self.validation)):
            if given is not None:
                more = {"label": self.label, "text": self.text, "features": features is not None}
                dataset = with_own_set(dataset, part, Path(given), **more, progress=progress)  # type: ignore[arg-type]
        return dataset


@dataclass(frozen=True)
class RunFolder:
    """A run's folder and what its `run.json` says.

    Attributes:
        path: the folder.
        origin: where the data come from.
        settings: everything that decides the run.
        split: who is labelled, unlabelled, validation, test.
        encoding: how examples become network input.
        threads: how many threads it was begun with; another number may round sums otherwise.
    """

    path: Path
    origin: Origin
    settings: Settings
    split: Split
    encoding: Encoding
    threads: int

    @property
    def last(self) -> Path:
        return self.path / "last.safetensors"

    @property
    def previous(self) -> Path:
        return self.path / "previous.safetensors"

    @property
    def best(self) -> Path:
        return self.path / "best.safetensors"

    @staticmethod
    def exists(path: Path) -> bool:
        return (path / "run.json").is_file()

    @classmethod
    def create(
        cls, path: Path, origin: Origin, settings: Settings, dataset: Dataset, *, write: bool = True
    ) -> RunFolder:
        """Split the data and write `split.json` and `run.json`; a folder that holds a run is refused.

        Of several processes one writes, and it alone looks: to the others its own files would be another's run.
        """
        if write and cls.exists(path):
            raise ConfigError(f"{path} already holds a run: continue it with --resume, or choose another folder")
        split = split_dataset(dataset, settings.data, seed=settings.seed)
        rows = np.concatenate([split.labeled, split.unlabeled])
        run = cls(path, origin, settings, split, fit_encoding(dataset, rows), torch.get_num_threads())
        run.new_learner()  # networks that cannot be built must fail before anything is written
        if write:
            split.write(path / "split.json")
            write_json(path / "run.json", run.to_json())
        return run

    @classmethod
    def find(cls, path: Path) -> RunFolder:
        """The run in `path`, which `fit` wrote, or the model kept in `path`/model, where `run` wrote it."""
        place = next((one for one in (path, path / "model") if cls.exists(one)), None)
        if place is not None:
            return cls.open(place)
        if any(path.glob("seed-*/first-phase/run.json")):
            raise CheckpointError(f"{path} holds a run that is not finished: give the same `synthsieve run` again")
        raise CheckpointError(
            f"{path} holds no run: expected a folder that `synthsieve fit -o` wrote (with run.json in it) or"
            " `synthsieve run -o` (with model/run.json in it)"
        )

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The run in `path`."""
        if not cls.exists(path):
            raise CheckpointError(f"{path} holds no run (no run.json): give the folder that `synthsieve fit` wrote")
        try:
            value = json_of((path / "run.json").read_text(encoding="utf-8"))
            if value.get("format") != FORMAT:
                raise ValueError(f"its format is {value.get('format')!r}, not {FORMAT!r}")
            origin = Origin(**value["origin"])
            if not all(part is None or isinstance(part, str) for part in vars(origin).values()):
                raise ValueError(f"its origin is {vars(origin)}")
            settings, encoding = settings_from(value["settings"]), from_json(value["encoding"])
            threads, split_hash, classes = int(value["threads"]), value["split_hash"], value["classes"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, SynthsieveError) as error:
            raise CheckpointError(f"{path / 'run.json'} cannot be used ({error}): fit again") from None
        split = Split.read(path / "split.json")
        if split.hash != split_hash or list(split.classes) != classes:
            raise CheckpointError(f"{path / 'split.json'} belongs to another run than run.json beside it: fit again")
        return cls(path, origin, settings, split, encoding, threads)

    def sweep(self) -> None:
        """Remove what a killed process left half written here."""
        remove_stale_partials(self.path)

    def check_asked(self, settings: Settings, dataset: Dataset) -> None:
        """Refuse to go on with other data or other settings than the run began with."""
        self.split.check_against(dataset)
        before, now = (
            flat_settings(self.settings.model_dump(mode="json")),
            flat_settings(settings.model_dump(mode="json")),
        )
        changed = [name for name in before if before[name] != now[name]]
        if changed:
            name = changed[0]
            raise ConfigError(
                f"{self.path} was begun with {name}={before[name]}, not {now[name]}: "
                "resume with the same settings, or choose another folder"
            )

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "origin": self.origin.__dict__,
            "settings": self.settings.model_dump(mode="json"),
            "split_hash": self.split.hash,
            "classes": list(self.split.classes),
            "encoding": self.encoding.to_json(),
            "versions": versions(),
            "threads": self.threads,
        }

    def new_learner(self, together: Together = ALONE, device: torch.device = CPU) -> Learner:
        """A learner before its first step, in one process or in several, on the CPU or on a GPU."""
        data = f"{self.split.fingerprint}/{self.split.hash}"
        return Learner.create(
            self.settings, self.encoding.layout, len(self.split.classes), data=data, together=together, device=device
        )

    def model(self) -> GenerativeClassifier:
        """The averaged weights that did best on validation, ready for prediction and drawing."""
        return self.best_learner().averaged

    def best_learner(self) -> Learner:
        """A learner whose averaged weights are those that did best on validation, at the step they had them."""
        path = self.best if self.best.is_file() else self.last
        self.check_size(path)
        learner = self.new_learner()
        checkpoint.load_weights(path, learner)
        return learner

    def check_size(self, path: Path) -> None:
        """Refuse to build networks larger than the checkpoint at `path` can fill."""
        checkpoint.check_size(path, self.settings, self.encoding.layout, len(self.split.classes))


def versions() -> dict[str, str]:
    """Of this package, of Python and of the libraries whose numbers a result rests on."""
    found = {"synthsieve": __version__, "python": platform.python_version()}
    for name in ("torch", "numpy", "scipy", "scikit-learn", "numba", "pyarrow", "safetensors"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found


def flat_settings(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} -> {"a.b": 1}."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= flat_settings(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
