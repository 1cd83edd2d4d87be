"""A classical method on one seed's split, as a job of an experiment: OUT/seed-S/classical/METHOD.npz."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from synthsieve.config import Settings
from synthsieve.data.dataset import Dataset
from synthsieve.data.splits import split_dataset
from synthsieve.errors import CheckpointError
from synthsieve.experiments.classical import Answer, Method, answer
from synthsieve.experiments.classical_methods import CLASSICAL, MOST_UNLABELED
from synthsieve.experiments.views import Views
from synthsieve.files import remove_stale_partials
from synthsieve.learning.run_folder import Origin


@dataclass(frozen=True)
class ClassicalJob:
    """One method to choose from its grid and judge.

    Attributes:
        name: what people call it.
        place: the file of its answer.
        method: the method's name.
        candidates: names of its grid.
        settings: of the runs it stands beside: their data and seed are its own.
        after: nothing.
    """

    name: str
    place: Path
    method: str
    candidates: tuple[str, ...]
    settings: Settings
    after: tuple[Path, ...] = ()

    @classmethod
    def of(cls, method: Method, folder: Path, settings: Settings, dataset: Dataset) -> ClassicalJob:
        """The job whose answer lies in `folder`."""
        candidates = tuple(candidate.name for candidate in method.grid(dataset))
        name = f"{method.name}, seed {settings.seed}"
        return cls(name, folder / f"{method.slug}.npz", method.name, candidates, settings)

    @property
    def steps(self) -> int:
        return len(self.candidates)

    def is_done(self) -> bool:
        """Whether there is an answer, chosen from the grid of today on the same split; a damaged one is none."""
        try:
            about = Answer.read(self.place).about if self.place.is_file() else {}
        except CheckpointError:
            return False
        return (list(about.get("grid", ())), about.get("data")) == (list(self.candidates), self._data)

    def is_whole(self) -> bool:
        return True  # nobody waits for it

    def carry_out(self, origin: Origin, dataset: Dataset, *, tell: Callable[[int], None]) -> None:
        """Split as the runs of that seed do, fit the grid, write the answer."""
        remove_stale_partials(self.place.parent)
        (method,) = (one for one in CLASSICAL if one.name == self.method)
        split = split_dataset(dataset, self.settings.data, seed=self.settings.seed)
        views = Views(dataset, split, self.settings.seed, MOST_UNLABELED, MOST_UNLABELED)
        found = answer(method, views, metric=self.settings.proof.metric, tell=tell)
        replace(found, about={**found.about, "data": self._data}).write(self.place)

    @property
    def _data(self) -> dict[str, object]:
        return self.settings.data.model_dump(mode="json")
