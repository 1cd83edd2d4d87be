"""What the steps after `augment_from_step` learn from beside the labelled pairs, and how it is chosen and kept on disk.

OUT/pool-STEP.npz        the synthetic pool chosen at that step
OUT/drawn-by-HASH.safetensors   the weights that drew it: any of its samples comes again from them
OUT/additions-STEP.npz   pseudo-labels and AdaCore's averages
OUT/selections.jsonl     figures of every choice
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.archive import read_arrays
from synthsieve.augmentation import augment, model_hash
from synthsieve.config import Settings
from synthsieve.data.dataset import Dataset
from synthsieve.errors import CheckpointError
from synthsieve.files import json_of, write_text, written_atomically
from synthsieve.learning import checkpoint
from synthsieve.learning.learner import Learner, restore_optimiser
from synthsieve.learning.pseudo_labels import PseudoLabels, choose_pseudo_labels
from synthsieve.learning.run_folder import RunFolder
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.pool import SyntheticPool
from synthsieve.progress import Progress, Silent
from synthsieve.randomness import derive_seed
from synthsieve.selection.curvature import CurvatureState

Judge = Callable[[np.ndarray], np.ndarray]  # x as stored -> labels, by a classifier that training never sees
Trial = Callable[["Additions"], float]  # additions -> accuracy on validation after a few steps with them


@dataclass(frozen=True)
class Additions:
    """Synthetic samples and pseudo-labels, as chosen at one step.

    Attributes:
        step: when they were chosen.
        pool: the synthetic pool; None without one.
        pseudo: the pseudo-labels; None without them.
        curvature: AdaCore's averages; None without AdaCore.
        figures: what the choice showed, plain numbers for JSON.
    """

    step: int
    pool: SyntheticPool | None
    pseudo: PseudoLabels | None
    curvature: CurvatureState | None
    figures: dict[str, Any]


def is_due(step: int, settings: Settings) -> bool:
    """Whether additions are to be chosen before the step after `step`."""
    return pool_is_due(step, settings) or pseudo_is_due(step, settings)


def pool_is_due(step: int, settings: Settings) -> bool:
    """Whether that choice is of a pool."""
    since = step - settings.augment_from_step
    return settings.augmentation.enabled and since >= 0 and since % settings.augmentation.reselect_every == 0


def pseudo_is_due(step: int, settings: Settings) -> bool:
    """Whether it is of pseudo-labels."""
    since = step - settings.augment_from_step
    return settings.pseudo_labels.enabled and since >= 0 and since % settings.pseudo_labels.reselect_every == 0


def choose_additions(
    learner: Learner,
    run: RunFolder,
    dataset: Dataset,
    previous: Additions | None,
    *,
    trial: Trial | None = None,
    judge: Judge | None = None,
    progress: Progress | None = None,
) -> Additions:
    """Step 7 of Algorithm 1, with the averaged weights: a pool, pseudo-labels, or both; what is not due stays.

    `judge` and the labels that learning may not see are used for the figures alone.
    """
    settings, step = run.settings, learner.step
    figures: dict[str, Any] = {} if previous is None else dict(previous.figures)
    figures["step"] = step
    pseudo = None if previous is None else previous.pseudo
    if pseudo_is_due(step, settings) and len(run.split.unlabeled):
        pseudo = choose_pseudo_labels(
            learner.averaged, run.encoding, dataset.train.x, run.split.unlabeled, settings=settings.pseudo_labels
        )
        figures |= pseudo.figures(dataset.train.y, len(run.split.classes))
    before = None if previous is None else previous.pool
    chosen = Additions(step, before, pseudo, None if previous is None else previous.curvature, figures)
    if not pool_is_due(step, settings):
        return chosen
    done = augment(
        learner.averaged,
        run.encoding,
        settings=settings.augmentation,
        sampling=settings.sampling,
        seed=derive_seed(settings.seed, f"augmentation/{step}"),
        class_shares=None if settings.data.balanced else _label_shares(run, dataset),
        latents_of=None if settings.augmentation.fresh_pool else before,
        curvature_state=None if previous is None else previous.curvature,
        try_pool=None if trial is None else lambda pool: trial(replace(chosen, pool=pool)),
        progress=progress or Silent(),
        together=learner.together,
    )
    figures |= done.figures
    if judge is not None:
        figures["purity"] = float((judge(done.pool.x) == done.pool.y[done.pool.selected]).mean())
    return Additions(step, done.pool, pseudo, done.curvature_state, figures)


def _label_shares(run: RunFolder, dataset: Dataset) -> np.ndarray:
    """Each class's share of the labelled rows: (num_classes,)."""
    counts = np.bincount(dataset.train.y[run.split.labeled], minlength=len(run.split.classes))
    return counts / counts.sum()


def write(additions: Additions, folder: Path, learner: Learner) -> None:
    """Store them, the weights of the learner that drew the pool, and the figures as a line of `selections.jsonl`."""
    if additions.pool is not None:
        drawn_by = _weights_path(folder, additions.pool)
        if model_hash(learner.averaged) == additions.pool.origin["model_hash"]:  # else an earlier choice stored them
            checkpoint.save_weights(drawn_by, learner, {})
        additions.pool.write(_pool_path(folder, additions.step))
    arrays: dict[str, np.ndarray] = {}
    if additions.pseudo is not None:
        arrays |= {f"pseudo/{name}": np.asarray(value) for name, value in vars(additions.pseudo).items()}
    if additions.curvature is not None:
        arrays |= {
            f"curvature/{name}": np.asarray(value)
            for name, value in vars(additions.curvature).items()
            if value is not None
        }
    with written_atomically(_path(folder, additions.step)) as partial, partial.open("wb") as file:
        np.savez(file, has_pool=np.asarray(additions.pool is not None), **arrays)  # type: ignore[arg-type]
    earlier = [figures for figures in read_figures(folder) if figures["step"] < additions.step]
    lines = [json.dumps(figures, allow_nan=False) for figures in (*earlier, additions.figures)]
    write_text(folder / "selections.jsonl", "".join(f"{line}\n" for line in lines))


