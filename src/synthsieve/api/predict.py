"""`synthsieve.predict`: predict the examples in a file or folder."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from synthsieve.data.formats.new_examples import read_new
from synthsieve.errors import ConfigError
from synthsieve.estimators.classifier import untrained
from synthsieve.estimators.loading import learned_by, open_model
from synthsieve.evaluation import predict as predict_batches
from synthsieve.experiments.baselines.features import Views
from synthsieve.experiments.baselines.search import refit
from synthsieve.experiments.baselines.sklearn_models import CLASSICAL, MAX_UNLABELED
from synthsieve.io.devices import AUTO
from synthsieve.io.files import atomic_write
from synthsieve.io.locks import locked_beside
from synthsieve.io.progress import NullProgress, Progress
from synthsieve.results.export.writers import csv_tables
from synthsieve.results.table import FILE, ResultsTable
from synthsieve.selection.entropy import entropy_of_probabilities
from synthsieve.training.run_dir import RunDirectory

SUFFIXES = (".csv", ".parquet", ".jsonl", ".npz")
RUN_FILES = ("history.csv", "history.jsonl")  # files of a run with a suffix that predictions may have


@dataclass(frozen=True)
class Predictions:
    """Predictions for new examples, in the order of the input."""

    classes: np.ndarray  # (k,) the labels
    probabilities: np.ndarray  # float64 (n, k), in the order of `classes`
    files: tuple[str, ...] | None = None  # the name of each example's file; None where examples are rows
    notes: tuple[str, ...] = ()  # remarks on the examples or on the model

    def __len__(self) -> int:
        return len(self.probabilities)

    @property
    def predicted(self) -> np.ndarray:
        """The most probable label of each example: (n,)."""
        labels: np.ndarray = self.classes[self.probabilities.argmax(axis=1)]
        return labels

    @property
    def entropy(self) -> np.ndarray:
        """Entropy of the probabilities, in nats: float64 (n,)."""
        return entropy_of_probabilities(self.probabilities)

    def counts(self) -> dict[str, int]:
        """Number of examples predicted as each class."""
        counts = np.bincount(self.probabilities.argmax(axis=1), minlength=len(self.classes))
        return {str(name): int(count) for name, count in zip(self.classes, counts, strict=True)}

    def table(self) -> Any:
        """A pyarrow table: row or file, predicted, probability, entropy, probability_CLASS for each class."""
        import pyarrow as pa

        return pa.table(
            {
                **({"row": np.arange(len(self))} if self.files is None else {"file": list(self.files)}),
                "predicted": pa.array(self.predicted.tolist()),
                "probability": self.probabilities.max(axis=1),
                "entropy": self.entropy,
                **{f"probability_{name}": self.probabilities[:, i] for i, name in enumerate(self.classes)},
            }
        )

    def write(self, path: Path) -> None:
        """Write atomically: `table` as .csv, .parquet or .jsonl, or arrays as .npz.

        The arrays are row or files, predicted, probability, entropy, probabilities (n, k) and classes (k,).
        """
        with atomic_write(path) as partial:
            suffix = path.suffix.lower()
            if suffix == ".npz":
                names = {"row": np.arange(len(self))} if self.files is None else {"files": np.array(self.files)}
                with partial.open("wb") as file:
                    np.savez_compressed(
                        file,
                        **names,
                        predicted=np.array(self.predicted.tolist()),  # no objects, which numpy would pickle
                        probability=self.probabilities.max(axis=1),
                        entropy=self.entropy,
                        probabilities=self.probabilities,
                        classes=np.array(self.classes.tolist()),
                    )
            elif suffix == ".parquet":
                from pyarrow import parquet

                parquet.write_table(self.table(), partial)
            elif suffix == ".csv":
                with csv_tables(partial) as add:
                    add(self.table())
            else:
                with partial.open("w", encoding="utf-8") as lines:
                    lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in self.table().to_pylist())


def predict(
    model: str | Path,
    new: str | Path,
    to: str | Path | None = None,
    *,
    features: str | Path | None = None,
    text: str | None = None,
    method: str | None = None,
    force: bool = False,
    threads: int | None = 1,
    device: str | torch.device = AUTO,
    progress: Callable[[str], Progress] | None = None,
) -> Predictions:
    """Predict the examples in a file or folder, and write the predictions to `to` where it is given.

    Args:
        model: a folder of `run` or `fit`, or a file of `LatentEBMClassifier.save`.
        new: a file or a folder like those that the model was trained on; labels in it are not used.
        to: a .csv, .parquet, .jsonl or .npz to write.
        features: embeddings of the rows of `new`, for a model that was trained on embeddings.
        text: the text column, where its name differs from that in training.
        method: a baseline that the run compared, such as "logistic regression", fitted again on the same rows.
        force: replace `to` if it exists; an input is never replaced.
        threads: torch threads; None leaves the number as it is.
        device: as for `fit`.
        progress: returns the progress bar of a stage ("read", "predict") by its name; None shows none.
    """
    model, new = Path(model).expanduser(), Path(new).expanduser()
    features = None if features is None else Path(features).expanduser()
    bar = progress or (lambda name: NullProgress())
    estimator, run = open_model(model, device)
    estimator.n_jobs = threads
    with ExitStack() as stack:
        if to is not None:
            to = Path(to).expanduser()
            check_target(to, [model, new, *([] if features is None else [features]), *_files_of(run)], force=force)
            stack.enter_context(locked_beside(to))
        stack.enter_context(estimator.resources())
        examples = read_new(new, learned_by(estimator, run, text=text), features=features, progress=bar("read"))
        notes = examples.notes
        if method is None:
            with closing(bar("predict")) as shown:
                probabilities = predict_batches.probabilities(
                    estimator.model_, estimator.encoding_, examples.x, progress=shown
                )
            warning = untrained(estimator.n_iter_, estimator.expected_iter_)
            notes = notes if warning is None else (*notes, warning)
        else:
            probabilities = _baseline(method, model, run)(examples.x)
        predictions = Predictions(estimator.classes_, probabilities, examples.files, notes)
        if to is not None:
            predictions.write(to)
    return predictions


def _baseline(name: str, out: Path, run: RunDirectory | None) -> Callable[[np.ndarray], np.ndarray]:
    """A baseline of a run, with the hyperparameters that it chose most often: x as stored -> probabilities."""
    table = ResultsTable.read(out / FILE) if (out / FILE).is_file() else None
    known = {} if table is None else {one.name: one for one in CLASSICAL if one.name in table.baselines}
    if table is None or run is None or name not in known:
        names = ", ".join(map(repr, known)) or "none here: it needs the folder of `synthsieve run`"
        message = f"method must be a baseline that the run compared ({names}), got {name!r}"
        raise ConfigError(message, code="unknown-method")
    chosen = Counter(one.chosen for one in table.baselines[name] if one.chosen is not None)
    if not chosen:
        message = f"{name} could not be fitted to these data: predict without --method"
        raise ConfigError(message, code="method-not-fitted")
    dataset = run.origin.load()
    run.split.check_against(dataset)
    views = Views(dataset, run.split, run.settings.seed, MAX_UNLABELED, MAX_UNLABELED)
    return refit(known[name], chosen.most_common(1)[0][0], views)


def check_target(
    to: Path,
    inputs: Sequence[Path],
    *,
    force: bool,
    suffixes: Sequence[str] = SUFFIXES,
    what: str = "predictions",
) -> None:
    """Refuse a path that has another suffix, exists already, or is an input."""
    if to.suffix.lower() not in suffixes:
        raise ConfigError(f"{what} go to a file that ends in {', '.join(suffixes)}, got {to}", code="bad-target")
    if to.is_dir():
        raise ConfigError(f"{what} go to a file, but {to} is a folder: name a file in it", code="bad-target")
    if not to.exists():
        return
    if any(one.exists() and os.path.samefile(to, one) for one in inputs):
        message = f"{to} is an input, which {what} never replace: choose another name"
        raise ConfigError(message, code="target-is-input")
    if not force:
        message = f"{to} already exists: choose another name, or pass --force to replace it"
        raise ConfigError(message, code="target-exists")


def _files_of(run: RunDirectory | None) -> list[Path]:
    """Files of a run that predictions must not replace: its own, and its training data."""
    if run is None:
        return []
    origin = (run.origin.source, run.origin.schema, run.origin.features)
    return [*(run.path / name for name in RUN_FILES), *(Path(one) for one in origin if one is not None)]
