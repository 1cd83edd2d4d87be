"""Training state on disk: one safetensors file whose header carries JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from synthsieve.data.dataset import InputSpec
from synthsieve.errors import CheckpointError, ConfigError
from synthsieve.io.random_streams import torch_stream
from synthsieve.io.tensors import invalid_as_damaged, named_tensors, read_tensors, tensors_under, write_tensors
from synthsieve.models.calibration import Calibration
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.reference import FittedReference
from synthsieve.settings import ModelSettings, Settings, settings_from
from synthsieve.training.state import TrainState, non_finite, restore_optimiser

FORMAT = "synthsieve checkpoint 1"


def save(path: Path, train_state: TrainState, notes: dict[str, Any], *, previous: Path | None = None) -> None:
    """Write all that a resumed run needs: weights, averages, optimisers, random generators, step, and `notes` (JSON).

    Numbers that are not finite are refused, so that the last good checkpoint stays. The checkpoint that it replaces
    stays at `previous`, where that is given.
    """
    tensors = {
        **named_tensors("model", train_state.model.state_dict()),
        **named_tensors("generator", {name: rng.get_state() for name, rng in train_state.rngs.items()}),
    }
    for name, optimiser in train_state.optimisers.items():
        for index, values in optimiser.state_dict()["state"].items():
            tensors |= named_tensors(f"optimiser/{name}/{index}", values)
    save_weights(path, train_state, notes, tensors, previous=previous)


def save_weights(
    path: Path,
    train_state: TrainState,
    notes: dict[str, Any],
    more: Mapping[str, Tensor] | None = None,
    *,
    previous: Path | None = None,
    best: GenerativeClassifier | None = None,
    step: int | None = None,
) -> None:
    """Write the averaged weights, which are what prediction and sampling need, and `more`.

    Instead of those of `train_state`, they can be those of `best`, of an earlier `step`.
    """
    averaged, step = best or train_state.averaged, train_state.step if step is None else step
    tensors = {**(more or {}), **named_tensors("averaged", averaged.state_dict())}
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise non_finite(step, name, float(tensor[~tensor.isfinite()][0]))
    header = {
        "format": FORMAT,
        "step": step,
        "settings": train_state.settings.model_dump(mode="json"),
        "shape": list(train_state.model.shape),
        "num_classes": train_state.model.num_classes,
        "data": train_state.data_hash,
        "notes": notes,
    }
    write_tensors(path, header, tensors, previous=previous)


def load(path: Path, train_state: TrainState, *, pretrained: bool = False) -> dict[str, Any]:
    """Put a checkpoint into `train_state`, which must have the same settings; returns the notes.

    With `pretrained` only the settings of pretraining must agree: a variant starts there.
    """
    header, tensors = read_tensors(path, FORMAT)
    model, settings = train_state.model, train_state.settings
    _check_header(path, header, settings, model.input_spec, model.num_classes, train_state.data_hash, pretrained)
    with invalid_as_damaged(path):
        model.load_state_dict(tensors_under("model", tensors))
        train_state.averaged.load_state_dict(tensors_under("averaged", tensors))
        for name, rng_state in tensors_under("generator", tensors).items():
            train_state.rngs[name].set_state(rng_state)
        for name, optimiser in train_state.optimisers.items():
            moments: dict[int, dict[str, Tensor]] = {}
            for key, value in tensors_under(f"optimiser/{name}", tensors).items():
                index, _, field = key.partition("/")
                moments.setdefault(int(index), {})[field] = value
            restore_optimiser(optimiser, {**optimiser.state_dict(), "state": moments})
        train_state.step, notes = _step_of(header), header["notes"]
        if not isinstance(notes, dict):
            raise ValueError("its notes are not a JSON object")
        return notes


def load_model(
    path: Path, settings: Settings, input_spec: InputSpec, num_classes: int, data_hash: str
) -> tuple[GenerativeClassifier, int]:
    """The networks with the averaged weights of either kind of file, for prediction, and the step of these weights."""
    header, tensors = read_tensors(path, FORMAT)
    _check_header(path, header, settings, input_spec, num_classes, data_hash)
    with invalid_as_damaged(path):
        model = model_with_weights(settings.model, input_spec, num_classes, tensors_under("averaged", tensors))
        if stored := tensors_under("reference", tensors):
            sizes = {"latent_dim": model.energy.latent_dim, "num_classes": num_classes}
            model.reference = FittedReference.from_tensors(stored, **sizes)
        if calibration := header["notes"].get("calibration"):
            model.calibration = Calibration.from_dict(calibration, num_classes)
        return model, _step_of(header)


def model_with_weights(
    settings: ModelSettings, input_spec: InputSpec, num_classes: int, weights: dict[str, Tensor]
) -> GenerativeClassifier:
    """Networks with these weights, for prediction; ValueError, before memory is taken, where sizes do not agree."""

    def build() -> GenerativeClassifier:
        return GenerativeClassifier(settings, input_spec, num_classes, rng=torch_stream(0, "overwritten"))

    with torch.device("meta"):
        expected = {name: value.shape for name, value in build().state_dict().items()}
    if expected != {name: value.shape for name, value in weights.items()}:
        raise ValueError("its weights are not of the sizes that its settings name")
    model = build()
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    model.load_state_dict(weights)
    return model.requires_grad_(False).eval()


def read_notes(path: Path) -> dict[str, Any]:
    """The notes of a checkpoint of either kind."""
    header, _ = read_tensors(path, FORMAT)
    with invalid_as_damaged(path):
        return dict(header["notes"])


def is_valid(path: Path) -> bool:
    """Whether there is an undamaged checkpoint, of either kind."""
    try:
        read_tensors(path, FORMAT)
    except CheckpointError:
        return False
    return True


def _step_of(header: dict[str, Any]) -> int:
    step = int(header["step"])
    if step < 0:
        raise ValueError("its step is negative")
    return step


def _check_header(
    path: Path,
    header: dict[str, Any],
    settings: Settings,
    input_spec: InputSpec,
    num_classes: int,
    data_hash: str,
    pretrained: bool = False,
) -> None:
    try:
        stored_settings = settings_from(header["settings"])  # newer settings have their defaults there
    except (KeyError, TypeError, ConfigError) as error:
        raise CheckpointError(
            f"the settings in {path} cannot be read ({error}): fit again", code="damaged-file"
        ) from None
    if pretrained:
        stored_settings, settings = stored_settings.pretrained(), settings.pretrained()
    pairs = {
        "other settings": (stored_settings, settings),
        "examples of another shape": (header.get("shape"), list(input_spec.shape)),
        "another number of classes": (header.get("num_classes"), num_classes),
        "other data": (header.get("data"), data_hash),
    }
    for difference, (stored, expected) in pairs.items():
        if stored != expected:
            raise CheckpointError(
                f"{path} was written with {difference}: resume with the settings and data of the run it belongs to",
                code="other-run",
            )