def read(folder: Path, step: int) -> Additions:
    """The additions chosen at `step`."""
    path = _path(folder, step)
    try:
        stored = read_arrays(path)
        has_pool = bool(stored["has_pool"])
        parts: dict[str, dict[str, Any]] = {"pseudo": {}, "curvature": {}}
        for name, value in stored.items():
            part, _, field = name.partition("/")
            if field:
                _check(name, value)
                parts[part][field] = value.item() if value.ndim == 0 else value
        pseudo = PseudoLabels(**parts["pseudo"]) if parts["pseudo"] else None
        curvature = CurvatureState(**parts["curvature"]) if parts["curvature"] else None
        figures = next(figures for figures in read_figures(folder) if figures["step"] == step)
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise CheckpointError(f"{path} cannot be used ({error!r}): fit again in another folder") from None
    pool = SyntheticPool.read(_pool_path(folder, step)) if has_pool else None
    return Additions(step, pool, pseudo, curvature, figures)


# Of each array the kinds of number and the dimensions.
SHAPES = {
    "pseudo/rows": ("i", 1),
    "pseudo/y": ("i", 1),
    "pseudo/entropy": ("f", 1),
    "pseudo/ceiling": ("f", 0),
    "curvature/gradients": ("f", 2),
    "curvature/squared_diagonal": ("f", 2),
    "curvature/gradient_updates": ("i", 0),
    "curvature/diagonal_updates": ("i", 0),
}


def _check(name: str, value: np.ndarray) -> None:
    kind, sides = SHAPES[name]
    if value.dtype.kind != kind or value.ndim != sides:
        raise ValueError(f"{name} came as {value.dtype} {value.shape}")


def latest(folder: Path) -> Additions:
    """The last additions that a run chose."""
    figures = read_figures(folder)
    if not figures:
        raise CheckpointError(f"{folder} has chosen no synthetic samples or pseudo-labels: it has no pool to show")
    return read(folder, figures[-1]["step"])


def read_figures(folder: Path) -> list[dict[str, Any]]:
    """The figures of each choice so far, in order; none where nothing was chosen."""
    path = folder / "selections.jsonl"
    if not path.is_file():
        return []
    try:
        rows = [dict(json_of(line)) for line in path.read_text(encoding="utf-8").splitlines()]
        if any(type(row.get("step")) is not int or not 0 <= row["step"] < 1 << 62 for row in rows):
            raise ValueError("a row without its step")
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path} is damaged ({error}): fit again in another folder") from None
    return rows


def model_that_drew(run: RunFolder, pool: SyntheticPool) -> GenerativeClassifier:
    """The weights that decoded and judged a pool of the run."""
    path = _weights_path(run.path, pool)
    if not path.is_file():
        raise CheckpointError(
            f"{path} is missing, without which no sample of the pool can be shown: an older version of synthsieve "
            "kept no such weights, so give the same command with another folder"
        )
    run.check_size(path)
    learner = run.new_learner()
    checkpoint.load_weights(path, learner)
    if model_hash(learner.averaged) != pool.origin["model_hash"]:
        raise CheckpointError(f"{path} holds other weights than those that drew the pool: fit again in another folder")
    return learner.averaged


def remove_older(folder: Path, *additions: Additions | None) -> None:
    """Remove what was chosen before the last of these, but for these: the checkpoints of a run refer to them."""
    kept = [one for one in additions if one is not None]
    steps = {one.step for one in kept}
    weights = {_weights_path(folder, one.pool) for one in kept if one.pool is not None}
    for path in set(folder.glob("drawn-by-*.safetensors")) - weights:
        path.unlink(missing_ok=True)
    for path in (*folder.glob("pool-*.npz"), *folder.glob("additions-*.npz")):
        chosen_at = path.name.partition(".")[0].rpartition("-")[2]  # of pool-STEP.scores.npz, too
        if chosen_at.isdecimal() and int(chosen_at) not in steps and int(chosen_at) < max(steps, default=0):
            path.unlink(missing_ok=True)


def branched_off(learner: Learner) -> Learner:
    """A copy to try something on: same weights and optimisers, streams of its own, the original untouched."""
    fresh = Learner.create(
        learner.settings,
        learner.model.layout,
        learner.model.num_classes,
        data=learner.data,
        device=learner.model.device,
    )
    fresh.model.load_state_dict(learner.model.state_dict())
    fresh.averaged.load_state_dict(learner.averaged.state_dict())
    for name, optimiser in learner.optimisers.items():
        restore_optimiser(fresh.optimisers[name], copy.deepcopy(optimiser.state_dict()))
    fresh.step = learner.step
    return fresh


def _path(folder: Path, step: int) -> Path:
    return folder / f"additions-{step:07d}.npz"


def _weights_path(folder: Path, pool: SyntheticPool) -> Path:
    return folder / f"drawn-by-{pool.origin['model_hash']}.safetensors"


def _pool_path(folder: Path, step: int) -> Path:
    return folder / f"pool-{step:07d}.npz"
