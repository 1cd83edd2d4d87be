"""`synthsieve.load`: a fitted estimator from what `run`, `fit` or `LatentEBMClassifier.save` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.dataset import Kind
from synthsieve.data.formats.new_examples import ExpectedInput
from synthsieve.data.in_memory import InMemoryData, kind_of, metadata_of
from synthsieve.data.modalities.encoding import Encoding, ImageEncoding
from synthsieve.data.modalities.table.schema import TableSchema
from synthsieve.errors import CheckpointError
from synthsieve.estimators.classifier import LatentEBMClassifier
from synthsieve.io.devices import AUTO, device_of
from synthsieve.training.history import read as read_history
from synthsieve.training.reference_file import attach
from synthsieve.training.run_dir import RunDirectory


def load(path: str | Path, *, device: Any = AUTO) -> LatentEBMClassifier:
    """The fitted estimator in a folder of `synthsieve run` or `fit`, or in a file that `save` wrote.

    It can predict, draw samples and be saved, but not `augment`, which needs the data of `fit`. Labels of a folder are
    text, or integers where all of them are; drawn rows of a table come as an Arrow table. `device` is that of the
    estimator.
    """
    return open_model(Path(path), device)[0]


def open_model(path: Path, device: Any = AUTO) -> tuple[LatentEBMClassifier, RunDirectory | None]:
    """The estimator at `path`, and the run that it comes from where it is a folder."""
    device_of(device)  # an error, before anything is read
    if path.is_dir():
        run = RunDirectory.find(path)
        return from_run(run, device), run
    if not path.exists():
        raise CheckpointError(
            f"{path} does not exist: expected a folder of `synthsieve run` or `fit`, or a file that"
            " LatentEBMClassifier.save wrote",
            code="missing-file",
        )
    return LatentEBMClassifier.load(path, device=device), None


def from_run(run: RunDirectory, device: Any = AUTO) -> LatentEBMClassifier:
    """The model of a run as an estimator."""
    settings, encoding = run.settings, run.encoding
    model, step = run.load_model_and_step()
    attach(run, model)
    input_spec = encoding.input_spec
    kind = kind_of(None, input_spec.kind)
    metadata = metadata_of(encoding)
    estimator = LatentEBMClassifier(modality=str(kind), random_state=settings.seed, device=device)
    estimator.device_ = run.device
    estimator.classes_ = _labels(run.split.classes)
    estimator.settings_, estimator.encoding_, estimator.model_ = settings, encoding, model
    estimator.held_ = InMemoryData(np.empty(0), kind, metadata)
    estimator.items_ = estimator.features_ = None
    estimator.notes_ = ()
    estimator.history_ = read_history(run.history)
    estimator.n_iter_ = max([step, *(int(row["step"]) for row in estimator.history_[-1:])])
    estimator.expected_iter_ = settings.training.steps
    total = settings.total_steps
    ended = estimator.n_iter_ >= total
    estimator.stopped_because_ = f"all {total} steps were done" if ended else f"it stopped at step {estimator.n_iter_}"
    estimator.seed_ = settings.seed
    estimator.n_features_in_ = 1 if kind in (Kind.SOUND, Kind.TEXT) else int(np.prod(_shape(encoding)))
    if isinstance(metadata, TableSchema):
        estimator.n_features_in_ = len(metadata)
    return estimator


def learned_by(estimator: LatentEBMClassifier, run: RunDirectory | None, *, text: str | None = None) -> ExpectedInput:
    """The format that new examples must have; `text` names their text column if it differs from training."""
    origin = None if run is None else run.origin
    return ExpectedInput(
        estimator.held_,
        (estimator.n_features_in_,) if estimator.held_.array else _shape(estimator.encoding_),
        tuple(map(str, getattr(estimator, "feature_names_in_", ()))) if estimator.held_.kind == Kind.VECTOR else (),
        label=None if origin is None else origin.label,
        text=text or (None if origin is None else origin.text),
        embedded=estimator.items_ is not None if origin is None else origin.features is not None,
    )


def _shape(encoding: Encoding) -> tuple[int, ...]:
    """The shape of one example; networks see padded images."""
    return tuple(encoding.shape if isinstance(encoding, ImageEncoding) else encoding.input_spec.shape)


def _labels(classes: tuple[str, ...]) -> np.ndarray:
    """Integers where all classes are written as such; otherwise text."""
    try:
        numbers = [int(name) for name in classes]
    except ValueError:
        return np.array(classes)
    plain = all(str(number) == name and abs(number) < 1 << 62 for number, name in zip(numbers, classes, strict=True))
    return np.array(numbers) if plain else np.array(classes)
