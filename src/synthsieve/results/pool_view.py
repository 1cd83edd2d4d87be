"""One pool of a finished run: any sample, its outcome, its neighbours, its chain; other selections of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from synthsieve.data.dataset import Dataset
from synthsieve.errors import CheckpointError, ConfigError, SelectionError
from synthsieve.evaluation.memorization import Nearest, nearest_distances
from synthsieve.evaluation.predict import latents
from synthsieve.io.files import parse_json, write_json
from synthsieve.io.progress import Progress
from synthsieve.io.random_streams import derive_seed
from synthsieve.models import generate
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.results.export.media import spaced_ranks
from synthsieve.results.readable import shown_items
from synthsieve.selection.entropy import Reason, check_filter
from synthsieve.settings import AugmentationSettings, Ceiling, Coreset
from synthsieve.training import extra_data
from synthsieve.training.augment import filter_pool, select_from
from synthsieve.training.pool import Outcomes, SyntheticPool
from synthsieve.training.run_dir import RunDirectory
from synthsieve.training.state import CPU

COMPUTED = ("real_rows", "real_latents", "nearest_distance")  # that no rejection changes
REJECTIONS_FORMAT = "synthsieve rejections 1"
REJECTIONS = "rejections.json"


@dataclass(frozen=True)
class Rejections:
    """Samples that a person rejected: OUT/rejections.json. No later selection keeps them.

    Each is named by the weights that drew it and the seed of its chain, so rejections hold for later pools.
    """

    path: Path  # the file
    seeds: dict[str, frozenset[int]]  # model hash -> seeds of the rejected chains

    @classmethod
    def read(cls, folder: Path) -> Rejections:
        """Those stored in a run's folder; none where there is no file."""
        path = folder / REJECTIONS
        if not path.is_file():
            return cls(path, {})
        try:
            value = parse_json(path.read_text(encoding="utf-8"))
            if value["format"] != REJECTIONS_FORMAT:
                raise ValueError(f"its format is {value['format']!r}, not {REJECTIONS_FORMAT!r}")
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
        write_json(self.path, {"format": REJECTIONS_FORMAT, "rejected": stored})
        return after


