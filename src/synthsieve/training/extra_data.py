"""The extra data of augmented training, synthetic samples and pseudo-labels: how it is chosen and kept on disk.

OUT/pool-STEP.npz        the synthetic pool chosen at that step
OUT/drawn-by-HASH.safetensors   the weights that drew it: any of its samples can be drawn again with them
OUT/extra-data-STEP.npz  pseudo-labels and AdaCore's averages
OUT/selections.jsonl     figures of every choice
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.errors import CheckpointError
from synthsieve.evaluation.predict import Oracle, latents_and_logits
from synthsieve.evaluation.prior_match import prior_match
from synthsieve.io.files import atomic_write, parse_json, write_text
from synthsieve.io.npz import read_arrays
from synthsieve.io.progress import NullProgress, Progress
from synthsieve.io.random_streams import derive_seed, numpy_stream
from synthsieve.io.tensors import named_tensors
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.selection.curvature import CurvatureState
from synthsieve.selection.entropy import entropy_of_logits, filter_by_entropy
from synthsieve.settings import AugmentationSettings, DrawFrom, PseudoLabelSettings, Settings
from synthsieve.training import checkpoint
from synthsieve.training.augment import augment, model_hash
from synthsieve.training.data import TrainingData
from synthsieve.training.fit_reference import fit_to, wants_reference
from synthsieve.training.pool import SyntheticPool
from synthsieve.training.run_dir import RunDirectory
from synthsieve.training.state import TrainState

Trial = Callable[["ExtraData"], float]  # extra data -> accuracy on validation after a few steps with them


@dataclass(frozen=True)
class PseudoLabels:
    """Unlabelled `rows` of the training examples, ascending, with their predicted class y, both int64 (k,).

    `entropy` of the predictions, float64 (k,), in nats, lies below `ceiling`.
    """

    rows: np.ndarray
    y: np.ndarray
    entropy: np.ndarray
    ceiling: float


@dataclass(frozen=True)
class ExtraData:
    """Synthetic samples and pseudo-labels as chosen at one step, AdaCore's averages, and figures for JSON."""

    step: int
    pool: SyntheticPool | None = None
    pseudo: PseudoLabels | None = None
    curvature: CurvatureState | None = None
    figures: dict[str, Any] = field(default_factory=dict)


def is_due(step: int, settings: Settings) -> bool:
    """Whether extra data are to be chosen before the step after `step`."""
    return _is_due(step, settings, settings.augmentation) or _is_due(step, settings, settings.pseudo_labels)


def _is_due(step: int, settings: Settings, part: AugmentationSettings | PseudoLabelSettings) -> bool:
    since = step - settings.augment_from_step
    if part is settings.augmentation and settings.augmentation.draw_from is not DrawFrom.PRIOR:
        return False  # each step draws its own
    return part.enabled and since >= 0 and since % part.reselect_every == 0


def choose_extra_data(
    state: TrainState,
    data: TrainingData,
    previous: ExtraData | None,
    *,
    trial: Trial | None = None,
    oracle: Oracle | None = None,
    progress: Progress | None = None,
) -> ExtraData:
    """Step 7 of Algorithm 1, with the averaged weights: a pool, pseudo-labels, or both; what is not due stays.

    `oracle` and the labels hidden from training are used for the figures alone.
    """
    settings, step, split = state.settings, state.step, data.split
    previous = previous or ExtraData(step)
    figures = {**previous.figures, "step": step}
    pseudo = previous.pseudo
    offsets = data.offsets(state.averaged, settings)
    if offsets is not None:
        figures["class_shares"] = offsets.shares.tolist()
    if _is_due(step, settings, settings.pseudo_labels) and len(split.unlabeled):
        pseudo = choose_pseudo_labels(
            state.averaged, data, settings.pseudo_labels, None if offsets is None else offsets.to_labels
        )
        figures |= _pseudo_label_figures(pseudo, data)
    chosen = replace(previous, step=step, pseudo=pseudo, figures=figures)
    if not _is_due(step, settings, settings.augmentation):
        return chosen
    state.averaged.reference, encoded = None, None
    if wants_reference(settings):
        encoded = fit_to(state.averaged, data, settings, seed=derive_seed(settings.seed, f"reference/{step}"))
    label_counts = np.bincount(data.dataset.train.y[split.labeled], minlength=len(split.classes))
    pool, outcomes = augment(
        state.averaged,
        data.encoding,
        settings=settings.augmentation,
        sampling=settings.sampling,
        seed=derive_seed(settings.seed, f"augmentation/{step}"),
        class_shares=None if settings.data.balanced else label_counts / label_counts.sum(),
        # Samples are requested by class: whether one is of its class does not depend on how frequent classes are.
        class_offsets=None if offsets is None else offsets.to_uniform,
        latents_of=None if settings.augmentation.fresh_pool else previous.pool,
        curvature_state=previous.curvature,
        try_pool=None if trial is None else lambda pool: trial(replace(chosen, pool=pool)),
        oracle=oracle,
        progress=progress or NullProgress(),
        group=state.group,
    )
    figures |= outcomes.figures
    if encoded is not None:
        real = encoded.draw(1, rng=numpy_stream(settings.seed, f"prior match/{step}"))[0]
        labels = encoded.probabilities.argmax(axis=1)
        match = prior_match(pool.z, pool.y, real, labels, num_classes=len(split.classes), seed=settings.seed)
        figures["prior_match"] = match.as_dict()
    if oracle is not None:
        figures["purity"] = pool.purity(pool.selected)
    return ExtraData(step, pool, pseudo, outcomes.curvature_state, figures)


