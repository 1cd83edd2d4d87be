"""Step 7 of Algorithm 1 in one place: draw -> decode -> filter -> select.

Samples are drawn and scored a block at a time; latents, logits and seeds of all are kept, and x of the selected alone,
decoded once more. 200,000 street-view digits need a few hundred megabytes this way.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from synthsieve.data.modalities.encoding import Encoding
from synthsieve.errors import ConfigError, SelectionError
from synthsieve.evaluation.predict import Oracle, draw_and_score
from synthsieve.io.progress import Progress
from synthsieve.io.random_streams import derive_seed, numpy_stream
from synthsieve.models import generate
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.networks.mlp import MLP
from synthsieve.sampling.langevin import LangevinSettings
from synthsieve.selection.entropy import (
    REJECTED,
    Reason,
    Survivors,
    entropy_of_logits,
    filter_by_entropy,
    search_ceiling,
)
from synthsieve.selection.select import Selection, select
from synthsieve.settings import AugmentationSettings, Ceiling, Coreset, EntropyAt, GradientSource, SamplingSettings
from synthsieve.training.parallel import SINGLE_PROCESS, ProcessGroup
from synthsieve.training.pool import Outcomes, SyntheticPool

if TYPE_CHECKING:
    from synthsieve.selection.curvature import CurvatureState

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def augment(
    model: GenerativeClassifier,
    encoding: Encoding,
    *,
    settings: AugmentationSettings,
    sampling: SamplingSettings,
    seed: int,
    class_shares: np.ndarray | None = None,
    latents_of: SyntheticPool | None = None,
    curvature_state: CurvatureState | None = None,
    try_pool: Callable[[SyntheticPool], float] | None = None,
    oracle: Oracle | None = None,
    progress: Progress | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> tuple[SyntheticPool, Outcomes]:
    """Draw a pool, filter it by entropy and select from it (Algorithm 1, step 7).

    The pool holds the outcomes, too; beside it they come with the figures of the selection: yield per class, entropy
    quantiles, gradient error and bound, largest weight.

    Args:
        model: draws, decodes and scores; the averaged weights, in training.
        encoding: how x is stored.
        settings: how many are drawn, how they are filtered and selected.
        sampling: the chains' number of steps and step size.
        seed: of the chains and of random choices.
        class_shares: (num_classes,), summing to 1, each class's share of the pool; None: equal shares.
        latents_of: an earlier pool whose z are scored again instead of drawing.
        curvature_state: AdaCore's averages of the last selection; the gradients' average is used only where the same
            latents survive again.
        try_pool: pool -> accuracy on validation; needed by `entropy_ceiling = "auto"`.
        oracle: an independent classifier for the pool's `oracle_class`; nothing is selected by it.
        progress: updated while drawing.
        group: the processes that draw: each draws some blocks, then all have all of them.
    """
    started = time.monotonic()
    drawn = _draw(model, encoding, settings, sampling, seed, class_shares, latents_of, oracle, progress, group)

    def under(ceiling: float | None) -> tuple[SyntheticPool, Outcomes]:
        survivors = filter_pool(drawn, settings, ceiling=ceiling)
        again = latents_of is not None and np.array_equal(latents_of.kept, survivors.kept)
        state = curvature_state if again or curvature_state is None else curvature_state.for_other_points()
        outcomes = select_from(model, drawn, survivors, settings, seed=seed, curvature_state=state)
        rows = outcomes.selected
        x = generate.decode(model, encoding, drawn.z[rows], drawn.chain_seed[rows], noise=settings.decode_noise)
        pool = replace(drawn, reason=outcomes.reason, weight=outcomes.weight, rank=outcomes.rank, x=x)
        return pool, replace(outcomes, figures={**_figures(pool, survivors), **outcomes.figures})

    ceiling = settings.entropy_ceiling
    tried: dict[str, Any] = {}
    if isinstance(ceiling, Ceiling):
        ceiling, tried = _search(lambda ceiling: under(ceiling)[0], drawn, settings, try_pool)
    pool, outcomes = under(ceiling)
    seconds = round(time.monotonic() - started, 2)
    return pool, replace(outcomes, figures={**outcomes.figures, **tried, "seconds": seconds})


def draw_again(model: GenerativeClassifier, encoding: Encoding, pool: SyntheticPool, row: int) -> np.ndarray:
    """x of one row of the pool from its seed, its class and the model alone: (*shape), the same bytes as the pool's."""
    if model_hash(model) != pool.origin["model_hash"]:
        raise ConfigError(
            "this pool was drawn from other weights: load the model whose hash it carries", code="other-model"
        )
    alone, noise = slice(row, row + 1), pool.origin["decode_noise"]
    z = generate.draw_latents(model, pool.y[alone], pool.chain_seed[alone], chains=pool.chains)
    again: np.ndarray = generate.decode(model, encoding, z, pool.chain_seed[alone], noise=noise)[0]
    return again


