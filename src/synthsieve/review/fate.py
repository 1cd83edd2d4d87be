"""What becomes of every sample of a pool: as training saw it, or sieved anew under another ceiling, budget, by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from synthsieve.augmentation import Judged, choose_from, filter_pool, last_hidden
from synthsieve.config import AugmentationSettings, Ceiling, Coreset, EntropyAt, GradientSource
from synthsieve.entropy import Reason, Survivors
from synthsieve.errors import SelectionError
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.pool import SyntheticPool
from synthsieve.progress import Progress
from synthsieve.review.scores import NOBODY, Scores

NOT_CHOSEN = "not selected: another stands for it"


@dataclass(frozen=True)
class Fate:
    """A row for each of the pool's n samples.

    Attributes:
        reason: int8 (n,), an `entropy.Reason`: kept by the filter, or why not.
        weight: float64 (n,), how many samples a selected one stands for; 0 for the others.
        rank: int64 (n,), the turn in which it was chosen within its class; -1 for those not selected.
        entropy_ceiling: no kept entropy lies above it, nats; infinity without a filter. With `keep_fraction` of each
            class it is the highest of the classes' own lines.
        settings: what it was sieved by.
        figures: the gradient's error and bound; empty where they were not measured.
    """

    reason: np.ndarray
    weight: np.ndarray
    rank: np.ndarray
    entropy_ceiling: float
    settings: AugmentationSettings
    figures: dict[str, Any]

    @property
    def kept(self) -> np.ndarray:
        """Who passed the filter: bool (n,)."""
        return self.reason == Reason.KEPT

    @property
    def selected(self) -> np.ndarray:
        """Rows in the coreset: int64 (k,), ascending."""
        return np.flatnonzero(self.weight > 0)

    def in_words(self, row: int) -> str:
        """Why a sample is where it is."""
        if self.weight[row] > 0:
            return "selected"
        reason = Reason(int(self.reason[row]))
        return NOT_CHOSEN if reason is Reason.KEPT else reason.in_words()

    def counts(self) -> dict[str, int]:
        """How many samples ended where, in words: selected, not selected, then each reason to reject."""
        told = {"selected": int((self.weight > 0).sum()), NOT_CHOSEN: int((self.kept & (self.weight == 0)).sum())}
        for reason in list(Reason)[1:]:
            told[reason.in_words()] = int((self.reason == reason).sum())
        return told


def as_trained(pool: SyntheticPool, settings: AugmentationSettings, figures: dict[str, Any]) -> Fate:
    """The fate that training gave; `figures` are those that the choice stored."""
    ceiling = figures.get("entropy_ceiling")
    kept = {name: value for name, value in figures.items() if name in ("gradient_bound", "gradient_error")}
    return Fate(pool.reason, pool.weight, pool.rank, np.inf if ceiling is None else float(ceiling), settings, kept)


def changed_settings(
    settings: AugmentationSettings,
    *,
    entropy_ceiling: float | None = None,
    keep_fraction: float | None = None,
    require_asked_class: bool | None = None,
    budget: float | None = None,
) -> AugmentationSettings:
    """The settings of training with what is given changed; a ceiling and a fraction exclude each other.

    A `budget` in (0, 1] is the share of each class that is selected; arms that select everything then take CRAIG.
    """
    if entropy_ceiling is not None and keep_fraction is not None:
        raise SelectionError("expected an entropy ceiling or a fraction to keep, got both: leave one out")
    if entropy_ceiling is not None and not 0 < entropy_ceiling < np.inf:
        raise SelectionError(f"expected an entropy ceiling above 0 nats, got {entropy_ceiling:g}: try 1e-3")
    for name, value in (("keep fraction", keep_fraction), ("budget", budget)):
        if value is not None and not 0 < value <= 1:
            raise SelectionError(f"expected a {name} above 0, at most 1, got {value:g}: 0.1 keeps a tenth")
    update: dict[str, Any] = {}
    if entropy_ceiling is not None:
        update |= {"entropy_ceiling": entropy_ceiling, "keep_fraction": None}
    if keep_fraction is not None:
        update |= {"entropy_ceiling": None, "keep_fraction": keep_fraction}
    if require_asked_class is not None:
        update["require_asked_class"] = require_asked_class
    if budget is not None:
        update["coreset_fraction"] = budget
        if settings.coreset is Coreset.EVERYTHING and budget < 1:
            update["coreset"] = Coreset.CRAIG
    return settings.model_copy(update=update)


def filtered(
    pool: SyntheticPool, scores: Scores, settings: AugmentationSettings, excluded: np.ndarray, ceiling: float | None
) -> Survivors:
    """Who passes the filter; rows `excluded` by hand never do, and do not count where a fraction is kept.

    `ceiling` stands in for `entropy_ceiling = "auto"`: the one that training found.
    """
    answers = scores.logits_x if settings.entropy_at is EntropyAt.X else scores.logits_z
    reason = np.full(len(pool), Reason.BY_HAND, dtype=np.int8)
    rest = np.ones(len(pool), dtype=bool)
    rest[excluded] = False
    if not rest.any():
        raise SelectionError("expected samples to choose from, but every one is rejected by hand: take some marks back")
    asked = settings.entropy_ceiling
    found = filter_pool(
        pool.entropy[rest],
        pool.y[rest],
        answers[rest].argmax(axis=1),
        settings,
        ceiling if isinstance(asked, Ceiling) else asked,
    )
    reason[rest] = found.reason
    return Survivors(reason, found.ceiling)


def sieve_again(
    model: GenerativeClassifier,
    pool: SyntheticPool,
    scores: Scores,
    settings: AugmentationSettings,
    *,
    excluded: np.ndarray,
    ceiling: float | None = None,
    seed: int,
    method: str = "auto",
    progress: Progress | None = None,
) -> Fate:
    """Filter and select anew, without drawing or learning again. `method`: see `synthsieve.select`."""
    survivors = filtered(pool, scores, settings, excluded, ceiling)
    judged = judged_again(model, pool, scores, settings)
    chosen = choose_from(judged, survivors, settings, seed=seed, method=method, progress=progress)
    return Fate(survivors.reason, chosen.weight, chosen.rank, survivors.ceiling, settings, chosen.figures)


@torch.no_grad()
def judged_again(
    model: GenerativeClassifier, pool: SyntheticPool, scores: Scores, settings: AugmentationSettings
) -> Judged:
    """A pool as it was when it had been drawn, with all that a choice from it sees."""
    features = None
    if settings.gradients is GradientSource.LAST_LAYER:
        features = last_hidden(model, torch.from_numpy(scores.features)).numpy()
    return Judged(pool.y, pool.chain_seed, pool.z, scores.logits_z, scores.logits_x, features)


def empty_classes(pool: SyntheticPool, fate: Fate, num_classes: int) -> np.ndarray:
    """Classes that samples were drawn of and none is selected of: int64, ascending."""
    drawn = np.bincount(pool.y, minlength=num_classes)
    selected = np.bincount(pool.y[fate.selected], minlength=num_classes)
    return np.flatnonzero((drawn > 0) & (selected == 0))


def purity(pool: SyntheticPool, scores: Scores, rows: np.ndarray) -> float | None:
    """The share of `rows` that an independent judge gives the class asked for; None without a judge or rows."""
    if not len(rows) or scores.judged[rows[0]] == NOBODY:
        return None
    return float((scores.judged[rows] == pool.y[rows]).mean())
