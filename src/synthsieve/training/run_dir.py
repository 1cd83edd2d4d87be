"""The directory of a run.

OUT/run.json             source, settings, classes, encoding, versions
OUT/split.json           which rows are labelled, unlabelled, validation, test
OUT/history.csv, .jsonl  metrics during training
OUT/last.safetensors     all that `--resume` needs
OUT/previous.safetensors the checkpoint before it, in case the last one is damaged
OUT/best.safetensors     the averaged weights that did best on validation, and the calibration of their predictions
OUT/calibration.json     the calibration by cross-fitting, of a model without validation rows
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from synthsieve.data.dataset import Dataset
from synthsieve.data.modalities.encoding import Encoding
from synthsieve.data.modalities.registry import from_json
from synthsieve.data.origin import Origin
from synthsieve.data.splits import Split
from synthsieve.errors import CheckpointError, ConfigError, OldRunError, SynthsieveError
from synthsieve.io.files import parse_json, write_json
from synthsieve.io.tensors import invalid_as_damaged
from synthsieve.io.versions import versions
from synthsieve.models.calibration import Calibration
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.settings import Settings, flat_settings, settings_from
from synthsieve.training import checkpoint
from synthsieve.training.data import TrainingData, data_hash
from synthsieve.training.parallel import SINGLE_PROCESS, ProcessGroup
from synthsieve.training.state import CPU, TrainState, check_networks, init

FORMAT, OLD_FORMAT = "synthsieve run 2", "synthsieve run 1"


@dataclass(frozen=True)
class RunDirectory:
    """A run's directory and the contents of its `run.json`.

    `threads` and `device` are those that it started with; others may round sums differently.
    """

    path: Path
    origin: Origin
    settings: Settings
    split: Split
    encoding: Encoding
    threads: int
    device: str = "cpu"

    @property
    def last(self) -> Path:
        return self.path / "last.safetensors"

    @property
    def previous(self) -> Path:
        return self.path / "previous.safetensors"

    @property
    def best(self) -> Path:
        return self.path / "best.safetensors"

    @property
    def calibration(self) -> Path:
        return self.path / "calibration.json"

    @property
    def history(self) -> Path:
        return self.path / "history.jsonl"

    @staticmethod
    def exists(path: Path) -> bool:
        return (path / "run.json").is_file()

    @classmethod
    def create(
        cls,
        path: Path,
        origin: Origin,
        settings: Settings,
        dataset: Dataset,
        *,
        base: RunDirectory | None = None,
        write: bool = True,
        device: torch.device = CPU,
    ) -> RunDirectory:
        """Write `split.json` and `run.json`, once it is known that the networks can be built.

        Split and encoding are those of `base`, a run with the same data settings, or computed. In data-parallel
        training only rank 0 writes and checks for an existing run: other ranks would mistake its new files for one.
        """
        if write and cls.exists(path):
            raise ConfigError(
                f"{path} already holds a run: continue it with --resume, or choose another folder", code="run-exists"
            )
        prepared = base or TrainingData.prepare(dataset, settings)
        run = cls(path, origin, settings, prepared.split, prepared.encoding, torch.get_num_threads(), str(device))
        check_networks(settings, run.encoding.input_spec, len(run.split.classes))
        if write:
            run.split.write(path / "split.json")
            value = {
                "format": FORMAT,
                "origin": vars(origin),
                "settings": settings.model_dump(mode="json"),
                "split_hash": run.split.hash,
                "classes": list(run.split.classes),
                "encoding": run.encoding.to_json(),
                "versions": versions(),
                "threads": run.threads,
                "device": run.device,
            }
            write_json(path / "run.json", value)
        return run

    @classmethod
    def open_or_create(
        cls,
        path: Path,
        origin: Origin,
        settings: Settings,
        dataset: Dataset,
        *,
        base: RunDirectory | None = None,
        group: ProcessGroup = SINGLE_PROCESS,
        device: torch.device = CPU,
    ) -> RunDirectory:
        """The run in `path`, which must have the same settings and data, or a new one."""
        exists = cls.exists(path)
        group.wait()  # until every process has looked
        if exists:
            run = cls.open(path)
            run.check_unchanged(settings, dataset)
        else:
            run = cls.create(path, origin, settings, dataset, base=base, write=group.first, device=device)
        group.wait()
        return run

    @classmethod
    def find(cls, path: Path) -> RunDirectory:
        """The run in `path`, which `fit` wrote, or the model kept in `path`/model, which `run` wrote."""
        place = next((place for place in (path, path / "model") if cls.exists(place)), None)
        if place is not None:
            return cls.open(place)
        if any(path.glob("seed-*/pretrained/run.json")):
            raise CheckpointError(
                f"{path} holds a run that is not finished: give the same `synthsieve run` again", code="unfinished-run"
            )
        raise CheckpointError(
            f"{path} holds no run: expected a folder that `synthsieve fit -o` wrote (with run.json in it) or"
            " `synthsieve run -o` (with model/run.json in it)",
            code="no-run",
        )

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """The run in `path`."""
        if not cls.exists(path):
            raise CheckpointError(
                f"{path} holds no run (no run.json): give the folder that `synthsieve fit` wrote", code="no-run"
            )
        try:
            value = parse_json((path / "run.json").read_text(encoding="utf-8"))
            if value.get("format") == OLD_FORMAT:
                raise OldRunError(path)
            if value.get("format") != FORMAT:
                raise ValueError(f"its format is {value.get('format')!r}, not {FORMAT!r}")
            origin = Origin(**value["origin"])
            if not all(part is None or isinstance(part, str) for part in vars(origin).values()):
                raise ValueError(f"its origin is {vars(origin)}")
            settings, encoding = settings_from(value["settings"]), from_json(value["encoding"])
            threads, split_hash, classes = int(value["threads"]), value["split_hash"], value["classes"]
            device = str(value.get("device", "cpu"))  # a run of version 0.1 has none
        except OldRunError:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, SynthsieveError) as error:
            raise CheckpointError(
                f"{path / 'run.json'} cannot be used ({error}): fit again", code="damaged-file"
            ) from None
        split = Split.read(path / "split.json")
        if split.hash != split_hash or list(split.classes) != classes:
            raise CheckpointError(
                f"{path / 'split.json'} belongs to another run than run.json next to it: fit again", code="other-run"
            )
        return cls(path, origin, settings, split, encoding, threads, device)

    def check_unchanged(self, settings: Settings, dataset: Dataset) -> None:
        """Refuse to resume with other data or other settings than the run started with."""
        self.split.check_against(dataset)
        stored, given = (flat_settings(each.model_dump(mode="json")) for each in (self.settings, settings))
        for name, value in stored.items():
            if value != given[name]:
                raise ConfigError(
                    f"{self.path} was started with {name}={value}, not {given[name]}: resume with the same settings, or"
                    " choose another folder",
                    code="changed-settings",
                )

    def data(self, dataset: Dataset) -> TrainingData:
        """The data set with this run's split and encoding."""
        return TrainingData(dataset, self.split, self.encoding)

    def new_train_state(self, group: ProcessGroup = SINGLE_PROCESS, device: torch.device = CPU) -> TrainState:
        """The training state before the first step."""
        spec, num_classes = self.encoding.input_spec, len(self.split.classes)
        return init(self.settings, spec, num_classes, data_hash=data_hash(self.split), group=group, device=device)

    def load_model(self, path: Path | None = None, *, device: torch.device = CPU) -> GenerativeClassifier:
        """The averaged weights that did best on validation, or those in `path`, for prediction and sampling."""
        return self.load_model_and_step(path)[0].place(device)

    def load_model_and_step(self, path: Path | None = None) -> tuple[GenerativeClassifier, int]:
        """The same, with the step at which the model had these weights."""
        kept, path = path is None, path or (self.best if self.best.is_file() else self.last)
        spec, num_classes = self.encoding.input_spec, len(self.split.classes)
        model, step = checkpoint.load_model(path, self.settings, spec, num_classes, data_hash(self.split))
        if kept and self.calibration.is_file():
            with invalid_as_damaged(self.calibration):
                stored = parse_json(self.calibration.read_text(encoding="utf-8"))
                model.calibration = Calibration.from_dict(stored, num_classes)
        return model, step
