"""Step 7 of Algorithm 1 in one place: draw -> decode -> filter -> select.

Samples are drawn and judged a block at a time; latents, answers and seeds of all are kept, and x of the selected alone,
decoded once more. 200,000 street-view digits need a few hundred megabytes this way.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from synthsieve import drawing
from synthsieve.config import AugmentationSettings, Ceiling, Coreset, EntropyAt, GradientSource, SamplingSettings
from synthsieve.data.encoding import Encoding
from synthsieve.entropy import Reason, Survivors, entropy_of_logits, filter_by_entropy, search_ceiling
from synthsieve.errors import ConfigError
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.networks.mlp import MLP
from synthsieve.pool import SyntheticPool
from synthsieve.progress import Progress, Silent
from synthsieve.randomness import derive_seed, numpy_stream
from synthsieve.sampling.langevin import LangevinSettings
from synthsieve.sieve import Selection, select
from synthsieve.together import ALONE, Together

if TYPE_CHECKING:
    from synthsieve.selection.curvature import CurvatureState

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Augmented:
    """A pool, and what choosing it showed.

    Attributes:
        pool: every sample, with its fate.
        figures: yield per class, entropy quantiles, gradient error and bound, largest weight; plain numbers for JSON.
        curvature_state: AdaCore's averages, for the next choice.
    """

    pool: SyntheticPool
    figures: dict[str, Any]
    curvature_state: CurvatureState | None = None


@dataclass(frozen=True)
class Judged:
    """Drawn samples and the classifier's answers to them, before anything is thrown away.

    Attributes:
        y: int64 (n,), the class asked for; chain_seed: int64 (n,); z: float32 (n, latent_dim).
        logits_z: float32 (n, num_classes), F at the drawn z.
        logits_x: float32 (n, num_classes), F at the mean of q(z given x), x decoded from z.
        features: float32 (n, width), what F's last layer saw at that mean; None unless asked for.
    """

    y: np.ndarray
    chain_seed: np.ndarray
    z: np.ndarray
    logits_z: np.ndarray
    logits_x: np.ndarray
    features: np.ndarray | None


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
    progress: Progress | None = None,
    together: Together = ALONE,
) -> Augmented:
    """Draw a pool, filter it by entropy and select from it (Algorithm 1, step 7).

    Args:
        model: draws, decodes and judges; the averaged weights, in training.
        encoding: how x is stored.
        settings: how many, how sure, how chosen.
        sampling: the chains' number of steps and step size.
        seed: of the chains and of random choices.
        class_shares: (num_classes,), summing to 1, how many of the pool ask for each class; None: equally many.
        latents_of: an earlier pool whose z are judged anew instead of drawing.
        curvature_state: AdaCore's averages of the last choice; that of the gradients is taken up only where the same
            latents survive again.
        try_pool: pool -> accuracy on validation; needed by `entropy_ceiling = "auto"`.
        progress: told how far drawing has come.
        together: the processes that draw: each some blocks, all have all of them then.
    """
    started = time.monotonic()
    chains = LangevinSettings(sampling.num_steps, sampling.step_size, settings.temperature)
    drawn = _draw(model, encoding, settings, chains, seed, class_shares, latents_of, progress or Silent(), together)
    answers = drawn.logits_x if settings.entropy_at is EntropyAt.X else drawn.logits_z
    entropy = entropy_of_logits(answers)
    origin = {
        "model_hash": model_hash(model),
        "seed": seed if latents_of is None else latents_of.origin["seed"],
        "num_steps": chains.num_steps,
        "step_size": chains.step_size,
        "temperature": chains.temperature,
        "decode_noise": settings.decode_noise,
        "entropy_at": str(settings.entropy_at),
    }
    if latents_of is not None:
        origin["latents_of"] = latents_of.origin.get("latents_of", latents_of.origin["model_hash"])

    def under(ceiling: float | None) -> Augmented:
        survivors = filter_pool(entropy, drawn.y, answers.argmax(axis=1), settings, ceiling)
        again = latents_of is not None and np.array_equal(latents_of.reason == Reason.KEPT, survivors.kept)
        state = curvature_state if again or curvature_state is None else curvature_state.for_other_points()
        chosen = choose_from(drawn, survivors, settings, seed=seed, curvature_state=state)
        rows = np.flatnonzero(chosen.weight > 0)
        pool = SyntheticPool(
            y=drawn.y,
            z=drawn.z,
            chain_seed=drawn.chain_seed,
            entropy=entropy,
            reason=survivors.reason,
            weight=chosen.weight,
            rank=chosen.rank,
            x=drawing.decode(model, encoding, drawn.z[rows], drawn.chain_seed[rows], noise=settings.decode_noise),
            origin=origin,
        )
        figures = {**_figures(pool, drawn, survivors), **chosen.figures}
        return Augmented(pool, figures, chosen.curvature_state)

    ceiling = settings.entropy_ceiling
    tried: dict[str, Any] = {}
    if isinstance(ceiling, Ceiling):
        ceiling, tried = _search(under, entropy, answers, drawn.y, settings, try_pool)
    done = under(ceiling)
    return replace(done, figures={**done.figures, **tried, "seconds": round(time.monotonic() - started, 2)})


def draw_again(model: GenerativeClassifier, encoding: Encoding, pool: SyntheticPool, row: int) -> np.ndarray:
    """x of one row of the pool from its seed, its class and the model alone: (*shape), the same bytes as the pool's."""
    origin = pool.origin
    if "latents_of" in origin:
        raise ConfigError("this pool's latents came from an earlier model: draw from that model's own pool")
    if model_hash(model) != origin["model_hash"]:
        raise ConfigError("this pool was drawn from other weights: load the model whose hash it carries")
    chains = LangevinSettings(origin["num_steps"], origin["step_size"], origin["temperature"])
    alone = slice(row, row + 1)
    z = drawing.draw_latents(model, pool.y[alone], pool.chain_seed[alone], chains=chains)
    again: np.ndarray = drawing.decode(model, encoding, z, pool.chain_seed[alone], noise=origin["decode_noise"])[0]
    return again