@dataclass(frozen=True)
class PoolView:
    """A pool with everything that is known of its samples."""

    name: str  # the variant that drew it
    run: RunDirectory  # the variant's folder, with split, encoding and settings
    dataset: Dataset  # the real examples
    step: int  # when it was drawn
    figures: dict[str, Any]  # what the selection measured then
    pool: SyntheticPool
    model: GenerativeClassifier  # the weights that drew, decoded and scored the samples
    rejections: Rejections  # samples that a person rejected, as they were when this view was opened

    @classmethod
    def open(
        cls, name: str, run: RunDirectory, dataset: Dataset, rejections: Rejections, *, device: torch.device = CPU
    ) -> PoolView:
        """The last pool of a run, whose model is computed on `device`."""
        chosen = extra_data.latest(run.path)
        if chosen.pool is None:
            raise ConfigError(f"{run.path} drew no pool: give a run that trained on synthetic samples", code="no-pool")
        run.split.check_against(dataset)
        model = extra_data.model_that_drew(run, chosen.pool).place(device)
        return cls(name, run, dataset, chosen.step, chosen.figures, chosen.pool, model, rejections)

    def __len__(self) -> int:
        return len(self.pool)

    @property
    def classes(self) -> tuple[str, ...]:
        return self.run.split.classes

    @property
    def settings(self) -> AugmentationSettings:
        """What training filtered and selected by."""
        return self.run.settings.augmentation

    @property
    def selection_seed(self) -> int:
        """The seed that training selected from the pool with."""
        return derive_seed(self.run.settings.seed, f"augmentation/{self.step}")

    @cached_property
    def rejected(self) -> np.ndarray:
        """Rows rejected by hand: int64, ascending."""
        return self.rejections.rows(self.pool)

    def with_rejections(self, rejections: Rejections) -> PoolView:
        """The same pool under other rejections; what was computed of the real examples is kept."""
        view = replace(self, rejections=rejections)
        vars(view).update({name: value for name, value in vars(self).items() if name in COMPUTED})
        return view

    def as_trained(self) -> Outcomes:
        """The outcome of each sample in training, rejected by hand since or not."""
        return self.pool.as_trained(self.settings, self.figures)

    def filter(self, settings: AugmentationSettings) -> Outcomes:
        """Which samples pass the filter of `settings`; those rejected by hand never do."""
        ceiling = settings.entropy_ceiling
        if isinstance(ceiling, Ceiling):
            ceiling = self.figures.get("entropy_ceiling")  # that which training found
        return filter_pool(self.pool, settings, ceiling=ceiling, rejected=self.rejected)

    def select(
        self,
        settings: AugmentationSettings | None = None,
        *,
        method: str = "auto",
        progress: Progress | None = None,
    ) -> Outcomes:
        """The outcome of each sample: as trained, or selected again where settings or rejections changed.

        Nothing is drawn or trained again. `method`: see `synthsieve.select`.
        """
        settings = settings or self.settings
        if settings == self.settings and not len(self.rejected):
            return self.as_trained()
        filtered, seed = self.filter(settings), self.selection_seed
        return select_from(self.model, self.pool, filtered, seed=seed, method=method, progress=progress)

    def class_counts(self, outcome: Outcomes) -> dict[str, np.ndarray]:
        """How many samples of each class were `drawn`, `kept` by the filter and `selected`: int64 (num_classes,)."""
        masks = {"drawn": np.ones(len(self), dtype=bool), "kept": outcome.kept, "selected": outcome.weight > 0}
        return {name: np.bincount(self.pool.y[mask], minlength=len(self.classes)) for name, mask in masks.items()}

    def class_purity(self, outcome: Outcomes) -> list[float | None]:
        """The purity of the selected samples of each class."""
        y, selected = self.pool.y, outcome.weight > 0
        return [self.pool.purity(np.flatnonzero((y == c) & selected)) for c in range(len(self.classes))]

    def lost_classes(self, outcome: Outcomes) -> np.ndarray:
        """Classes that a selection leaves without a sample though it need not: int64, ascending.

        They are those that training selected samples of, and those that another ceiling than training's rejects.
        """
        y = self.pool.y
        never = np.setdiff1d(y, y[self.pool.selected])
        if outcome.settings.entropy_ceiling != self.settings.entropy_ceiling:
            never = np.setdiff1d(never, y[outcome.reason == Reason.HIGH_ENTROPY])
        return np.setdiff1d(np.setdiff1d(y, y[outcome.selected]), never)

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """x of those samples, as the source stores examples: the same bytes as in the pool."""
        return self._decode(self.pool.z[rows], self.pool.chain_seed[rows])

    def _decode(self, z: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        return generate.decode(self.model, self.run.encoding, z, seeds, noise=self.pool.origin["decode_noise"])

    def items(self, rows: np.ndarray) -> Any:
        """Those samples in the user's form: images, a pyarrow table, waveforms, sentences."""
        return shown_items(self.run, self.decode(rows), self.dataset)

    def real_items(self, rows: np.ndarray) -> Any:
        """Rows of `dataset.train` in the user's form."""
        if self.run.origin.features is not None:
            return self.dataset.metadata.take(rows)
        return self.run.encoding.items(self.dataset.train.x[rows])

    @cached_property
    def real_rows(self) -> np.ndarray:
        """The training examples, rows of `dataset.train`: int64 (m,), the labelled ones first."""
        return np.concatenate([self.run.split.labeled, self.run.split.unlabeled])

    @cached_property
    def real_latents(self) -> np.ndarray:
        """The mean of q(z given x) of each of `real_rows`: float32 (m, latent_dim); computed when first needed."""
        return latents(self.model, self.run.encoding, self.dataset.train.x[self.real_rows]).astype(np.float32)

    def nearest(self, rows: np.ndarray) -> Nearest:
        """The nearest training example, a row of `dataset.train`, to each of these samples, between means of q."""
        found = nearest_distances(self.pool.z_reencoded[rows], self.real_latents)
        return Nearest(found.distances, self.real_rows[found.indices])

    @cached_property
    def nearest_distance(self) -> np.ndarray:
        """The distance of every sample to its nearest training example: float64 (n,); computed when first needed."""
        return self.nearest(np.arange(len(self))).distances

    def neighbours(self, row: int, count: int = 8) -> Nearest:
        """The other samples of the pool that are nearest to one: Euclidean between means of q."""
        near = _closest(self.pool.z_reencoded, self.pool.z_reencoded[row], count + 1)
        others = near.indices != row
        return Nearest(near.distances[others][:count], near.indices[others][:count])

    def nearest_real(self, row: int, count: int = 4) -> Nearest:
        """The training examples nearest to one sample: rows of `dataset.train`."""
        near = _closest(self.real_latents, self.pool.z_reencoded[row], count)
        return Nearest(near.distances, self.real_rows[near.indices])

    def chain(self, row: int, count: int = 9) -> tuple[np.ndarray, np.ndarray]:
        """One sample's chain from its start to its end: the steps (k,), ascending, and x there, (k, *shape)."""
        chains, seed = self.pool.chains, int(self.pool.chain_seed[row])
        steps = spaced_ranks(chains.num_steps + 1, count)
        z = generate.replay_chain(self.model, int(self.pool.y[row]), seed, chains=chains, at=steps.tolist())
        return steps, self._decode(z, np.full(len(z), seed, dtype=np.int64))


def _closest(references: np.ndarray, point: np.ndarray, count: int) -> Nearest:
    """The `count` references (m, d) nearest to a point (d,), nearest first, the lowest row first among equals."""
    distances = np.linalg.norm(references.astype(np.float64) - point, axis=1)
    rows = np.argsort(distances, kind="stable")[:count]
    return Nearest(distances[rows], rows)


def changed_settings(
    settings: AugmentationSettings,
    *,
    entropy_ceiling: float | None = None,
    keep_fraction: float | None = None,
    require_label: bool | None = None,
    budget: float | None = None,
    coreset: Coreset | None = None,
) -> AugmentationSettings:
    """The settings of training with what is given changed; a ceiling and a fraction exclude each other.

    A `budget` in (0, 1] is the share of each class that is selected, by `coreset` if given. Variants that select
    everything then use herding, which chooses best for other models (decision 1301).
    """
    check_filter(entropy_ceiling, keep_fraction)
    if budget is not None and not 0 < budget <= 1:
        raise SelectionError(f"expected budget in (0, 1], got {budget:g}: 0.1 selects a tenth", code="budget")
    update: dict[str, Any] = {}
    if entropy_ceiling is not None or keep_fraction is not None:
        update = {"entropy_ceiling": entropy_ceiling, "keep_fraction": keep_fraction}
    if require_label is not None:
        update["require_label"] = require_label
    if budget is not None:
        update["coreset_fraction"] = budget
        if settings.coreset is Coreset.EVERYTHING and budget < 1:
            update["coreset"] = Coreset.HERDING
    if coreset is not None:
        update["coreset"] = coreset
    return settings.model_copy(update=update)
