"""The labelled data set of a run: labelled rows, unlabelled rows with the model's labels, and samples, by origin."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import numpy as np

from synthsieve.data.dataset import Dataset
from synthsieve.evaluation.labeling import LabeledRows, label_rows
from synthsieve.evaluation.predict import probabilities
from synthsieve.experiments.arms import TableEntry
from synthsieve.experiments.experiment import Experiment
from synthsieve.experiments.usefulness import agreeing_samples, pooled_entry
from synthsieve.io.files import atomic_write
from synthsieve.results.export.formats import SampleForm, form_of
from synthsieve.results.export.samples import write_items
from synthsieve.results.readable import shown_items
from synthsieve.training.run_dir import RunDirectory

NAME = "dataset"
COLUMNS = ("probability", "entropy", "weight", "rejected", "reason")


class RowOrigin(StrEnum):
    """Where a row and its label come from."""

    LABELED = "labelled"  # a row of yours with your label
    SELF_LABELED = "self-labelled"  # a row of yours with the model's label
    SYNTHETIC = "synthetic"  # drawn by the model, and still given the requested class after encoding it again


def write_labeled_set(experiment: Experiment, dataset: Dataset, kept: TableEntry) -> list[Path]:
    """Write OUT/dataset.npz, and for tables and texts dataset.csv (tables also .parquet); the paths written.

    Each row has y (an index into `classes`; in tables the label), origin, probability, entropy, weight for
    `sample_weight`, rejected and reason. Rejected rows have weight 0. Validation and test rows are not in it.
    """
    unit = experiment.whole_units[0]
    run = RunDirectory.open(experiment.folder(kept, unit))
    model, split = run.load_model(device=experiment.device), run.split
    entry = pooled_entry(experiment, kept)
    samples = None if entry is None else agreeing_samples(RunDirectory.open(experiment.folder(entry, unit)))
    x, parts, origins = [dataset.train.x[split.labeled]], [_given(dataset.train.y[split.labeled])], []
    origins += [RowOrigin.LABELED] * len(split.labeled)
    indices = np.arange(dataset.num_classes)
    if len(split.unlabeled):
        x.append(dataset.train.x[split.unlabeled])
        parts.append(label_rows(probabilities(model, run.encoding, x[-1]), indices))
        origins += [RowOrigin.SELF_LABELED] * len(split.unlabeled)
    if samples is not None:
        p = probabilities(model, run.encoding, samples[0])
        x.append(samples[0])
        parts.append(label_rows(p, indices, min_probability=0.0, y=samples[1]))
        origins += [RowOrigin.SYNTHETIC] * len(samples[1])
    stored, y = np.concatenate(x), np.concatenate([part.y for part in parts])
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS}
    stem = experiment.out / NAME
    arrays = {
        "x": stored,
        "y": y,
        "origin": np.array([str(one) for one in origins]),
        "classes": np.asarray(dataset.classes),
        **columns,
    }
    with atomic_write(stem.with_suffix(".npz")) as partial, partial.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    items = shown_items(run, stored, dataset)
    readable = []
    if form_of(items) in (SampleForm.ROWS, SampleForm.SENTENCES):
        readable = write_items(
            stem,
            items,
            [dataset.classes[one] for one in y.tolist()],
            label_name=run.origin.label or "label",
            origin=[str(one) for one in origins],
            **{name: values.tolist() for name, values in columns.items()},
        )
    return [stem.with_suffix(".npz"), *readable]


def _given(y: np.ndarray) -> LabeledRows:
    """The user's own labels: certain, and never rejected."""
    ones, zeros = np.ones(len(y)), np.zeros(len(y))
    return LabeledRows(y, ones, zeros, ones, zeros.astype(bool), np.full(len(y), ""))
