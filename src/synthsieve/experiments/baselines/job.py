"""A baseline method on one split, as a job of an experiment: OUT/seed-S/classical/METHOD.npz."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from synthsieve.data.dataset import Dataset
from synthsieve.data.origin import Origin
from synthsieve.data.splits import split_dataset
from synthsieve.errors import CheckpointError
from synthsieve.experiments.baselines.features import Views
from synthsieve.experiments.baselines.search import BaselineResult, Method, fit_baseline
from synthsieve.experiments.baselines.sklearn_models import CLASSICAL, MAX_UNLABELED
from synthsieve.io.files import remove_stale_partials
from synthsieve.settings import Settings


@dataclass(frozen=True)
class ClassicalJob:
    """The grid search of one method."""

    name: str  # name of the job
    output_path: Path  # the file of its answer
    method: str  # the method's name
    candidates: tuple[str, ...]  # names of its grid
    settings: Settings  # of the experiment, for the data and the seed
    after: tuple[Path, ...] = ()  # jobs that must be done before: none

    @classmethod
    def of(cls, method: Method, folder: Path, settings: Settings, dataset: Dataset) -> ClassicalJob:
        """The job that writes its result to `folder`."""
        candidates = tuple(candidate.name for candidate in method.grid(dataset))
        name = f"{method.name}, seed {settings.seed}"
        return cls(name, folder / f"{method.slug}.npz", method.name, candidates, settings)

    @property
    def steps(self) -> int:
        return len(self.candidates)

    def is_done(self) -> bool:
        """Whether there is a readable result of the same grid on the same split."""
        try:
            metadata = BaselineResult.read(self.output_path).metadata if self.output_path.is_file() else {}
        except CheckpointError:
            return False
        return (list(metadata.get("grid", ())), metadata.get("data")) == (list(self.candidates), self._data)

    def is_valid(self) -> bool:
        return True  # no other job depends on it

    def run(self, origin: Origin, dataset: Dataset, *, report: Callable[[int], None]) -> None:
        """Split as the runs of that seed do, fit the grid, write the answer."""
        remove_stale_partials(self.output_path.parent)
        (method,) = (one for one in CLASSICAL if one.name == self.method)
        split = split_dataset(dataset, self.settings.data, seed=self.settings.seed)
        views = Views(dataset, split, self.settings.seed, MAX_UNLABELED, MAX_UNLABELED)
        found = fit_baseline(method, views, metric=self.settings.comparison.metric, report=report)
        replace(found, metadata={**found.metadata, "data": self._data}).write(self.output_path)

    @property
    def _data(self) -> dict[str, object]:
        return self.settings.data.model_dump(mode="json")
