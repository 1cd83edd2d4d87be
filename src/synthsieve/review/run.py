"""A finished run, opened: `synthsieve.open_run("out")`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthsieve.data.dataset import Dataset
from synthsieve.errors import CheckpointError, ConfigError
from synthsieve.experiments.arms import Arm, Cell
from synthsieve.experiments.jobs import judge_of
from synthsieve.learning.additions import read_figures
from synthsieve.learning.run_folder import RunFolder
from synthsieve.progress import Progress
from synthsieve.review.marks import Marks
from synthsieve.review.pool_view import PoolView
from synthsieve.review.table_file import read_table

if TYPE_CHECKING:
    from synthsieve.report.figures import Figures

# Whose pool is looked at when no arm with a pool was chosen: the paper's own, at the L the other arms share.
LOOKED_AT = (Arm.CRAIG, Arm.CRAIG_PSEUDO, Arm.ADACORE, Arm.ENTROPY)
ALONE = "this run"


@dataclass(frozen=True)
class Run:
    """What `synthsieve run`, `reproduce` or `fit` left in a folder.

    Attributes:
        path: the folder.
        table: what table.json holds; None for a single fit.
        seed: whose arms are looked at.
        pooled: arms that drew a pool, by name, with their folders.
    """

    path: Path
    table: dict[str, Any] | None
    seed: int
    pooled: dict[str, Path]

    @classmethod
    def open(cls, path: Path | str, *, seed: int | None = None) -> Run:
        """The run in `path`; `seed` is one of those it was repeated with, the first if not given."""
        path = Path(path)
        if (path / "table.json").is_file():
            return _experiment(path, seed)
        if RunFolder.exists(path):
            single = RunFolder.open(path)
            drew = any("drawn" in figures for figures in read_figures(path))
            return cls(path, None, single.settings.seed, {ALONE: path} if drew else {})
        if (path / "seed-0").is_dir() or any(path.glob("seed-*/first-phase/run.json")):
            raise CheckpointError(f"{path} holds a run that is not finished: give the same `synthsieve run` again")
        raise CheckpointError(f"{path} holds no run: give the folder that `synthsieve run -o` or `fit -o` wrote")

    @property
    def first_phase(self) -> RunFolder:
        """The run whose split, encoding and classes all arms share."""
        return RunFolder.open(self.path if self.table is None else self.path / f"seed-{self.seed}" / "first-phase")

    @property
    def chosen(self) -> str | None:
        """The arm that validation preferred; None where nothing was compared."""
        choice = None if self.table is None else self.table["choice"]
        return None if choice is None else str(choice["arm"])

    @cached_property
    def dataset(self) -> Dataset:
        """The data, read again from where they came."""
        dataset = self.first_phase.origin.load()
        self.first_phase.split.check_against(dataset)
        return dataset

    @property
    def looked_at(self) -> str:
        """The arm whose pool is shown unless another is asked for: the chosen one if it drew a pool, else CRAIG's."""
        if not self.pooled:
            raise ConfigError(f"{self.path} drew no synthetic pool: make one with `synthsieve run`, or `fit --augment`")
        if self.chosen in self.pooled:
            return str(self.chosen)
        assert self.table is None or self.table["arms"]
        for arm in LOOKED_AT:
            sizes = sorted(size for name, size in self._sizes.items() if name[0] is arm)
            if sizes:
                return Cell(arm, sizes[min(1, len(sizes) - 1)]).name
        return next(iter(self.pooled))

    def arm_folder(self, name: str) -> Path:
        """The folder of an arm with a pool; a name that none has is refused with those there are."""
        if name not in self.pooled:
            known = "; ".join(self.pooled) or "none"
            raise ConfigError(f"expected an arm with a pool ({known}), got {name!r}: give one of those")
        return self.pooled[name]

    def pool(self, arm: str | None = None, *, progress: Progress | None = None) -> PoolView:
        """One arm's pool; the first time, every sample is looked at again, which takes about as long as drawing."""
        name = self.looked_at if arm is None else arm
        folder = RunFolder.open(self.arm_folder(name))
        judge = self.path / "judge"
        return PoolView.open(
            name,
            folder,
            self.dataset,
            Marks.of(self.path),
            judge=judge_of(judge) if self.table is not None and RunFolder.exists(judge) else None,
            progress=progress,
        )

    @cached_property
    def figures(self) -> Figures:
        """Its figures: `run.figures.names()`, `run.figures.entropy_histogram()`, ..."""
        from synthsieve.report.figures import Figures

        return Figures(self)

    def _repr_html_(self) -> str:
        from synthsieve.report.notebook import run_in_html

        return run_in_html(self)

    @property
    def _sizes(self) -> dict[tuple[Arm, int], int]:
        cells = [] if self.table is None else [_cell(entry) for entry in self.table["arms"].values()]
        return {(cell.arm, cell.pool_size): cell.pool_size for cell in cells if cell.name in self.pooled}


def _experiment(path: Path, seed: int | None) -> Run:
    table = read_table(path / "table.json")
    seeds = [int(one) for one in table["seeds"]]
    cells = [_cell(entry) for entry in table["arms"].values()]
    seed = seeds[0] if seed is None else seed
    if seed not in seeds:
        raise ConfigError(f"expected a seed of the run ({', '.join(map(str, seeds))}), got {seed}: give one of those")
    pooled = {cell.name: path / f"seed-{seed}" / cell.slug for cell in cells if cell.pool_size}
    return Run(path, table, seed, pooled)


def _cell(entry: dict[str, Any]) -> Cell:
    return Cell(Arm(entry["arm"]), int(entry["pool_size"]))


def open_run(path: Path | str, *, seed: int | None = None) -> Run:
    """What a command left in a folder, to look at: see `Run`."""
    return Run.open(path, seed=seed)