def choose_pseudo_labels(
    model: GenerativeClassifier, data: TrainingData, settings: PseudoLabelSettings, offsets: np.ndarray | None = None
) -> PseudoLabels:
    """The unlabelled x that are predicted with entropy below the ceiling, or the lowest of each class.

    `offsets` (num_classes,) of the logits move the mean prediction to the class shares of the labels.
    """
    rows = data.split.unlabeled
    _, logits = latents_and_logits(model, data.encoding, data.dataset.train.x[rows])
    logits = logits if offsets is None else logits + offsets
    y, entropy = logits.argmax(axis=1), entropy_of_logits(logits)
    if settings.entropy_ceiling is None:
        survivors = filter_by_entropy(entropy, y, keep_fraction=settings.keep_fraction, keep_per_class=True)
        kept, ceiling = survivors.kept, survivors.ceiling
    else:
        kept, ceiling = entropy < settings.entropy_ceiling, settings.entropy_ceiling  # may keep none, early on
    return PseudoLabels(rows[kept], y[kept], entropy[kept], ceiling)


def _pseudo_label_figures(pseudo: PseudoLabels, data: TrainingData) -> dict[str, Any]:
    """How many there are, and the share that is correct where the true labels are known: for evaluation."""
    truth = data.dataset.train.y[pseudo.rows]
    correct = truth[truth >= 0] == pseudo.y[truth >= 0]
    return {
        "pseudo_labels": len(pseudo.rows),
        "pseudo_labels_per_class": np.bincount(pseudo.y, minlength=len(data.split.classes)).tolist(),
        "pseudo_label_ceiling": float(pseudo.ceiling),
        "pseudo_label_purity": float(correct.mean()) if len(correct) else None,
    }


def write(extra_data: ExtraData, folder: Path, state: TrainState) -> None:
    """Store them, the weights that drew the pool, and the figures as a line of `selections.jsonl`."""
    pool = extra_data.pool
    if pool is not None:
        if model_hash(state.averaged) == pool.origin["model_hash"]:  # else an earlier choice stored them
            reference = state.averaged.reference
            more = {} if reference is None else named_tensors("reference", reference.tensors())
            checkpoint.save_weights(_weights_path(folder, pool), state, {}, more)
        pool.write(_path(folder, "pool", extra_data.step))
    parts = {"pseudo": extra_data.pseudo, "curvature": extra_data.curvature}
    arrays = {
        f"{part}/{name}": np.asarray(value)
        for part, fields in parts.items()
        if fields is not None
        for name, value in vars(fields).items()
        if value is not None
    }
    with atomic_write(_path(folder, "extra-data", extra_data.step)) as partial, partial.open("wb") as file:
        np.savez(file, has_pool=np.asarray(pool is not None), **arrays)  # type: ignore[arg-type]
    earlier = [figures for figures in read_figures(folder) if figures["step"] < extra_data.step]
    lines = [json.dumps(figures, allow_nan=False) for figures in (*earlier, extra_data.figures)]
    write_text(folder / "selections.jsonl", "".join(f"{line}\n" for line in lines))


