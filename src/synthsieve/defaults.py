"""What a data set gets when its user says nothing: a preset by its source or by what one example is, and its sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.config import Metric, Settings, load_settings
from synthsieve.data.dataset import UNLABELED, Dataset, Kind
from synthsieve.errors import ConfigError
from synthsieve.evaluation.metrics import default_metric
from synthsieve.randomness import numpy_stream

OF_SOURCE = {"digits": "digits-minutes", "mnist": "mnist-minutes", "svhn": "svhn-cpu"}
# Benchmarks know all their labels, so they say how many are used; a user's data use all of theirs.
_BENCHMARK: dict[str, Any] = {"validation": "extra", "balanced": True}
BENCHMARKS: dict[str, dict[str, Any]] = {
    "digits": {**_BENCHMARK, "labels": 50},
    "mnist": {**_BENCHMARK, "labels": 100},
    "svhn": {**_BENCHMARK, "labels": 1000},
    "adult": {**_BENCHMARK, "labels": 200, "balanced": False},
    # The fractions hold out one speaker of six, and one of the others.
    "spoken-digits": {**_BENCHMARK, "labels": 50, "validation_fraction": 0.2, "test_fraction": 0.1667},
    "sst2": {**_BENCHMARK, "labels": 200},
}
OF_KIND = {
    Kind.VECTOR: "vector-minutes",
    Kind.TABLE: "table-minutes",
    Kind.SOUND: "sound-minutes",
    Kind.TEXT: "text-minutes",
}
SMALL_SIDE = 12  # images up to this are for fully connected layers
VARIANCE_KEPT = 0.95
LATENT_RANGE = (4, 64)
MEASURED_ROWS = 2000


def default_preset(source: str, dataset: Dataset | None = None) -> str | None:
    """The preset that belongs to a source by name, or to what its examples are; None means the plain defaults."""
    if source in OF_SOURCE or dataset is None:
        return OF_SOURCE.get(source)
    if dataset.kind == Kind.IMAGE:
        _, height, width = dataset.shape
        return "digits-minutes" if max(height, width) <= SMALL_SIDE else "image-minutes"
    return OF_KIND.get(Kind(dataset.kind)) if dataset.kind in set(Kind) else None


def settings_for(
    source: str,
    dataset: Dataset | None = None,
    *,
    config: str | Path | None = None,
    overrides: Iterable[str] = (),
    asked: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings of a run of `source`: what is known of it, its preset, the options asked for, and `--set`.

    Without the data set, which is not read yet, errors in options show all the same.
    """
    known: dict[str, Any] = {}
    if source in BENCHMARKS:
        known = {"data": BENCHMARKS[source], "proof": {"metric": "accuracy", "variants": "all"}}
    elif dataset is not None:
        cheap = dataset.kind in (Kind.TABLE, Kind.VECTOR)  # a model takes seconds, of other kinds a minute or more
        known = {"proof": {"repeats": 2, "variants": "standard"} if cheap else {"repeats": 1, "variants": "quick"}}
    settings = load_settings(config or default_preset(source, dataset), overrides, asked, defaults=known)
    return settings if dataset is None else _with_metric(settings, dataset)


def _with_metric(settings: Settings, dataset: Dataset) -> Settings:
    """The same with the metric that `auto` means for these labels; the best weights are chosen by it, too."""
    metric = settings.proof.metric
    if metric is Metric.AUTO:
        labels = dataset.train.y[dataset.train.y != UNLABELED]
        metric = default_metric(np.bincount(labels, minlength=dataset.num_classes))
    balanced = metric is Metric.BALANCED_ACCURACY
    keep_metric = Metric.BALANCED_ACCURACY if balanced else settings.learning.keep_metric
    return settings.model_copy(
        update={
            "proof": settings.proof.model_copy(update={"metric": metric}),
            "learning": settings.learning.model_copy(update={"keep_metric": keep_metric}),
        }
    )


def settings_in_memory(
    dataset: Dataset,
    *,
    preset: str | None,
    changes: Mapping[str, Any],
    seed: int,
    latent_dim: int | None,
    max_iter: int | None,
    validation_fraction: float | str,
) -> Settings:
    """Settings of a fit in memory: every label is used, none is kept for a test, and only the end is stored."""
    asked: dict[str, dict[str, Any]] = {
        "data": {"test_fraction": 0.0, "validation_fraction": validation_fraction},
        "model": {},
    }
    chosen = preset or default_preset("", dataset)
    if latent_dim is None and dataset.kind == Kind.VECTOR and preset is None:
        latent_dim = latent_dim_for(dataset.train.x)
    if latent_dim is not None:
        asked["model"]["latent_dim"] = latent_dim
        towers = load_settings(chosen).model
        if isinstance(latent_dim, Integral) and 1 <= latent_dim <= towers.label_latent_dim:
            asked["model"]["label_latent_dim"] = int(latent_dim) - 1
    values: dict[str, Any] = {"seed": seed, **asked}
    for name, value in changes.items():
        section, dot, field = str(name).partition(".")
        if section == "seed":
            raise ConfigError("the seed is not among the settings of an estimator: give random_state")
        if dot:
            values.setdefault(section, {})[field] = value
        elif isinstance(value, Mapping):
            values.setdefault(section, {}).update(value)
        else:
            values[section] = value
    if max_iter is not None and (not isinstance(max_iter, Integral) or max_iter < 1):
        raise ConfigError(f"max_iter must be a whole number, 1 or more, but {max_iter!r} came")
    settings = load_settings(chosen, base=values)
    return settings.over(settings.learning.steps if max_iter is None else int(max_iter))


def latent_dim_for(x: np.ndarray) -> int:
    """As many latents as principal components hold 95 % of the variance of standardised vectors, within 4 to 64."""
    rows = numpy_stream(0, "latent dimension").permutation(len(x))[:MEASURED_ROWS]
    sample = x[np.sort(rows)].astype(np.float64)
    deviation = sample.std(axis=0)
    standard = (sample - sample.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    variances = np.linalg.svd(standard, compute_uv=False) ** 2
    if not variances.sum() > 0:
        return LATENT_RANGE[0]
    needed = int(np.searchsorted(np.cumsum(variances) / variances.sum(), VARIANCE_KEPT)) + 1
    return int(np.clip(needed, *LATENT_RANGE))
