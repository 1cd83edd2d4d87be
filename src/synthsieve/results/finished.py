"""The files of a finished run: its table, its variants and their pools."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import torch

from synthsieve.data.dataset import Dataset
from synthsieve.errors import CheckpointError, ConfigError
from synthsieve.experiments.arms import Arm, TableEntry
from synthsieve.io.devices import AUTO, device_of
from synthsieve.results.pool_view import PoolView, Rejections
from synthsieve.results.table import FILE, ResultsTable
from synthsieve.training.extra_data import read_figures
from synthsieve.training.run_dir import RunDirectory
from synthsieve.training.state import CPU

# Whose pool is shown if the chosen variant has none, in this order: the paper's own first.
DEFAULT_ARMS = (Arm.CRAIG, Arm.CRAIG_PSEUDO, Arm.ADACORE, Arm.ENTROPY)
SINGLE_FIT = "this run"


@dataclass(frozen=True)
class FinishedRun:
    """What `synthsieve run`, `reproduce` or `fit` wrote to a directory."""

    path: Path
    table: ResultsTable | None  # the contents of table.json; None for a single fit
    seed: int  # whose variants are shown
    pooled: dict[str, Path]  # variants that drew a pool, by name, with their directories
    device: torch.device = CPU  # where its models are computed

    @classmethod
    def open(cls, path: Path | str, *, seed: int | None = None, device: str | torch.device = AUTO) -> Self:
        """The run in `path`; `seed` is one of the run's seeds, the first if not given."""
        path, torch_device = Path(path), device_of(device)
        if (path / FILE).is_file():
            return cls._comparison(path, seed, torch_device)
        if RunDirectory.exists(path):
            single = RunDirectory.open(path)
            drew = any("drawn" in figures for figures in read_figures(path))
            return cls(path, None, single.settings.seed, {SINGLE_FIT: path} if drew else {}, torch_device)
        if (path / "seed-0").is_dir() or any(path.glob("seed-*/pretrained/run.json")):
            message = f"the run in {path} is not finished: repeat the same `synthsieve run` to continue it"
            raise CheckpointError(message, code="unfinished-run")
        message = f"{path} holds no run: give the directory that `synthsieve run -o` or `fit -o` wrote"
        raise CheckpointError(message, code="no-run")

    @classmethod
    def _comparison(cls, path: Path, seed: int | None, device: torch.device) -> Self:
        table = ResultsTable.read(path / FILE)
        seed = table.seeds[0] if seed is None else seed
        if seed not in table.seeds:
            message = f"expected a seed of the run ({', '.join(map(str, table.seeds))}), got {seed}: give one of those"
            raise ConfigError(message, code="unknown-seed")
        entries = [record.entry for record in table.arms.values()]
        pooled = {one.name: path / f"seed-{seed}" / one.slug for one in entries if one.pool_size}
        return cls(path, table, seed, pooled, device)

    @property
    def pretrained(self) -> RunDirectory:
        """The run whose split, encoding and classes all variants share."""
        return RunDirectory.open(self.path if self.table is None else self.path / f"seed-{self.seed}" / "pretrained")

    @property
    def chosen(self) -> str | None:
        """The variant with the best validation score; None where nothing was compared."""
        return None if self.table is None or self.table.choice is None else self.table.choice.arm

    @cached_property
    def dataset(self) -> Dataset:
        """The data, read again from their source."""
        dataset = self.pretrained.origin.load()
        self.pretrained.split.check_against(dataset)
        return dataset

    @property
    def default_arm(self) -> str:
        """The variant whose pool is shown by default: the chosen one if it drew a pool, else CRAIG's."""
        if not self.pooled:
            message = f"the run in {self.path} has no synthetic pool: make one with `synthsieve run` or `fit --augment`"
            raise ConfigError(message, code="no-pool")
        if self.chosen in self.pooled:
            return str(self.chosen)
        records = [] if self.table is None else self.table.arms.values()
        for arm in DEFAULT_ARMS:
            if sizes := sorted(one.pool_size for one in records if one.arm is arm and one.entry.name in self.pooled):
                return TableEntry(arm, sizes[min(1, len(sizes) - 1)]).name
        return next(iter(self.pooled))

    def arm_folder(self, name: str) -> Path:
        """The directory of a variant with a pool."""
        if name not in self.pooled:
            known = "; ".join(self.pooled) or "none"
            message = f"expected a variant with a pool ({known}), got {name!r}: give one of those"
            raise ConfigError(message, code="unknown-variant")
        return self.pooled[name]

    def pool(self, variant: str | None = None) -> PoolView:
        """One variant's pool."""
        name = self.default_arm if variant is None else variant
        folder = RunDirectory.open(self.arm_folder(name))
        return PoolView.open(name, folder, self.dataset, Rejections.read(self.path), device=self.device)
