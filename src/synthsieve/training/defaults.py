"""Default settings: the preset for a data source or kind of data, and what follows from the data set itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.dataset import UNLABELED, Dataset, Kind
from synthsieve.errors import ConfigError
from synthsieve.evaluation.metrics import default_metric
from synthsieve.io.random_streams import numpy_stream
from synthsieve.settings import Metric, Settings, load_settings, preset_names, preset_text

SOURCE_PRESETS = {"digits": "digits-minutes", "mnist": "mnist-minutes", "svhn": "svhn-cpu"}
# All labels of benchmarks are known, so only some are used; of a user's data all labels are used.
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
KIND_PRESETS = {
    Kind.VECTOR: "vector-minutes",
    Kind.TABLE: "table-minutes",
    Kind.SOUND: "sound-minutes",
    Kind.TEXT: "text-minutes",
}
SMALL_SIDE = 12  # pixels; images up to this size get fully connected networks
SMALL_IMAGE_PRESET, IMAGE_PRESET = "digits-minutes", "image-minutes"
VARIANCE_KEPT = 0.95
LATENT_RANGE = (4, 64)
MEASURED_ROWS = 2000


@dataclass(frozen=True)
class Preset:
    """A preset of the package."""

    name: str
    description: str  # the comment at its top
    default_for: tuple[str, ...]  # built-in data sets and kinds of data
    text: str  # TOML


def presets() -> list[Preset]:
    """Every preset of the package, by name."""
    users = [*SOURCE_PRESETS.items(), *((str(kind), name) for kind, name in KIND_PRESETS.items())]
    users += [("small image", SMALL_IMAGE_PRESET), ("image", IMAGE_PRESET)]
    found = []
    for name in preset_names():
        text = preset_text(name)
        comment = takewhile(lambda line: line.startswith("#"), text.splitlines())
        description = " ".join(line.removeprefix("#").strip() for line in comment)
        found.append(Preset(name, description, tuple(user for user, preset in users if preset == name), text))
    return found


def default_preset(source: str, dataset: Dataset | None = None) -> str | None:
    """The preset of a built-in source or of a kind of data; None uses the defaults of `Settings`."""
    if source in SOURCE_PRESETS or dataset is None:
        return SOURCE_PRESETS.get(source)
    if dataset.kind == Kind.IMAGE:
        _, height, width = dataset.shape
        return SMALL_IMAGE_PRESET if max(height, width) <= SMALL_SIDE else IMAGE_PRESET
    return KIND_PRESETS.get(Kind(dataset.kind)) if dataset.kind in set(Kind) else None


def settings_for(
    source: str,
    dataset: Dataset | None = None,
    *,
    config: str | Path | None = None,
    overrides: Iterable[str] = (),
    options: Mapping[str, Any] | None = None,
) -> Settings:
    """Settings for `source`: its defaults and preset, then `options` (a nested mapping), then `overrides`.

    Call it without the data set to report errors in the options before the data are read.
    """
    known: dict[str, Any] = {}
    if source in BENCHMARKS:
        known = {"data": BENCHMARKS[source], "comparison": {"metric": "accuracy", "variants": "all"}}
    elif dataset is not None:
        cheap = dataset.kind in (Kind.TABLE, Kind.VECTOR)  # training takes seconds; a minute or more for other kinds
        known = {"comparison": {"repeats": 2, "variants": "standard"} if cheap else {"repeats": 1, "variants": "quick"}}
    settings = load_settings(config or default_preset(source, dataset), overrides, options, defaults=known)
    return settings if dataset is None else _with_metric(settings, dataset)


def _with_metric(settings: Settings, dataset: Dataset) -> Settings:
    """The same with `auto` replaced by the metric for these labels; balanced accuracy also chooses the best weights."""
    metric = settings.comparison.metric
    if metric is Metric.AUTO:
        labels = dataset.train.y[dataset.train.y != UNLABELED]
        metric = default_metric(np.bincount(labels, minlength=dataset.num_classes))
    if metric is Metric.BALANCED_ACCURACY:
        settings = settings.changed("training", keep_metric=metric)
    return settings.changed("comparison", metric=metric)


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
    """Settings of an estimator: every label is used, no test rows are held out, and only the end is stored."""
    if max_iter is not None and (not isinstance(max_iter, Integral) or max_iter < 1):
        raise ConfigError(f"max_iter must be a whole number, 1 or more, got {max_iter!r}", code="bad-max-iter")
    model: dict[str, Any] = {}
    chosen = preset or default_preset("", dataset)
    if latent_dim is None and dataset.kind == Kind.VECTOR and preset is None:
        latent_dim = latent_dim_for(dataset.train.x)
    if latent_dim is not None:
        model["latent_dim"] = latent_dim
        label_latent_dim = load_settings(chosen).model.label_latent_dim
        if isinstance(latent_dim, Integral) and 1 <= latent_dim <= label_latent_dim:
            model["label_latent_dim"] = int(latent_dim) - 1
    data = {"test_fraction": 0.0, "validation_fraction": validation_fraction}
    values: dict[str, Any] = {"seed": seed, "data": data, "model": model}
    for name, value in changes.items():
        section, dot, field = str(name).partition(".")
        if section == "seed":
            raise ConfigError("an estimator takes its seed as random_state, not as a setting", code="seed-in-settings")
        if dot or isinstance(value, Mapping):
            values.setdefault(section, {}).update({field: value} if dot else value)
        else:
            values[section] = value
    settings = _with_metric(load_settings(chosen, base=values), dataset)
    return settings.over(settings.training.steps if max_iter is None else int(max_iter))


def latent_dim_for(x: np.ndarray) -> int:
    """The number of principal components with 95 % of the variance of standardized vectors, within 4 to 64."""
    rows = numpy_stream(0, "latent dimension").permutation(len(x))[:MEASURED_ROWS]
    sample = x[np.sort(rows)].astype(np.float64)
    deviation = sample.std(axis=0)
    standard = (sample - sample.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    variances = np.linalg.svd(standard, compute_uv=False) ** 2
    if not variances.sum() > 0:
        return LATENT_RANGE[0]
    needed = int(np.searchsorted(np.cumsum(variances) / variances.sum(), VARIANCE_KEPT)) + 1
    return int(np.clip(needed, *LATENT_RANGE))