def model_hash(model: GenerativeClassifier) -> str:
    """The first 16 hex digits of the SHA-256 of a model's weights."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


@torch.no_grad()
def _draw(
    model: GenerativeClassifier,
    encoding: Encoding,
    settings: AugmentationSettings,
    chains: LangevinSettings,
    seed: int,
    class_shares: np.ndarray | None,
    latents_of: SyntheticPool | None,
    progress: Progress,
    together: Together,
) -> Judged:
    """All samples and the answers to them, block by block."""
    model.eval()
    if latents_of is None:
        per_class = np.full(model.num_classes, settings.pool_size // model.num_classes)
        if class_shares is not None:
            per_class = np.rint(settings.pool_size * class_shares).astype(np.int64)
        y = np.arange(model.num_classes).repeat(np.maximum(1, per_class))
        seeds = drawing.chain_seeds(derive_seed(seed, "pool"), y)
    else:
        y, seeds = latents_of.y, latents_of.chain_seed
    keep_features = settings.gradients is GradientSource.LAST_LAYER and settings.coreset is not Coreset.EVERYTHING
    # Whole columns at once: small arrays kept between large passing ones would tear the heap to pieces.
    z = np.zeros((len(y), model.energy.latent_dim), dtype=np.float32)
    logits_z, logits_x = (np.zeros((len(y), model.num_classes), dtype=np.float32) for _ in range(2))
    width = last_hidden(model, model.taken(z[:1])).shape[1] if keep_features else 0
    features = np.zeros((len(y), width), dtype=np.float32) if keep_features else None
    for rows in together.share.of(list(drawing.blocks(len(y)))):
        if latents_of is None:
            z[rows] = drawing.draw_latents(model, y[rows], seeds[rows], chains=chains)
        else:
            z[rows] = latents_of.z[rows]
        x = drawing.decode(model, encoding, z[rows], seeds[rows], noise=settings.decode_noise)
        z_reencoded = model.posterior(model.taken(encoding.encode(x))).mean
        logits_z[rows] = model.energy.class_logits(model.taken(z[rows])).cpu().numpy()
        logits_x[rows] = model.energy.class_logits(z_reencoded).cpu().numpy()
        if features is not None:
            features[rows] = last_hidden(model, z_reencoded).cpu().numpy()
        progress.update(rows.stop, len(y), "drawing")
    together.sum_([array for array in (z, logits_z, logits_x, features) if array is not None])
    return Judged(y, seeds, z, logits_z, logits_x, features)


def last_hidden(model: GenerativeClassifier, z: torch.Tensor) -> torch.Tensor:
    """What F's last layer sees at z (n, latent_dim): (n, width)."""
    network = model.energy.network
    if not isinstance(network, MLP):
        raise ConfigError(
            'augmentation.gradients="last-layer" needs an energy of fully connected layers: use "reencoded"'
        )
    return network.last_hidden(z[:, : model.energy.visible])


def filter_pool(
    entropy: np.ndarray,
    y: np.ndarray,
    predicted: np.ndarray,
    settings: AugmentationSettings,
    ceiling: float | None,
) -> Survivors:
    """Who lies under the ceiling and has the class asked for; everybody, where the settings ask for neither."""
    return filter_by_entropy(
        entropy,
        y,
        ceiling=ceiling,
        keep_fraction=settings.keep_fraction if ceiling is None else None,
        per_class=ceiling is None and settings.keep_fraction is not None,
        predicted=predicted if settings.require_asked_class else None,
    )


