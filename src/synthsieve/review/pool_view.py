"""One pool of a finished run, ready to be looked at: any sample, its fate, its neighbours, its chain."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve import drawing
from synthsieve.config import AugmentationSettings
from synthsieve.data.dataset import Dataset
from synthsieve.entropy import Reason
from synthsieve.errors import ConfigError
from synthsieve.evaluation.figures import spaced_ranks
from synthsieve.evaluation.memorisation import Frame, k_nearest
from synthsieve.learning import additions
from synthsieve.learning.run_folder import RunFolder
from synthsieve.learning.shown import shown_items
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.pool import SyntheticPool
from synthsieve.progress import Progress
from synthsieve.randomness import derive_seed
from synthsieve.review.fate import Fate, as_trained, empty_classes, sieve_again
from synthsieve.review.marks import Marks
from synthsieve.review.scores import Judge, Scores, score
from synthsieve.sampling.langevin import LangevinSettings


@dataclass(frozen=True)
class Near:
    """Neighbours in the encoder's space, nearest first: `rows` int64 (k,), `distances` float64 (k,)."""

    rows: np.ndarray
    distances: np.ndarray


@dataclass(frozen=True)
class PoolView:
    """A pool with everything that is known of its samples.

    Attributes:
        name: the arm that drew it, as people call it.
        run: the arm's folder, with split, encoding and settings.
        dataset: where the real examples are.
        step: when it was drawn; `figures`: what the choice showed then.
        pool: the samples.
        model: the weights that drew, decoded and judged them.
        scores: what they say of each.
        marks: samples that a person marked as bad, as they were when this view was opened.
    """

    name: str
    run: RunFolder
    dataset: Dataset
    step: int
    figures: dict[str, Any]
    pool: SyntheticPool
    model: GenerativeClassifier
    scores: Scores
    marks: Marks

    @classmethod
    def open(
        cls,
        name: str,
        run: RunFolder,
        dataset: Dataset,
        marks: Marks,
        *,
        judge: Judge | None = None,
        progress: Progress | None = None,
    ) -> PoolView:
        """The last pool of a run; what is not yet known of its samples is worked out, and kept beside it."""
        chosen = additions.latest(run.path)
        if chosen.pool is None:
            raise ConfigError(f"{run.path} drew no pool: give a run whose arm learned from synthetic samples")
        run.split.check_against(dataset)
        model, path = additions.model_that_drew(run, chosen.pool), _scores_path(run.path, chosen.step)
        scores = Scores.read(path, chosen.pool)
        if scores is None:
            real_rows = np.concatenate([run.split.labeled, run.split.unlabeled])
            scores = score(
                model,
                run.encoding,
                chosen.pool,
                train_x=dataset.train.x,
                real_rows=real_rows,
                judge=judge,
                progress=progress,
            )
            with suppress(OSError):  # of a run that may only be read: they are worked out again the next time
                scores.write(path, chosen.pool)
        return cls(name, run, dataset, chosen.step, chosen.figures, chosen.pool, model, scores, marks)

    def __len__(self) -> int:
        return len(self.pool)

    @property
    def classes(self) -> tuple[str, ...]:
        return self.run.split.classes

    @property
    def settings(self) -> AugmentationSettings:
        """What training sieved by."""
        return self.run.settings.augmentation

    @property
    def choice_seed(self) -> int:
        """The seed that training chose from the pool with."""
        return derive_seed(self.run.settings.seed, f"augmentation/{self.step}")

    @cached_property
    def marked(self) -> np.ndarray:
        """Rows marked as bad by hand: int64, ascending."""
        return self.marks.rows(self.pool)

    def with_marks(self, marks: Marks) -> PoolView:
        return replace(self, marks=marks)

    def as_trained(self) -> Fate:
        """The fate that training gave to each sample, marks or not."""
        return as_trained(self.pool, self.settings, self.figures)

    def sieved(
        self,
        settings: AugmentationSettings | None = None,
        *,
        method: str = "auto",
        progress: Progress | None = None,
    ) -> Fate:
        """The fate of each sample now: that of training, or sieved anew where settings changed or marks were made."""
        settings = settings or self.settings
        if settings == self.settings and not len(self.marked):
            return self.as_trained()
        return sieve_again(
            self.model,
            self.pool,
            self.scores,
            settings,
            excluded=self.marked,
            ceiling=self.figures.get("entropy_ceiling"),
            seed=self.choice_seed,
            method=method,
            progress=progress,
        )

    def lost_classes(self, fate: Fate) -> np.ndarray:
        """Classes that a choice leaves without a sample though it need not: int64, ascending.

        They are those that training's own choice has, and those that a ceiling other than training's shuts out.
        """
        empty = empty_classes(self.pool, fate, len(self.classes))
        never = empty_classes(self.pool, self.as_trained(), len(self.classes))
        if fate.settings.entropy_ceiling != self.settings.entropy_ceiling:
            never = np.setdiff1d(never, self.pool.y[fate.reason == Reason.HIGH_ENTROPY])
        return np.setdiff1d(empty, never)

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """x of those samples, as the source stores examples: the same bytes as the pool's own."""
        rows = np.asarray(rows, dtype=np.int64)
        origin = self.pool.origin
        return drawing.decode(
            self.model, self.run.encoding, self.pool.z[rows], self.pool.chain_seed[rows], noise=origin["decode_noise"]
        )

    def items(self, rows: np.ndarray) -> Any:
        """Those samples as people have them: images, a pyarrow table, waveforms, sentences."""
        return shown_items(self.run, self.decode(rows), self.dataset)

    def real_items(self, rows: np.ndarray) -> Any:
        """Rows of `dataset.train` as people have them."""
        if self.run.origin.features is not None:
            return self.dataset.about.take(rows)
        return self.run.encoding.items(self.dataset.train.x[rows])

    def neighbours(self, row: int, count: int = 8) -> Near:
        """The other samples of the pool that are nearest to one, by the encoder: Euclidean between means of q."""
        near = self._near(row, self._placed_pool, count + 1)
        keep = np.flatnonzero(near.rows != row)[:count]
        return Near(near.rows[keep], near.distances[keep])

    def nearest_real(self, row: int, count: int = 4) -> Near:
        """The training examples nearest to one sample: rows of `dataset.train`."""
        near = self._near(row, self._placed_real, count)
        return Near(self.scores.real_rows[near.rows], near.distances)

    def chain(self, row: int, count: int = 9) -> tuple[np.ndarray, np.ndarray]:
        """One sample's chain from its start in p0 to its end: the steps (k,), ascending, and x there, (k, *shape)."""
        origin = self.pool.origin
        if "latents_of" in origin:
            raise ConfigError("this pool's latents came from an earlier model, so that its chains cannot be replayed")
        chains = LangevinSettings(origin["num_steps"], origin["step_size"], origin["temperature"])
        steps = spaced_ranks(chains.num_steps + 1, count)
        seed = int(self.pool.chain_seed[row])
        z = drawing.replay_chain(self.model, int(self.pool.y[row]), seed, chains=chains, at=steps.tolist())
        seeds = np.full(len(z), seed, dtype=np.int64)
        return steps, drawing.decode(self.model, self.run.encoding, z, seeds, noise=origin["decode_noise"])

    def _near(self, row: int, placed: Any, count: int) -> Near:
        one = self._frame.of(self.scores.features[row : row + 1])
        distances, rows = k_nearest(one, placed, min(count, len(placed)), block_rows=len(placed))
        return Near(rows[0], distances[0] * self._frame.magnitude)

    @cached_property
    def _frame(self) -> Frame:
        return Frame.around(self.scores.features, self.scores.real_features)

    @cached_property
    def _placed_pool(self) -> Any:
        return self._frame.of(self.scores.features)

    @cached_property
    def _placed_real(self) -> Any:
        return self._frame.of(self.scores.real_features)


def _scores_path(folder: Path, step: int) -> Path:
    return folder / f"pool-{step:07d}.scores.npz"