def model_hash(model: GenerativeClassifier) -> str:
    """The first 16 hex digits of the SHA-256 of a model's weights."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _draw(
    model: GenerativeClassifier,
    encoding: Encoding,
    settings: AugmentationSettings,
    sampling: SamplingSettings,
    seed: int,
    class_shares: np.ndarray | None,
    latents_of: SyntheticPool | None,
    oracle: Oracle | None,
    progress: Progress | None,
    group: ProcessGroup,
) -> SyntheticPool:
    """All samples, scored; none is selected yet."""
    chains = LangevinSettings(sampling.num_steps, sampling.step_size, settings.temperature)
    if latents_of is None:
        per_class = np.full(model.num_classes, settings.pool_size // model.num_classes)
        if class_shares is not None:
            per_class = np.rint(settings.pool_size * class_shares).astype(np.int64)
        y = np.arange(model.num_classes).repeat(np.maximum(1, per_class))
        seeds = generate.chain_seeds(derive_seed(seed, "pool"), y)
    else:
        y, seeds = latents_of.y, latents_of.chain_seed
    samples = draw_and_score(
        model,
        encoding,
        y,
        seeds,
        chains=chains,
        noise=settings.decode_noise,
        z=None if latents_of is None else latents_of.z,
        oracle=oracle,
        parts=group.shard.take(list(generate.blocks(len(y)))),
        progress=progress,
    )
    columns = {name: getattr(samples, name) for name in ("z", "logits_z", "logits_x", "z_reencoded", "oracle_class")}
    group.sum_(list(columns.values()))
    origin = {
        "model_hash": model_hash(model),
        "seed": seed if latents_of is None else latents_of.origin["seed"],
        **asdict(chains),
        "decode_noise": settings.decode_noise,
        "entropy_at": str(settings.entropy_at),
    }
    if latents_of is not None:
        origin["latents_of"] = latents_of.origin.get("latents_of", latents_of.origin["model_hash"])
    at_x = settings.entropy_at is EntropyAt.X
    return SyntheticPool(
        y=y,
        chain_seed=seeds,
        **columns,
        entropy=entropy_of_logits(columns["logits_x" if at_x else "logits_z"]),
        reason=np.full(len(y), Reason.KEPT, dtype=np.int8),
        weight=np.zeros(len(y)),
        rank=np.full(len(y), -1),
        x=samples.x,
        origin=origin,
    )


def filter_pool(
    pool: SyntheticPool, settings: AugmentationSettings, *, ceiling: float | None, rejected: np.ndarray | None = None
) -> Survivors:
    """Which samples lie under the ceiling and are predicted as the class requested, as far as the settings say so.

    Rows `rejected` by hand never pass, and do not count where a fraction is kept. `ceiling` is the number that stands
    for `settings.entropy_ceiling`, which may be "auto".
    """
    rest = np.ones(len(pool), dtype=bool)
    if rejected is not None:
        rest[rejected] = False
    if not rest.any():
        raise SelectionError(
            "expected samples to select from, but all are rejected by hand: accept some again", code="all-rejected"
        )
    predicted = pool.logits_at(settings.entropy_at)[rest].argmax(axis=1)
    survivors = filter_by_entropy(
        pool.entropy[rest],
        pool.y[rest],
        entropy_ceiling=ceiling,
        keep_fraction=settings.keep_fraction if ceiling is None else None,
        keep_per_class=ceiling is None and settings.keep_fraction is not None,
        predicted=predicted if settings.require_label else None,
    )
    reason = np.full(len(pool), Reason.BY_HAND, dtype=np.int8)
    reason[rest] = survivors.reason
    return Survivors(reason, survivors.ceiling)


def select_from(
    model: GenerativeClassifier,
    pool: SyntheticPool,
    survivors: Survivors,
    settings: AugmentationSettings,
    *,
    seed: int,
    curvature_state: CurvatureState | None = None,
    method: str = "auto",
    progress: Progress | None = None,
) -> Outcomes:
    """The outcomes of all samples when a coreset of the survivors is selected. `method`: see `synthsieve.select`."""
    kept = np.flatnonzero(survivors.kept)
    weight, rank = np.zeros(len(pool)), np.full(len(pool), -1, dtype=np.int64)
    figures: dict[str, Any] = {}
    state = None
    if settings.coreset in (Coreset.EVERYTHING, Coreset.RANDOM):
        stream = numpy_stream(seed, "random tenth")
        for label in np.unique(pool.y[kept]):
            of_class = rows = kept[pool.y[kept] == label]
            if settings.coreset is Coreset.RANDOM:
                count = max(1, round(settings.coreset_fraction * len(rows)))
                rows = np.sort(stream.choice(rows, count, replace=False))
            weight[rows] = len(of_class) / len(rows)
            rank[rows] = np.arange(len(rows))
    else:
        options = {"curvature_state": curvature_state, "method": method, "progress": progress}
        chosen = select_coreset(model, pool, kept, settings, seed=seed, **options)
        rows = kept[chosen.indices]
        weight[rows] = chosen.weights
        rank[rows] = np.concatenate([np.arange(each.selected) for each in chosen.figures])
        figures = {"gradient_bound": chosen.gradient_bound, "gradient_error": chosen.gradient_error}
        state = chosen.curvature_state
    return Outcomes(survivors.reason, weight, rank, survivors.ceiling, settings, figures, state)


def select_coreset(
    model: GenerativeClassifier,
    pool: SyntheticPool,
    kept: np.ndarray,
    settings: AugmentationSettings,
    *,
    seed: int,
    **options: Any,
) -> Selection:
    """CRAIG's or AdaCore's selection among the rows `kept` (k,); its indices are places in `kept`."""
    at_z = settings.gradients is GradientSource.DRAWN
    last_layer = settings.gradients is GradientSource.LAST_LAYER
    return select(
        labels=pool.y[kept],
        logits=(pool.logits_z if at_z else pool.logits_x)[kept],
        features=_last_hidden(model, pool.z_reencoded[kept]) if last_layer else None,
        budget=settings.coreset_fraction,
        curvature="hutchinson" if settings.coreset is Coreset.ADACORE else "none",
        n_jobs=torch.get_num_threads(),
        seed=seed,
        **options,
    )


@torch.no_grad()
def _last_hidden(model: GenerativeClassifier, z: np.ndarray) -> np.ndarray:
    """What F's last layer sees at z (n, latent_dim): float32 (n, width)."""
    network = model.energy.network
    if not isinstance(network, MLP):
        raise ConfigError(
            'augmentation.gradients="last-layer" needs an energy of fully connected layers: use "reencoded"',
            code="no-last-layer",
        )
    return network.last_hidden(model.to_tensor(z)[:, : model.energy.visible]).cpu().numpy()