def read(folder: Path, step: int) -> ExtraData:
    """The extra data chosen at `step`."""
    path = _path(folder, "extra-data", step)
    try:
        stored = read_arrays(path)
        has_pool = bool(stored.pop("has_pool"))
        parts: dict[str, dict[str, Any]] = {"pseudo": {}, "curvature": {}}
        for name, value in stored.items():
            if (value.dtype.kind, value.ndim) != SHAPES[name]:
                raise ValueError(f"{name} is {value.dtype} {value.shape}")
            part, _, field = name.partition("/")
            parts[part][field] = value.item() if value.ndim == 0 else value
        pseudo = PseudoLabels(**parts["pseudo"]) if parts["pseudo"] else None
        curvature = CurvatureState(**parts["curvature"]) if parts["curvature"] else None
        figures = next(figures for figures in read_figures(folder) if figures["step"] == step)
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise CheckpointError(
            f"{path} cannot be used ({error!r}): fit again in another folder", code="damaged-file"
        ) from None
    pool = SyntheticPool.read(_path(folder, "pool", step)) if has_pool else None
    return ExtraData(step, pool, pseudo, curvature, figures)


# The kind of number and the dimensions of each array.
SHAPES = {
    **dict.fromkeys(("pseudo/rows", "pseudo/y"), ("i", 1)),
    **{"pseudo/entropy": ("f", 1), "pseudo/ceiling": ("f", 0)},
    **dict.fromkeys(("curvature/gradients", "curvature/squared_diagonal"), ("f", 2)),
    **dict.fromkeys(("curvature/gradient_updates", "curvature/diagonal_updates"), ("i", 0)),
}


def latest(folder: Path) -> ExtraData:
    """The last extra data that a run chose."""
    figures = read_figures(folder)
    if not figures:
        raise CheckpointError(
            f"{folder} has no synthetic samples and no pseudo-labels: give a run that was trained with them",
            code="no-extra-data",
        )
    return read(folder, figures[-1]["step"])


def read_figures(folder: Path) -> list[dict[str, Any]]:
    """The figures of each choice so far, in order; none where nothing was chosen."""
    path = folder / "selections.jsonl"
    if not path.is_file():
        return []
    try:
        rows = [dict(parse_json(line)) for line in path.read_text(encoding="utf-8").splitlines()]
        if any(type(row.get("step")) is not int or not 0 <= row["step"] < 1 << 62 for row in rows):
            raise ValueError("a row without its step")
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{path} is damaged ({error}): fit again in another folder", code="damaged-file"
        ) from None
    return rows


def model_that_drew(run: RunDirectory, pool: SyntheticPool) -> GenerativeClassifier:
    """The model that drew and scored a pool of the run."""
    path = _weights_path(run.path, pool)
    model = run.load_model(path)
    if model_hash(model) != pool.origin["model_hash"]:
        raise CheckpointError(
            f"{path} holds other weights than those that drew the pool: fit again in another folder", code="other-run"
        )
    return model


def remove_older(folder: Path, *extra_data: ExtraData | None) -> None:
    """Remove what was chosen before the last of these, except these: the checkpoints of a run refer to them."""
    kept = [each for each in extra_data if each is not None]
    steps = {each.step for each in kept}
    weights = {_weights_path(folder, each.pool) for each in kept if each.pool is not None}
    old = set(folder.glob("drawn-by-*.safetensors")) - weights
    for path in (*folder.glob("pool-*.npz"), *folder.glob("extra-data-*.npz")):
        chosen_at = path.stem.rpartition("-")[2]
        if chosen_at.isdecimal() and int(chosen_at) not in steps and int(chosen_at) < max(steps, default=0):
            old.add(path)
    for path in old:
        path.unlink(missing_ok=True)


def _path(folder: Path, name: str, step: int) -> Path:
    return folder / f"{name}-{step:07d}.npz"


def _weights_path(folder: Path, pool: SyntheticPool) -> Path:
    return folder / f"drawn-by-{pool.origin['model_hash']}.safetensors"
