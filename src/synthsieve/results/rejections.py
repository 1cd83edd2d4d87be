"""Samples that a person rejected: OUT/rejections.json. No later selection keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from synthsieve.errors import CheckpointError
from synthsieve.io.files import parse_json, write_json
from synthsieve.training.pool import SyntheticPool

FORMAT = "synthsieve rejections 1"
NAME = "rejections.json"


@dataclass(frozen=True)
class Rejections:
    """Rejected samples, each named by the weights that drew it and the seed of its chain: they hold for later pools."""

    path: Path  # the file
    seeds: dict[str, frozenset[int]]  # model hash -> seeds of the rejected chains

    @classmethod
    def read(cls, folder: Path) -> Rejections:
        """Those stored in a run's folder; none where there is no file."""
        path = folder / NAME
        if not path.is_file():
            return cls(path, {})
        try:
            value = parse_json(path.read_text(encoding="utf-8"))
            if value["format"] != FORMAT:
                raise ValueError(f"its format is {value['format']!r}, not {FORMAT!r}")
            seeds = {str(name): frozenset(given) for name, given in value["rejected"].items()}
            if not all(type(seed) is int and 0 <= seed < 2**63 for given in seeds.values() for seed in given):
                raise ValueError("it has something else than chain seeds")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"{path} cannot be read ({error!r}): repair it, or remove it to start again"
            raise CheckpointError(message, code="damaged-rejections") from None
        return cls(path, seeds)

    def rows(self, pool: SyntheticPool) -> np.ndarray:
        """The rejected rows of a pool: int64, ascending."""
        seeds = self.seeds.get(pool.origin["model_hash"], frozenset())
        return np.flatnonzero(np.isin(pool.chain_seed, np.fromiter(seeds, dtype=np.int64, count=len(seeds))))

    def update(self, pool: SyntheticPool, rows: Iterable[int], *, reject: bool) -> Rejections:
        """With these rows of a pool rejected, or no longer; written at once."""
        name = pool.origin["model_hash"]
        given = frozenset(int(seed) for seed in pool.chain_seed[list(rows)])
        before = self.seeds.get(name, frozenset())
        after = Rejections(self.path, {**self.seeds, name: before | given if reject else before - given})
        stored = {name: sorted(seeds) for name, seeds in sorted(after.seeds.items()) if seeds}
        write_json(self.path, {"format": FORMAT, "rejected": stored})
        return after