def _search(
    under: Callable[[float | None], SyntheticPool],
    drawn: SyntheticPool,
    settings: AugmentationSettings,
    try_pool: Callable[[SyntheticPool], float] | None,
) -> tuple[float, dict[str, Any]]:
    """The ceiling whose pool does best on validation, and all that were tried."""
    if try_pool is None:
        raise ConfigError(
            'augmentation.entropy_ceiling="auto" needs validation rows to search on: keep some, or give a number',
            code="no-validation",
        )
    eligible = np.ones(len(drawn), dtype=bool)
    if settings.require_label:
        eligible = drawn.logits_at(settings.entropy_at).argmax(axis=1) == drawn.y
    entropy = drawn.entropy[eligible] if eligible.any() else drawn.entropy  # the filter then says what is wrong
    found = search_ceiling(entropy, lambda ceiling: try_pool(under(ceiling)))
    return found.ceiling, {"ceilings_tried": list(found.ceilings), "validation_at_ceiling": list(found.scores)}


def _figures(pool: SyntheticPool, survivors: Survivors) -> dict[str, Any]:
    """What a selection shows, as plain numbers."""
    num_classes = pool.logits_x.shape[1]
    return {
        "drawn": len(pool),
        "survivors": len(pool.survivors),
        "selected": len(pool.selected),
        "rejected": {reason.describe(): int((pool.reason == reason).sum()) for reason in REJECTED},
        "entropy_ceiling": survivors.ceiling if np.isfinite(survivors.ceiling) else None,
        "survivors_per_class": np.bincount(pool.y[pool.survivors], minlength=num_classes).tolist(),
        "selected_per_class": np.bincount(pool.y[pool.selected], minlength=num_classes).tolist(),
        "entropy_quantiles": dict(zip(map(str, QUANTILES), np.quantile(pool.entropy, QUANTILES).tolist(), strict=True)),
        "requested_class_at_z": float((pool.logits_z.argmax(axis=1) == pool.y).mean()),
        "requested_class_at_x": float((pool.predicted == pool.y).mean()),
        "largest_weight": float(pool.weight.max()),
    }
