"""A fitted estimator as one file: weights as safetensors, the rest as JSON in its header. Reading it runs no code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from synthsieve.data import in_memory
from synthsieve.data.containers import as_items
from synthsieve.data.modalities.registry import from_json
from synthsieve.errors import CheckpointError, InputError
from synthsieve.io.devices import AUTO
from synthsieve.io.tensors import invalid_as_damaged, named_tensors, read_tensors, tensors_under, write_tensors
from synthsieve.io.versions import versions
from synthsieve.models.calibration import Calibration
from synthsieve.models.reference import FittedReference
from synthsieve.settings import settings_from
from synthsieve.training.checkpoint import model_with_weights

FORMAT = "synthsieve estimator 1"
LABEL_KINDS = "biufU"
Estimator = Any  # a LatentEBMClassifier, whose module imports this one


def save(estimator: Estimator, path: Path) -> Path:
    """Write `estimator`, atomically; returns the path."""
    if path.is_dir():
        raise InputError(f"an estimator is saved to one file, but {path} is a folder: name a file in it", code="folder")
    estimator.fit_reference()
    tensors = named_tensors("model", estimator.model_.state_dict())
    if estimator.model_.reference is not None:
        tensors |= named_tensors("reference", estimator.model_.reference.tensors())
    if estimator.features_ is not None:
        tensors["features"] = torch.from_numpy(estimator.features_)
    header = {
        "format": FORMAT,
        "parameters": _parameters(estimator),
        "classes": _labels_to_json(estimator.classes_),
        "settings": estimator.settings_.model_dump(mode="json"),
        "encoding": estimator.encoding_.to_json(),
        "held": in_memory.to_json(estimator.held_),
        "items": None if estimator.items_ is None else _items_to_json(estimator.items_),
        "history": estimator.history_,
        "stopped_because": estimator.stopped_because_,
        "n_iter": estimator.n_iter_,
        "expected_iter": estimator.expected_iter_,
        "seed": estimator.seed_,
        "device": estimator.device_,
        "notes": list(estimator.notes_),
        "n_features_in": estimator.n_features_in_,
        "feature_names_in": [str(name) for name in getattr(estimator, "feature_names_in_", ())],
        "calibration": estimator.model_.calibration.as_dict(),
        "versions": versions(),
    }
    write_tensors(path, header, tensors)
    return path


def load(cls: type[Any], path: Path, device: Any = AUTO) -> Estimator:
    """The estimator that `save` wrote, to be used on `device`."""
    if path.is_dir():
        message = f"{path} is a folder, not a file that save() wrote: open it with synthsieve.load({path.name!r})"
        raise CheckpointError(message, code="folder")
    header, tensors = read_tensors(path, FORMAT)
    with invalid_as_damaged(path):
        estimator = cls(**{**header["parameters"], "device": device})
        estimator.device_ = str(header.get("device", "cpu"))  # a file of version 0.1 has none
        estimator.classes_ = _labels_from_json(header["classes"])
        estimator.settings_ = settings_from(header["settings"])
        estimator.encoding_ = from_json(header["encoding"])
        estimator.held_ = in_memory.from_json(header["held"], estimator.encoding_)
        estimator.items_ = None if header["items"] is None else as_items(header["items"])
        estimator.features_ = tensors["features"].numpy() if "features" in tensors else None
        estimator.history_ = list(header["history"])
        estimator.stopped_because_, estimator.n_iter_ = str(header["stopped_because"]), int(header["n_iter"])
        estimator.notes_ = tuple(str(note) for note in header["notes"])
        estimator.expected_iter_ = int(header["expected_iter"])
        estimator.seed_, estimator.n_features_in_ = int(header["seed"]), int(header["n_features_in"])
        if header["feature_names_in"]:
            estimator.feature_names_in_ = np.array([str(name) for name in header["feature_names_in"]], dtype=object)
        input_spec, num_classes = estimator.encoding_.input_spec, len(estimator.classes_)
        # Parts of a header that are each well formed may still belong to different estimators.
        items, features = (None if part is None else len(part) for part in (estimator.items_, estimator.features_))
        if estimator.held_.kind != input_spec.kind or items != features:
            raise ValueError("its examples, encoding and embeddings do not belong together")
        weights = tensors_under("model", tensors)
        estimator.model_ = model_with_weights(estimator.settings_.model, input_spec, num_classes, weights)
        if "calibration" in header:  # a file of version 0.1 has none
            estimator.model_.calibration = Calibration.from_dict(header["calibration"], num_classes)
        if stored := tensors_under("reference", tensors):
            sizes = {"latent_dim": estimator.settings_.model.latent_dim, "num_classes": num_classes}
            estimator.model_.reference = FittedReference.from_tensors(stored, **sizes)
    return estimator


def _parameters(estimator: Estimator) -> dict[str, Any]:
    """The constructor's arguments but `device`; a numpy generator as random_state becomes the seed that it gave."""
    parameters = estimator.get_params(deep=False)
    del parameters["device"]  # another machine has others
    if not isinstance(parameters["random_state"], int | None):
        parameters["random_state"] = estimator.seed_
    try:
        plain: dict[str, Any] = json.loads(json.dumps(parameters, allow_nan=False, default=_number))
    except (TypeError, ValueError) as error:
        message = f"only parameters of plain numbers and text can be saved ({error}): change them"
        raise InputError(message, code="cannot-save") from None
    return plain


def _number(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is neither a number nor text")


def _labels_to_json(classes: np.ndarray) -> dict[str, Any]:
    if classes.dtype.kind not in LABEL_KINDS and not all(isinstance(label, str) for label in classes):
        raise InputError(f"labels of type {classes.dtype} cannot be saved: use numbers or text", code="cannot-save")
    kind = "str" if classes.dtype.kind in "UO" else classes.dtype.name
    return {"dtype": kind, "object": classes.dtype.kind == "O", "values": classes.tolist()}


def _labels_from_json(value: dict[str, Any]) -> np.ndarray:
    dtype = np.dtype(object) if value["object"] else np.dtype(value["dtype"])
    if dtype.kind not in LABEL_KINDS + "O":
        raise ValueError(f"labels of type {dtype}")
    if dtype.kind in "UO":
        labels = np.array([str(label) for label in value["values"]], dtype=object if dtype.kind == "O" else None)
    else:
        labels = np.array(value["values"], dtype=dtype)
    if labels.ndim != 1 or len(np.unique(labels)) != len(labels) or len(labels) < 2:
        raise ValueError("its labels must be a list of two or more different ones")
    return labels


def _items_to_json(items: Any) -> list[Any]:
    if not isinstance(items, np.ndarray):
        message = f"items in a {type(items).__name__} cannot be saved: fit with a list of text or numbers"
        raise InputError(message, code="cannot-save")
    if items.dtype.kind not in "biufU" and not all(isinstance(item, str) for item in items.ravel()):
        raise InputError(f"items of type {items.dtype} cannot be saved: use text or numbers", code="cannot-save")
    plain: list[Any] = items.tolist()
    return plain
