"""Predicting what lies in files: `predict_file` reads new examples, asks a model, and writes a row for each."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.new_examples import read_new
from synthsieve.entropy import entropy_of_probabilities
from synthsieve.errors import ConfigError
from synthsieve.estimator import untrained
from synthsieve.evaluation import rowwise
from synthsieve.experiments.classical import refitted
from synthsieve.experiments.classical_methods import CLASSICAL, MOST_UNLABELED
from synthsieve.experiments.views import Views
from synthsieve.export.csv_file import csv_tables
from synthsieve.files import written_atomically
from synthsieve.learning.run_folder import RunFolder
from synthsieve.loading import learned_by, open_model
from synthsieve.lock import locked_beside
from synthsieve.progress import Progress, Silent
from synthsieve.review.table_file import read_table

SUFFIXES = (".csv", ".parquet", ".jsonl", ".npz")
TABLE = "table.json"
OF_A_RUN = ("history.csv", "history.jsonl")  # files of a run whose endings predictions may have


@dataclass(frozen=True)
class Predictions:
    """The answers for new examples, in the order they came.

    Attributes:
        classes: (k,) the labels.
        probabilities: float64 (n, k), in the order of `classes`.
        files: the name of each example's file; None where examples are rows, which count from 0.
        notes: what the user should know of the examples or of the model.
    """

    classes: np.ndarray
    probabilities: np.ndarray
    files: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.probabilities)

    @property
    def predicted(self) -> np.ndarray:
        """The most probable label of each: (n,)."""
        labels: np.ndarray = self.classes[self.probabilities.argmax(axis=1)]
        return labels

    @property
    def entropy(self) -> np.ndarray:
        """Of the probabilities, in nats: float64 (n,)."""
        return entropy_of_probabilities(self.probabilities)

    def counts(self) -> dict[str, int]:
        """How many examples were given each class."""
        found = np.bincount(self.probabilities.argmax(axis=1), minlength=len(self.classes))
        return {str(name): int(count) for name, count in zip(self.classes, found, strict=True)}

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
        """Write, atomically: a .csv, .parquet or .jsonl as `table` is, or an .npz of arrays.

        The arrays are row or files, predicted, probability, entropy, probabilities (n, k) and classes (k,).
        """
        with written_atomically(path) as partial:
            suffix = path.suffix.lower()
            if suffix == ".npz":
                with partial.open("wb") as file:
                    np.savez_compressed(
                        file,
                        **({"row": np.arange(len(self))} if self.files is None else {"files": np.array(self.files)}),
                        predicted=np.array(self.predicted.tolist()),  # no objects, which numpy would pickle
                        probability=self.probabilities.max(axis=1),
                        entropy=self.entropy,
                        probabilities=self.probabilities,
                        classes=np.array(self.classes.tolist()),
                    )
            elif suffix == ".csv":
                with csv_tables(partial) as add:
                    add(self.table())
            elif suffix == ".parquet":
                from pyarrow import parquet

                parquet.write_table(self.table(), partial)
            else:
                with partial.open("w", encoding="utf-8") as lines:
                    for batch in self.table().to_batches(max_chunksize=10_000):
                        lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())


def predict_file(
    model: str | Path,
    new: str | Path,
    to: str | Path,
    *,
    features: str | Path | None = None,
    text: str | None = None,
    method: str | None = None,
    force: bool = False,
    threads: int | None = 1,
    reading: Progress | None = None,
    progress: Progress | None = None,
) -> Predictions:
    """Predict the examples at `new` and write them to `to`, whose ending says how.

    Args:
        model: a folder of `synthsieve run` or `fit`, or a file of `LatentEBMClassifier.save`.
        new: a file or a folder like those that the model learned from; labels in it are not used.
        to: a .csv, .parquet, .jsonl or .npz to write.
        features: embeddings of the rows of `new`, for a model that learned from embeddings.
        text: the column of the texts, where its name is another than in training.
        method: a simpler method that the run compared, such as "logistic regression", fitted again to the same rows.
        force: replace `to` where it exists; an input is never replaced.
        threads: of the networks; None leaves torch's number alone.
        reading, progress: told how far reading and predicting have come.
    """
    new, to = Path(new).expanduser(), Path(to).expanduser()
    features = None if features is None else Path(features).expanduser()
    estimator, run = open_model(Path(model).expanduser())
    inputs = [Path(model), new, *([] if features is None else [features]), *_files_of(run)]
    check_target(to, inputs, force=force)
    estimator.n_jobs = threads
    with locked_beside(to), estimator.threads():
        given = read_new(new, learned_by(estimator, run, text=text), features=features, progress=reading)
        with closing(progress or Silent()) as told:
            if method is None:
                answers = rowwise.probabilities(
                    estimator.model_, estimator.encoding_, given.x, seed=estimator.seed_, progress=told
                )
            else:
                answers = _by_method(method, Path(model).expanduser(), run)(given.x)
        said = untrained(estimator.n_iter_, estimator.expected_iter_) if method is None else None
        notes = given.notes if said is None else (*given.notes, said)
        found = Predictions(estimator.classes_, answers, given.files, notes)
        found.write(to)
    return found


def _by_method(name: str, out: Path, run: RunFolder | None) -> Callable[[np.ndarray], np.ndarray]:
    """A simple method of a run, with the candidate that it chose most often: x as stored -> probabilities."""
    table = read_table(out / TABLE) if (out / TABLE).is_file() else None
    compared = [] if table is None else [one for one in CLASSICAL if one.name in table["baselines"]]
    known = {one.name: one for one in compared}
    if table is None or run is None or name not in known:
        names = ", ".join(map(repr, known)) or "none here: it takes the folder of `synthsieve run`"
        raise ConfigError(f"--method can be one that the run compared ({names}), but {name!r} came")
    chosen = Counter(one["chosen"] for one in table["baselines"][name] if one["chosen"] is not None)
    if not chosen:
        raise ConfigError(f"{name} could not be fitted to these data: predict without --method")
    dataset = run.origin.load()
    run.split.check_against(dataset)
    views = Views(dataset, run.split, run.settings.seed, MOST_UNLABELED, MOST_UNLABELED)
    return refitted(known[name], chosen.most_common(1)[0][0], views)


def check_target(to: Path, inputs: Sequence[Path], *, force: bool) -> None:
    """Refuse, before any work, a name that cannot be written, that is taken, or that belongs to an input."""
    if to.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"predictions go to a file that ends in {', '.join(SUFFIXES)}, but {to} came")
    if to.is_dir():
        raise ConfigError(f"predictions go to a file, but {to} is a folder: name a file in it")
    if not to.exists():
        return
    if any(one.exists() and os.path.samefile(to, one) for one in inputs):
        raise ConfigError(f"{to} is an input, which predictions never replace: choose another name")
    if not force:
        raise ConfigError(f"{to} already exists: choose another name, or pass --force to replace it")


def _files_of(run: RunFolder | None) -> list[Path]:
    """What a run keeps and what it learned from."""
    if run is None:
        return []
    origin = (run.origin.source, run.origin.schema, run.origin.features)
    return [*(run.path / name for name in OF_A_RUN), *(Path(one) for one in origin if one is not None)]
