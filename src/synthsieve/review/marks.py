"""Samples that a person marked as bad: OUT/marked-bad.json. They are rejected by every sieving that comes after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from synthsieve.errors import CheckpointError
from synthsieve.files import json_of, write_json
from synthsieve.pool import SyntheticPool

FORMAT = "synthsieve marks 1"
NAME = "marked-bad.json"


@dataclass(frozen=True)
class Marks:
    """Marked samples, each named by the weights that drew it and the seed of its chain, so that a mark outlives a pool.

    Attributes:
        path: the file.
        seeds: model hash -> seeds of the marked chains.
    """

    path: Path
    seeds: dict[str, frozenset[int]]

    @classmethod
    def of(cls, folder: Path) -> Marks:
        """The marks kept in a run's folder; none where there is no file."""
        path = folder / NAME
        if not path.is_file():
            return cls(path, {})
        try:
            value = json_of(path.read_text(encoding="utf-8"))
            if value["format"] != FORMAT:
                raise ValueError(f"its format is {value['format']!r}, not {FORMAT!r}")
            seeds = {str(name): frozenset(map(_seed, given)) for name, given in value["marked"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{path} cannot be read ({error!r}): mend it, or remove it to mark anew") from None
        return cls(path, seeds)

    def rows(self, pool: SyntheticPool) -> np.ndarray:
        """The marked rows of a pool: int64, ascending."""
        marked = self.seeds.get(pool.origin["model_hash"], frozenset())
        return np.flatnonzero(np.isin(pool.chain_seed, np.fromiter(marked, dtype=np.int64, count=len(marked))))

    def changed(self, pool: SyntheticPool, rows: Iterable[int], *, bad: bool) -> Marks:
        """With these rows of a pool marked as bad, or no longer; written at once."""
        name = pool.origin["model_hash"]
        given = frozenset(int(seed) for seed in pool.chain_seed[list(rows)])
        before = self.seeds.get(name, frozenset())
        after = Marks(self.path, {**self.seeds, name: before | given if bad else before - given})
        stored = {name: sorted(seeds) for name, seeds in sorted(after.seeds.items()) if seeds}
        write_json(self.path, {"format": FORMAT, "marked": stored})
        return after


def _seed(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"{value!r} is no seed of a chain")
    return value
