"""A fitted estimator as one file: weights as safetensors, all else as JSON in its header. Nothing in it runs code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from synthsieve.config import settings_from
from synthsieve.data import in_memory
from synthsieve.data.containers import as_items
from synthsieve.data.encoding import from_json
from synthsieve.errors import CheckpointError, InputError, SynthsieveError
from synthsieve.files import json_of, written_atomically
from synthsieve.learning.checkpoint import digest_of
from synthsieve.learning.run_folder import versions
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.randomness import torch_stream

if TYPE_CHECKING:
    from synthsieve.estimator import LatentEBMClassifier

FORMAT = "synthsieve estimator 1"
LABEL_KINDS = "biufU"
MOST_SAID = 300  # characters of a reason that is told: it may quote what the file holds
DAMAGE = (LookupError, TypeError, ValueError, RuntimeError, AttributeError, ArithmeticError, MemoryError)
Fitted = TypeVar("Fitted", bound="LatentEBMClassifier")


def save(estimator: LatentEBMClassifier, path: Path) -> Path:
    """Write `estimator`, atomically; returns the path."""
    if path.is_dir():
        raise InputError(f"an estimator is saved to one file, but {path} is a folder: name a file in it")
    tensors = {
        f"model/{name}": value.detach().clone(memory_format=torch.contiguous_format)
        for name, value in estimator.model_.state_dict().items()
    }
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
        "notes": list(estimator.notes_),
        "n_features_in": estimator.n_features_in_,
        "feature_names_in": [str(name) for name in getattr(estimator, "feature_names_in_", ())],
        "versions": versions(),
        "sha256": digest_of(tensors),
    }
    with written_atomically(path) as partial:
        save_file(tensors, partial, metadata={"synthsieve": json.dumps(header, allow_nan=False)})
    return path


def load(cls: type[Fitted], path: Path) -> Fitted:
    """The estimator that `save` wrote."""
    header, tensors = _read(path)
    try:
        estimator = cls(**header["parameters"])
        estimator.classes_ = _labels_from_json(header["classes"])
        estimator.settings_ = settings_from(header["settings"])
        estimator.encoding_ = from_json(header["encoding"])
        estimator.held_ = in_memory.from_json(header["held"], estimator.encoding_)
        estimator.items_ = None if header["items"] is None else as_items(header["items"])
        estimator.features_ = tensors["features"].numpy() if "features" in tensors else None
        estimator.history_ = list(header["history"])
        estimator.stopped_because_, estimator.n_iter_ = str(header["stopped_because"]), int(header["n_iter"])
        estimator.notes_ = tuple(str(note) for note in header.get("notes", ()))  # earlier files had none
        estimator.expected_iter_ = int(header.get("expected_iter", estimator.n_iter_))  # earlier versions wrote none
        estimator.seed_, estimator.n_features_in_ = int(header["seed"]), int(header["n_features_in"])
        if header["feature_names_in"]:
            estimator.feature_names_in_ = np.array([str(name) for name in header["feature_names_in"]], dtype=object)
        _check_together(estimator)
        estimator.model_ = _model(estimator, tensors)
    except (*DAMAGE, SynthsieveError) as error:
        said = " ".join(str(error).split())[:MOST_SAID]
        raise CheckpointError(f"{path} is damaged or of a later version ({said}): save it again") from None
    return estimator


def _check_together(estimator: LatentEBMClassifier) -> None:
    """Parts of a header that are each well formed may still belong to different estimators."""
    items, features = (None if part is None else len(part) for part in (estimator.items_, estimator.features_))
    if estimator.held_.kind != estimator.encoding_.layout.kind:
        raise ValueError(f"examples of kind {estimator.held_.kind} came with an encoding of another")
    if items != features:
        raise ValueError("its items and their embeddings are not as many")


def _model(estimator: LatentEBMClassifier, tensors: dict[str, torch.Tensor]) -> GenerativeClassifier:
    """The networks that the header describes, with the file's weights; made only where the two agree in size."""
    weights = {name.removeprefix("model/"): value for name, value in tensors.items() if name.startswith("model/")}

    def make() -> GenerativeClassifier:
        return GenerativeClassifier(
            estimator.settings_.model,
            estimator.encoding_.layout,
            len(estimator.classes_),
            generator=torch_stream(0, "overwritten"),
        )

    with torch.device("meta"):  # sizes without memory: a header may claim any
        claimed = {name: value.shape for name, value in make().state_dict().items()}
    if claimed != {name: value.shape for name, value in weights.items()}:
        raise ValueError("its weights are not of the sizes that its settings name")
    model = make()
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    model.load_state_dict(weights)
    return model.requires_grad_(False).eval()


def _read(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    if path.is_dir():
        raise CheckpointError(
            f"{path} is a folder, not a file that save() wrote: open it with synthsieve.load({path.name!r})"
        )
    if not path.is_file():
        raise CheckpointError(f"there is no estimator at {path}: give the file that save() wrote")
    try:
        with safe_open(path, framework="pt") as file:
            header = json_of((file.metadata() or {}).get("synthsieve", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        digest = digest_of(tensors)
    except (SafetensorError, OSError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise CheckpointError(f"{path} is not a whole estimator ({error}): save it again") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise CheckpointError(f"{path} is no estimator of this program (expected {FORMAT!r} in its header)")
    if header.get("sha256") != digest:
        raise CheckpointError(f"{path} is damaged: its numbers do not match their checksum; save it again")
    return header, tensors


def _parameters(estimator: LatentEBMClassifier) -> dict[str, Any]:
    """The constructor's arguments; a numpy generator as random_state becomes the seed that it gave."""
    found = estimator.get_params(deep=False)
    if not isinstance(found["random_state"], int | None):
        found["random_state"] = estimator.seed_
    try:
        plain: dict[str, Any] = json.loads(json.dumps(found, allow_nan=False, default=_number))
    except (TypeError, ValueError) as error:
        raise InputError(f"only parameters of plain numbers and text can be saved ({error}): change them") from None
    return plain


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is neither a number nor text")


def _labels_to_json(classes: np.ndarray) -> dict[str, Any]:
    if classes.dtype.kind not in LABEL_KINDS and not all(isinstance(label, str) for label in classes):
        raise InputError(f"labels of type {classes.dtype} cannot be saved: use numbers or text")
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
        raise ValueError("its labels must be a list of two or more, no two alike")
    return labels


def _items_to_json(items: Any) -> list[Any]:
    if not isinstance(items, np.ndarray):
        raise InputError(f"items in a {type(items).__name__} cannot be saved: fit with a list of text or numbers")
    if items.dtype.kind not in "biufU" and not all(isinstance(item, str) for item in items.ravel()):
        raise InputError(f"items of type {items.dtype} cannot be saved: use text or numbers")
    plain: list[Any] = items.tolist()
    return plain
