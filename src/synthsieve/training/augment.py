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
from synthsieve.io.random_streams import derive_seed, numpy_stream, torch_stream
from synthsieve.models import generate
from synthsieve.models.chains import DrawSettings, resolve
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.networks.mlp import MLP
from synthsieve.selection.entropy import (
    REJECTED,
    Reason,
    entropy_of_logits,
    filter_rows,
    search_ceiling,
)
from synthsieve.selection.herding import herd
from synthsieve.selection.options import SelectionOptions
from synthsieve.selection.select import Selection, select
from synthsieve.settings import (
    AugmentationSettings,
    Ceiling,
    Coreset,
    Draw,
    EntropyAt,
    GradientSource,
    SamplingSettings,
)
from synthsieve.training.parallel import SINGLE_PROCESS, ProcessGroup
from synthsieve.training.pool import Outcomes, SyntheticPool

if TYPE_CHECKING:
    from synthsieve.selection.curvature import CurvatureState

HERDING_TARGETS = 1_000  # draws of the reference that stand for the real rows of a class
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def augment(
    model: GenerativeClassifier,
    encoding: Encoding,
    *,
    settings: AugmentationSettings,
    sampling: SamplingSettings,
    seed: int,
    class_shares: np.ndarray | None = None,
    class_offsets: np.ndarray | None = None,
    latents_of: SyntheticPool | None = None,
    curvature_state: CurvatureState | None = None,
    try_pool: Callable[[SyntheticPool], float] | None = None,
    oracle: Oracle | None = None,
    progress: Progress | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> tuple[SyntheticPool, Outcomes]:
    """Draw a pool, filter it by entropy and select from it (Algorithm 1, step 7).

    The outcomes, which the pool holds as well, also have the figures of the selection: yield per class, entropy
    quantiles, gradient error and bound, largest weight.

    Args:
        seed: of the chains and of random choices.
        class_shares: (num_classes,), summing to 1, each class's share of the pool; None: equal shares.
        class_offsets: (num_classes,), added to the logits that the filter sees, so that a class that is rare among the
            labels is not rejected for being rare; None: nothing is.
        latents_of: an earlier pool whose z are scored again instead of drawing.
        curvature_state: AdaCore's averages of the last selection; the gradients' average is used only where the same
            latents survive again.
        try_pool: pool -> accuracy on validation; needed by `entropy_ceiling = "auto"`.
        oracle: an independent classifier for the pool's `oracle_class`; nothing is selected by it.
        group: the processes that draw: each draws some blocks, then all have all of them.
    """
    started = time.monotonic()
    drawn = _draw_pool(
        model, encoding, settings, sampling, seed, class_shares=class_shares, class_offsets=class_offsets,
        latents_of=latents_of, oracle=oracle, progress=progress, group=group,
    )  # fmt: skip

    def under(ceiling: float | None) -> tuple[SyntheticPool, Outcomes]:
        filtered = filter_pool(drawn, settings, ceiling=ceiling)
        again = latents_of is not None and np.array_equal(latents_of.kept, filtered.kept)
        state = curvature_state if again or curvature_state is None else curvature_state.for_other_points()
        outcomes = select_from(model, drawn, filtered, seed=seed, curvature_state=state)
        rows = outcomes.selected
        x = generate.decode(model, encoding, drawn.z[rows], drawn.chain_seed[rows], noise=settings.decode_noise)
        pool = replace(drawn, reason=outcomes.reason, weight=outcomes.weight, rank=outcomes.rank, x=x)
        return pool, replace(outcomes, figures={**_figures(pool, outcomes.entropy_ceiling), **outcomes.figures})

    ceiling = settings.entropy_ceiling
    tried: dict[str, Any] = {}
    if isinstance(ceiling, Ceiling):
        if try_pool is None:
            raise ConfigError(
                'augmentation.entropy_ceiling="auto" needs validation rows to search on: keep some, or give a number',
                code="no-validation",
            )
        entropy = drawn.entropy
        eligible = drawn.predicted_at(settings.entropy_at) == drawn.y
        if settings.require_label and eligible.any():  # where none is, the filter says what is wrong
            entropy = entropy[eligible]
        found = search_ceiling(entropy, lambda ceiling: try_pool(under(ceiling)[0]))
        ceiling = found.ceiling
        tried = {"ceilings_tried": list(found.ceilings), "validation_at_ceiling": list(found.scores)}
    pool, outcomes = under(ceiling)
    seconds = round(time.monotonic() - started, 2)
    return pool, replace(outcomes, figures={**outcomes.figures, **tried, "seconds": seconds})


def _draw_pool(
    model: GenerativeClassifier,
    encoding: Encoding,
    settings: AugmentationSettings,
    sampling: SamplingSettings,
    seed: int,
    *,
    class_shares: np.ndarray | None,
    class_offsets: np.ndarray | None,
    latents_of: SyntheticPool | None,
    oracle: Oracle | None,
    progress: Progress | None,
    group: ProcessGroup,
) -> SyntheticPool:
    """A pool of which no sample is rejected or selected yet; the arguments are those of `augment`."""
    chains = resolve(DrawSettings.of(sampling, temperature=settings.temperature), model)
    if latents_of is None:
        per_class = np.full(model.num_classes, settings.pool_size // model.num_classes)
        if class_shares is not None:
            per_class = np.rint(settings.pool_size * class_shares).astype(np.int64)
        y = np.arange(model.num_classes).repeat(np.maximum(1, per_class))
        seeds, z = generate.chain_seeds(derive_seed(seed, "pool"), y), None
    else:
        y, seeds, z = latents_of.y, latents_of.chain_seed, latents_of.z
    parts = group.take(list(generate.blocks(len(y))))
    options: dict[str, Any] = {"noise": settings.decode_noise, "oracle": oracle, "parts": parts, "progress": progress}
    columns = draw_and_score(model, encoding, y, seeds, chains=chains, z=z, **options)
    group.sum_([column for name, column in columns.items() if name != "x"])
    origin = {
        "model_hash": model_hash(model),
        "seed": seed if latents_of is None else latents_of.origin["seed"],
        **asdict(chains),
        "decode_noise": settings.decode_noise,
        "entropy_at": str(settings.entropy_at),
    }
    logits = columns["logits_x" if settings.entropy_at is EntropyAt.X else "logits_z"]
    if class_offsets is not None:
        origin["class_offsets"] = class_offsets.tolist()
        logits = logits + class_offsets
    if latents_of is not None:
        origin["latents_of"] = latents_of.origin.get("latents_of", latents_of.origin["model_hash"])
    return SyntheticPool(
        y=y,
        chain_seed=seeds,
        **columns,
        entropy=entropy_of_logits(logits),
        reason=np.full(len(y), Reason.KEPT, dtype=np.int8),
        weight=np.zeros(len(y)),
        rank=np.full(len(y), -1),
        origin=origin,
        log_density=log_density(model, columns["z"], y, draw=chains.draw),
    )


@torch.no_grad()
def log_density(model: GenerativeClassifier, z: np.ndarray, y: np.ndarray, *, draw: Draw) -> np.ndarray:
    """log p(z given y) under the prior that `draw` targets, up to a constant of y: float64 (n,)."""
    prior = model.prior if draw is Draw.LANGEVIN else model.fitted_prior
    assert prior is not None
    found = np.empty(len(z))
    for rows in generate.blocks(len(z)):
        found[rows] = prior.conditional_log_density(model.to_tensor(z[rows]), model.to_tensor(y[rows])).cpu().numpy()
    return found


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
    """The first 16 hex digits of the SHA-256 of a model's weights, and of its fitted reference if it has one."""
    digest = hashlib.sha256()
    reference = {} if model.reference is None else model.reference.tensors()
    for name, value in (*sorted(model.state_dict().items()), *sorted(reference.items())):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def filter_pool(
    pool: SyntheticPool, settings: AugmentationSettings, *, ceiling: float | None, rejected: np.ndarray | None = None
) -> Outcomes:
    """Which samples lie under the ceiling and are predicted as the class requested, as far as the settings say so.

    None is selected yet. Rows `rejected` by hand never pass, and do not count where a fraction is kept. `ceiling` is
    the number that stands for `settings.entropy_ceiling`, which may be "auto".
    """
    rest = np.ones(len(pool), dtype=bool)
    if rejected is not None:
        rest[rejected] = False
    if not rest.any():
        raise SelectionError(
            "expected samples to select from, but all are rejected by hand: accept some again", code="all-rejected"
        )
    predicted = pool.predicted_at(settings.entropy_at)[rest]
    options = SelectionOptions.from_settings(settings, ceiling=ceiling)
    survivors = filter_rows(pool.entropy[rest], pool.y[rest], predicted, options)
    reason = np.full(len(pool), Reason.BY_HAND, dtype=np.int8)
    reason[rest] = survivors.reason
    rank = np.full(len(pool), -1, dtype=np.int64)
    return Outcomes(reason, np.zeros(len(pool)), rank, survivors.ceiling, settings, {})


def select_from(
    model: GenerativeClassifier,
    pool: SyntheticPool,
    filtered: Outcomes,
    *,
    seed: int,
    curvature_state: CurvatureState | None = None,
    method: str = "auto",
    progress: Progress | None = None,
) -> Outcomes:
    """The same outcomes with a coreset of those kept by the filter selected. `method`: see `synthsieve.select`."""
    settings, kept = filtered.settings, np.flatnonzero(filtered.kept)
    weight, rank = filtered.weight.copy(), filtered.rank.copy()
    figures: dict[str, Any] = {}
    state = None
    if settings.coreset in (Coreset.EVERYTHING, Coreset.RANDOM, Coreset.HERDING):
        stream = numpy_stream(seed, "random tenth")
        for label in np.unique(pool.y[kept]):
            of_class = rows = kept[pool.y[kept] == label]
            count = max(1, round(settings.coreset_fraction * len(rows)))
            if settings.coreset is Coreset.RANDOM:
                rows = np.sort(stream.choice(rows, count, replace=False))
            if settings.coreset is Coreset.HERDING:
                points = pool.z_reencoded[rows]
                rows = rows[herd(points, _herding_target(model, int(label), points, seed), count)]
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
    return replace(filtered, weight=weight, rank=rank, figures=figures, curvature_state=state)


def _herding_target(model: GenerativeClassifier, label: int, points: np.ndarray, seed: int) -> np.ndarray:
    """Latents (m, latent_dim) of real rows of a class: draws of the fitted reference; the points if there is none."""
    if model.reference is None:
        return points
    rng, mixture = torch_stream(seed, f"herding/{label}"), model.reference.mixture
    y = torch.full((HERDING_TARGETS,), label, device=mixture.means.device)
    uniform, noise = torch.rand(len(y), generator=rng), torch.randn(len(y), mixture.latent_dim, generator=rng)
    return mixture.place(mixture.choose_components(y, uniform.to(y.device)), noise.to(y.device)).cpu().numpy()


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
    selection = SelectionOptions.from_settings(settings, ceiling=None, n_jobs=torch.get_num_threads(), seed=seed)
    return select(
        labels=pool.y[kept],
        logits=(pool.logits_z if at_z else pool.logits_x)[kept],
        features=_last_hidden(model, pool.z_reencoded[kept]) if last_layer else None,
        options=selection.without_filter(),
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


def _figures(pool: SyntheticPool, ceiling: float) -> dict[str, Any]:
    """What a selection shows, as plain numbers."""
    num_classes = pool.logits_x.shape[1]
    return {
        "drawn": len(pool),
        "survivors": len(pool.survivors),
        "selected": len(pool.selected),
        "rejected": {reason.describe(): int((pool.reason == reason).sum()) for reason in REJECTED},
        "entropy_ceiling": ceiling if np.isfinite(ceiling) else None,
        "survivors_per_class": np.bincount(pool.y[pool.survivors], minlength=num_classes).tolist(),
        "selected_per_class": np.bincount(pool.y[pool.selected], minlength=num_classes).tolist(),
        "entropy_quantiles": dict(zip(map(str, QUANTILES), np.quantile(pool.entropy, QUANTILES).tolist(), strict=True)),
        "requested_class_at_z": float((pool.predicted_at(EntropyAt.Z) == pool.y).mean()),
        "requested_class_at_x": float((pool.predicted == pool.y).mean()),
        "largest_weight": float(pool.weight.max()),
    }
