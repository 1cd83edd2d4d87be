"""A learner on disk: one safetensors file whose header carries JSON. It is written whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from synthsieve.config import Settings, settings_from
from synthsieve.errors import CheckpointError, ConfigError
from synthsieve.files import json_of, named_again, written_atomically
from synthsieve.layout import Layout
from synthsieve.learning.learner import Learner, non_finite, restore_optimiser
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.randomness import torch_stream

FORMAT = "synthsieve checkpoint 1"
MOST_SAID = 300  # characters of a reason that is told: it may quote what the file holds
DAMAGE = (LookupError, TypeError, ValueError, RuntimeError, AttributeError, ArithmeticError)


def save(path: Path, learner: Learner, notes: dict[str, Any], *, previous: Path | None = None) -> None:
    """Write all that a resumed run needs: weights, averages, optimisers, generators, step, and `notes` (JSON).

    Numbers that are not finite are refused, so that the last good checkpoint stays. What `path` held before stays at
    `previous`, where that is given.
    """
    tensors = {
        **_named("model", learner.model.state_dict()),
        **_named("averaged", learner.averaged.state_dict()),
        **_named("generator", {name: generator.get_state() for name, generator in learner.generators.items()}),
    }
    for name, optimiser in learner.optimisers.items():
        for index, values in optimiser.state_dict()["state"].items():
            tensors |= _named(f"optimiser/{name}/{index}", values)
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise non_finite(learner.step, name, float(tensor[~tensor.isfinite()][0]))
    _write(path, tensors, learner, notes, previous)


def save_weights(path: Path, learner: Learner, notes: dict[str, Any]) -> None:
    """Write the averaged weights alone: what prediction and drawing need."""
    _write(path, _named("averaged", learner.averaged.state_dict()), learner, notes)


def load(path: Path, learner: Learner, *, first_phase: bool = False) -> dict[str, Any]:
    """Put a checkpoint's state into `learner`, which must be of the same settings; returns the notes.

    With `first_phase` the settings of the second phase may differ: the learner branches off there.
    """
    header, tensors = _read(path)
    _check_settings(path, header, learner, first_phase=first_phase)
    with damage_told(path):
        learner.model.load_state_dict(_under("model", tensors))
        learner.averaged.load_state_dict(_under("averaged", tensors))
        for name, state in _under("generator", tensors).items():
            learner.generators[name].set_state(state)
        for name, optimiser in learner.optimisers.items():
            stored: dict[int, dict[str, Tensor]] = {}
            for key, value in _under(f"optimiser/{name}", tensors).items():
                index, _, field = key.partition("/")
                stored.setdefault(int(index), {})[field] = value
            restore_optimiser(optimiser, {**optimiser.state_dict(), "state": stored})
        return _take_place(learner, header)


def load_weights(path: Path, learner: Learner) -> dict[str, Any]:
    """Put the averaged weights of either kind of file into `learner.averaged`; returns the notes."""
    header, tensors = _read(path)
    _check_settings(path, header, learner)
    with damage_told(path):
        learner.averaged.load_state_dict(_under("averaged", tensors))
        return _take_place(learner, header)


def is_whole(path: Path) -> bool:
    """Whether there is a checkpoint, of either kind, with all its numbers."""
    try:
        _read(path)
    except CheckpointError:
        return False
    return True


def _take_place(learner: Learner, header: dict[str, Any]) -> dict[str, Any]:
    """Put the learner at the step of the header; its notes."""
    learner.step, notes = int(header["step"]), header["notes"]
    if learner.step < 0 or not isinstance(notes, dict):
        raise ValueError("its step or its notes are none")
    return notes


@contextmanager
def damage_told(path: Path) -> Iterator[None]:
    """What does not fit into a learner is told as the damage that it is: whoever wrote a file can also sign it."""
    try:
        yield
    except DAMAGE as error:
        said = " ".join(str(error).split())[:MOST_SAID]
        raise CheckpointError(
            f"{path} is damaged or of a later version ({said}): use another checkpoint of the run, or fit again"
        ) from None


def check_size(path: Path, settings: Settings, layout: Layout, num_classes: int) -> None:
    """Refuse networks larger than the checkpoint that fills them, before memory is taken: settings may claim any."""
    with damage_told(path):
        with torch.device("meta"):
            model = GenerativeClassifier(settings.model, layout, num_classes, generator=torch_stream(0, "overwritten"))
        claimed = sum(value.numel() * value.element_size() for value in model.state_dict().values())
        if path.is_file() and claimed > path.stat().st_size:
            raise ValueError(f"the settings ask for weights of {claimed:,} bytes, more than it has")


def _write(
    path: Path, tensors: dict[str, Tensor], learner: Learner, notes: dict[str, Any], previous: Path | None = None
) -> None:
    header = {
        "format": FORMAT,
        "step": learner.step,
        "settings": learner.settings.model_dump(mode="json"),
        "shape": list(learner.model.shape),
        "num_classes": learner.model.num_classes,
        "data": learner.data,
        "sha256": digest_of(tensors),
        "notes": notes,
    }
    header["header_sha256"] = digest_of_header(header)
    with written_atomically(path) as partial:
        try:
            save_file(tensors, partial, metadata={"synthsieve": json.dumps(header, allow_nan=False)})
        except SafetensorError as error:  # that is how it tells of the disk
            raise CheckpointError(
                f"{path} cannot be written ({error}): make room, check its rights, and go on from the last checkpoint"
            ) from None
        if previous is not None and path.is_file():
            named_again(path, previous)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if not path.is_file():
        raise CheckpointError(f"there is no checkpoint at {path}: fit first")
    try:
        with safe_open(path, framework="pt") as file:
            header = json_of((file.metadata() or {}).get("synthsieve", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        digest = digest_of(tensors)
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{path} is not a whole checkpoint ({error}): use another checkpoint of the run, or fit again"
        ) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise CheckpointError(f"{path} is no checkpoint of this program (expected {FORMAT!r} in its header): fit again")
    if header.get("sha256") != digest:
        raise CheckpointError(f"{path} is damaged: its numbers do not match their checksum; use another or fit again")
    if "header_sha256" in header and header["header_sha256"] != digest_of_header(header):  # older files have none
        raise CheckpointError(f"{path} is damaged: its header does not match its checksum; use another or fit again")
    return header, tensors


def _check_settings(path: Path, header: dict[str, Any], learner: Learner, *, first_phase: bool = False) -> None:
    try:
        theirs = settings_from(header["settings"])  # a setting that came later has its default there
    except (KeyError, TypeError, ConfigError) as error:
        raise CheckpointError(f"{path} carries settings that cannot be read ({error}): fit again") from None
    mine = learner.settings
    pairs = {
        "settings": (theirs.first_phase(), mine.first_phase()) if first_phase else (theirs, mine),
        "shape": (header.get("shape"), list(learner.model.shape)),
        "num_classes": (header.get("num_classes"), learner.model.num_classes),
        "data": (header.get("data"), learner.data),
    }
    for name, (stored, expected) in pairs.items():
        if stored != expected:
            raise CheckpointError(
                f"{path} was written with another {name}: resume with the settings and data of the run it belongs to"
            )


def _named(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    # clone: safetensors refuses tensors that share memory, and channels-last weights must be laid out in order.
    return {
        f"{prefix}/{name}": value.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, value in tensors.items()
    }


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}/"
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}


def digest_of(tensors: dict[str, Tensor]) -> str:
    """The SHA-256 of named numbers."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].contiguous().numpy().tobytes())
    return digest.hexdigest()


def digest_of_header(header: dict[str, Any]) -> str:
    """The SHA-256 of all that a header says, but for this."""
    said = {name: value for name, value in header.items() if name != "header_sha256"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
