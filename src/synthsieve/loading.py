"""`synthsieve.load`: what `run`, `fit` or `LatentEBMClassifier.save` wrote, as a fitted estimator."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from synthsieve.data.dataset import Kind
from synthsieve.data.encoding import Encoding, ImageEncoding
from synthsieve.data.in_memory import Held, about_of, kind_of
from synthsieve.data.new_examples import Learned
from synthsieve.data.schema import TableSchema
from synthsieve.errors import CheckpointError
from synthsieve.estimator import LatentEBMClassifier
from synthsieve.learning.history import read as read_history
from synthsieve.learning.run_folder import RunFolder


def load(path: str | Path) -> LatentEBMClassifier:
    """The fitted estimator in a folder of `synthsieve run` or `fit`, or in a file that `save` wrote.

    It predicts, draws and can be saved; `augment` needs the data of `fit`, which it has not. Labels of a folder are
    text, or whole numbers where all of them are; drawn rows of a table come as an Arrow table.
    """
    return open_model(Path(path))[0]


def open_model(path: Path) -> tuple[LatentEBMClassifier, RunFolder | None]:
    """The estimator at `path`, and the run that it comes from where it is a folder."""
    if path.is_dir():
        run = RunFolder.find(path)
        return from_run(run), run
    if not path.exists():
        raise CheckpointError(
            f"{path} does not exist: expected a folder of `synthsieve run` or `fit`, or a file that"
            " LatentEBMClassifier.save wrote"
        )
    return LatentEBMClassifier.load(path), None


def from_run(run: RunFolder) -> LatentEBMClassifier:
    """The model of a run as an estimator."""
    settings, encoding, learner = run.settings, run.encoding, run.best_learner()
    layout = encoding.layout
    kind = kind_of(None, layout.kind)
    about = about_of(encoding)
    estimator = LatentEBMClassifier(modality=str(kind), random_state=settings.seed)
    estimator.classes_ = _labels(run.split.classes)
    estimator.settings_, estimator.encoding_, estimator.model_ = settings, encoding, learner.averaged
    estimator.held_ = Held(np.empty(0), kind, about)
    estimator.items_ = estimator.features_ = None
    estimator.notes_ = ()
    estimator.history_ = read_history(run.path / "history.jsonl")
    estimator.n_iter_ = max([learner.step, *(int(row["step"]) for row in estimator.history_[-1:])])
    estimator.expected_iter_ = settings.learning.steps
    total = settings.total_steps
    ended = estimator.n_iter_ >= total
    estimator.stopped_because_ = f"all {total} steps were done" if ended else f"it stopped at step {estimator.n_iter_}"
    estimator.seed_ = settings.seed
    estimator.n_features_in_ = 1 if kind in (Kind.SOUND, Kind.TEXT) else int(np.prod(_shape(encoding)))
    if isinstance(about, TableSchema):
        estimator.n_features_in_ = len(about)
    return estimator


def learned_by(estimator: LatentEBMClassifier, run: RunFolder | None, *, text: str | None = None) -> Learned:
    """What new examples must be like; `text` names their column of texts where it is another than in training."""
    origin = None if run is None else run.origin
    return Learned(
        estimator.held_,
        (estimator.n_features_in_,) if estimator.held_.array else _shape(estimator.encoding_),
        tuple(map(str, getattr(estimator, "feature_names_in_", ()))) if estimator.held_.kind == Kind.VECTOR else (),
        label=None if origin is None else origin.label,
        text=text or (None if origin is None else origin.text),
        embedded=estimator.items_ is not None if origin is None else origin.features is not None,
    )


def _shape(encoding: Encoding) -> tuple[int, ...]:
    """Of one example; networks see images padded."""
    return tuple(encoding.shape if isinstance(encoding, ImageEncoding) else encoding.layout.shape)


def _labels(classes: tuple[str, ...]) -> np.ndarray:
    """Whole numbers where all classes are written as such, as their users hold them; else text."""
    try:
        numbers = [int(name) for name in classes]
    except ValueError:
        return np.array(classes)
    plain = all(str(number) == name and abs(number) < 1 << 62 for number, name in zip(numbers, classes, strict=True))
    return np.array(numbers) if plain else np.array(classes)
