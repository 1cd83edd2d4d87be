"""The fitted reference of a finished run: OUT/reference.safetensors, with its prior match in the header."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from synthsieve.data.dataset import Dataset
from synthsieve.errors import SynthsieveError
from synthsieve.evaluation.prior_match import MAX_ROWS, PriorMatch, prior_match
from synthsieve.io.random_streams import derive_seed, numpy_stream
from synthsieve.io.tensors import invalid_as_damaged, named_tensors, read_tensors, tensors_under, write_tensors
from synthsieve.models.chains import DrawSettings
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.generate import chain_seeds, draw_latents
from synthsieve.models.reference import FittedReference
from synthsieve.settings import Draw, Objective, Settings
from synthsieve.training.augment import model_hash
from synthsieve.training.fit_reference import Encoded, fit_to
from synthsieve.training.run_dir import RunDirectory

FORMAT = "synthsieve reference 1"


def match_of(model: GenerativeClassifier, encoded: Encoded, settings: Settings, *, seed: int) -> PriorMatch:
    """The prior match of new draws, as many of each class as there are encoded examples of it, within limits."""
    labels = encoded.probabilities.argmax(axis=1)
    counts = [min(MAX_ROWS, int((labels == label).sum())) for label in range(model.num_classes)]
    y = np.arange(model.num_classes).repeat(counts)
    z = draw_latents(model, y, chain_seeds(seed, y), chains=DrawSettings.of(settings.sampling, temperature=1.0))
    real = encoded.draw(1, rng=numpy_stream(seed, "prior match"))[0]
    return prior_match(z, y, real, labels, num_classes=model.num_classes, seed=seed)


def attach(run: RunDirectory, model: GenerativeClassifier) -> PriorMatch | None:
    """Give `model`, of the run's best weights, the reference that is stored; its prior match, or None without one."""
    path = _path(run)
    if not path.is_file():
        return None
    header, tensors = read_tensors(path, FORMAT)
    with invalid_as_damaged(path):
        model.reference = None
        if header["model_hash"] != model_hash(model):  # an earlier training's
            return None
        sizes = {"latent_dim": model.energy.latent_dim, "num_classes": model.num_classes}
        model.reference = FittedReference.from_tensors(tensors_under("reference", tensors), **sizes).to(model.device)
        return PriorMatch(tuple(None if auc is None else float(auc) for auc in header["auc"]))


def attach_or_fit(run: RunDirectory, model: GenerativeClassifier, dataset: Dataset | None = None) -> PriorMatch | None:
    """The same; where none is stored, it is fitted to the run's data, measured and stored first."""
    found = attach(run, model)
    if found is not None:
        return found
    data, seed = run.data(run.origin.load() if dataset is None else dataset), run.settings.seed
    weights = model_hash(model)
    encoded = fit_to(model, data, run.settings, seed=seed)
    assert model.reference is not None
    match = match_of(model, encoded, run.settings, seed=derive_seed(seed, "prior match"))
    header = {"format": FORMAT, "model_hash": weights, "auc": list(match.auc)}
    write_tensors(_path(run), header, named_tensors("reference", model.reference.tensors()))
    return match


def reference_for_drawing(run: RunDirectory, model: GenerativeClassifier, draw: Draw) -> str | None:
    """Give `model` what `draw` needs; a note where `auto` falls back to `langevin`, because data cannot be read."""
    if draw is Draw.LANGEVIN or run.settings.training.objective is not Objective.JOINT:
        return None
    try:
        attach_or_fit(run, model)
    except (SynthsieveError, OSError) as error:
        if draw is not Draw.AUTO:
            raise
        return f"drawn by langevin: no mixture could be fitted to the data of {run.path} ({error})"
    return None


def _path(run: RunDirectory) -> Path:
    return run.path / "reference.safetensors"
