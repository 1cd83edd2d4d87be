"""scikit-learn's ways to learn from few labels, on our splits: the package's classical methods with larger grids."""

from __future__ import annotations

from pathlib import Path

from synthsieve.data.dataset import Dataset
from synthsieve.data.splits import Split
from synthsieve.experiments.baselines.features import COMPONENTS, TEXT_COMPONENTS, Views
from synthsieve.experiments.baselines.search import BaselineResult, GridMethod
from synthsieve.experiments.baselines.sklearn_models import (
    MAX_UNLABELED,
    gradient_boosting,
    label_spreading,
    logistic_regression,
    self_training,
)

FEATURES = (
    "Features: images as pixels in [0, 1]; vectors and log-mel spectrograms standardised; tables with numbers imputed "
    "and standardised and categories one-hot; text as TF-IDF of one and two words; "
    f"self-training on images and sounds, and label spreading on images, sounds and text, by {COMPONENTS} principal "
    f"components ({TEXT_COMPONENTS} for text)."
)

RIVALS = (
    logistic_regression((0.01, 0.1, 1, 10, 100)),
    gradient_boosting((5, 10, 20), (30, 100), pixels=True),
    self_training((0.1, 1, 10, 100), (0.75, 0.95)),
    label_spreading((3, 5, 10, 20), (0.2, 0.9)),
)


def views_of(dataset: Dataset, split: Split, seed: int) -> Views:
    """What the rivals of a seed see: features measured on all labelled and unlabelled rows."""
    return Views(dataset, split, seed, MAX_UNLABELED)


def is_answered(rival: GridMethod, path: Path, dataset: Dataset, split: Split) -> bool:
    """Whether `path` holds the rival's answer with the grid of today, on that split."""
    if not path.is_file():
        return False
    metadata = BaselineResult.read(path).metadata
    return metadata["split_hash"] == split.hash and list(metadata["grid"]) == [one.name for one in rival.grid(dataset)]