@dataclass(frozen=True)
class Chosen:
    """A coreset over a whole pool: `weight` float64 (n,), 0 for those not chosen; `rank` int64 (n,), -1 for those.

    `figures` are the gradient's error and bound, where there are any.
    """

    weight: np.ndarray
    rank: np.ndarray
    figures: dict[str, Any]
    curvature_state: CurvatureState | None = None


def choose_from(
    drawn: Judged,
    survivors: Survivors,
    settings: AugmentationSettings,
    *,
    seed: int,
    curvature_state: CurvatureState | None = None,
    method: str = "auto",
    progress: Progress | None = None,
) -> Chosen:
    """The coreset of the survivors: weights and ranks over the whole pool."""
    kept = np.flatnonzero(survivors.kept)
    weight, rank = np.zeros(len(drawn.y)), np.full(len(drawn.y), -1, dtype=np.int64)
    if settings.coreset in (Coreset.EVERYTHING, Coreset.RANDOM):
        stream = numpy_stream(seed, "random tenth")
        for label in np.unique(drawn.y[kept]):
            rows = kept[drawn.y[kept] == label]
            if settings.coreset is Coreset.RANDOM:
                count = max(1, round(settings.coreset_fraction * len(rows)))
                rows = np.sort(stream.choice(rows, count, replace=False))
            weight[rows] = (drawn.y[kept] == label).sum() / len(rows)
            rank[rows] = np.arange(len(rows))
        return Chosen(weight, rank, {})
    chosen = select_among(
        drawn, kept, settings, seed=seed, curvature_state=curvature_state, method=method, progress=progress
    )
    rows = kept[chosen.indices]
    weight[rows] = chosen.weights
    rank[rows] = np.concatenate([np.arange(figures.selected) for figures in chosen.figures])
    figures = {"gradient_bound": chosen.gradient_bound, "gradient_error": chosen.gradient_error}
    return Chosen(weight, rank, figures, chosen.curvature_state)


def select_among(
    drawn: Judged,
    kept: np.ndarray,
    settings: AugmentationSettings,
    *,
    seed: int,
    curvature_state: CurvatureState | None = None,
    method: str = "auto",
    progress: Progress | None = None,
) -> Selection:
    """CRAIG's or AdaCore's choice among the rows `kept` (k,); its rows are places in `kept`."""
    at_z = settings.gradients is GradientSource.DRAWN
    return select(
        labels=drawn.y[kept],
        logits=(drawn.logits_z if at_z else drawn.logits_x)[kept],
        features=None if drawn.features is None else drawn.features[kept],
        budget=settings.coreset_fraction,
        curvature="hutchinson" if settings.coreset is Coreset.ADACORE else "none",
        curvature_state=curvature_state,
        method=method,
        n_jobs=torch.get_num_threads(),
        seed=seed,
        progress=progress,
    )


def _search(
    under: Callable[[float | None], Augmented],
    entropy: np.ndarray,
    answers: np.ndarray,
    y: np.ndarray,
    settings: AugmentationSettings,
    try_pool: Callable[[SyntheticPool], float] | None,
) -> tuple[float, dict[str, Any]]:
    """The ceiling whose pool does best on validation, and all that were tried."""
    if try_pool is None:
        raise ConfigError(
            'augmentation.entropy_ceiling="auto" needs validation rows to search on: keep some, or give a number'
        )
    eligible = answers.argmax(axis=1) == y if settings.require_asked_class else np.ones(len(y), dtype=bool)
    if not eligible.any():
        eligible[:] = True  # the filter then says what is wrong
    found = search_ceiling(entropy[eligible], lambda ceiling: try_pool(under(ceiling).pool))
    return found.ceiling, {"ceilings_tried": list(found.ceilings), "validation_at_ceiling": list(found.scores)}


def _figures(pool: SyntheticPool, drawn: Judged, survivors: Survivors) -> dict[str, Any]:
    """What a choice shows, as plain numbers."""
    classes = range(drawn.logits_x.shape[1])
    kept, selected = pool.survivors, pool.selected
    return {
        "drawn": len(pool),
        "survivors": len(kept),
        "selected": len(selected),
        "rejected": {
            Reason(code).in_words(): int((pool.reason == code).sum()) for code in Reason if code is not Reason.KEPT
        },
        "entropy_ceiling": survivors.ceiling if np.isfinite(survivors.ceiling) else None,
        "survivors_per_class": [int((pool.y[kept] == label).sum()) for label in classes],
        "selected_per_class": [int((pool.y[selected] == label).sum()) for label in classes],
        "entropy_quantiles": dict(zip(map(str, QUANTILES), np.quantile(pool.entropy, QUANTILES).tolist(), strict=True)),
        "asked_class_at_z": float((drawn.logits_z.argmax(axis=1) == drawn.y).mean()),
        "asked_class_at_x": float((drawn.logits_x.argmax(axis=1) == drawn.y).mean()),
        "largest_weight": float(pool.weight.max()),
    }
