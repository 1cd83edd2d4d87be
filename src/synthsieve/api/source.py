"""The data and settings of `run` and `fit`: one list of options for both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

from synthsieve.data.dataset import Dataset
from synthsieve.data.origin import Origin
from synthsieve.io.progress import Progress
from synthsieve.settings import Settings
from synthsieve.training.defaults import settings_for

SETTINGS = ("labels", "class_prior", "config", "overrides", "seed")


class SourceOptions(TypedDict, total=False):
    """How the data are read, and the settings they are trained with; each option may be left out."""

    label: str | None  # label column of a table
    text: str | None  # text column of a table, to train on sentences
    schema: Path | None  # a TOML file with the types of columns that are detected wrongly
    features: Path | None  # a .npy of embeddings to train on, one row for each row of the table
    image_size: str | None  # the size that images of a folder are resized to, such as "64" or "64x48"
    data_dir: Path | None  # folder of built-in data sets, or to download them to
    test: Path | None  # a file of labelled examples to measure on, in the format of the source
    validation: Path | None  # a file of labelled examples to choose on, in the format of the source
    labels: int | None  # use only this many labels, for experiments; None uses all
    class_prior: str | Sequence[float] | None  # shares that predictions assume: labels, uniform, model, or numbers
    config: str | Path | None  # name of a preset or a TOML file; None chooses a preset by the data
    overrides: Iterable[str] | None  # single settings, such as "training.steps=2000"
    seed: int | None  # random seed


def read_source(
    source: str | Path, changes: Mapping[str, Any], *, progress: Progress, **options: Unpack[SourceOptions]
) -> tuple[Origin, Dataset, Settings]:
    """Where the data come from, the data, and the settings for them; `changes` are further settings, nested."""
    values: dict[str, Any] = {**changes}
    if (seed := options.get("seed")) is not None:
        values["seed"] = seed
    if (labels := options.get("labels")) is not None:
        values["data"] = {"labels": labels}
    if (prior := options.get("class_prior")) is not None:
        values["training"] = {**values.get("training", {}), "class_prior": _prior(prior)}
    overrides = list(options.get("overrides") or ())
    settings = partial(settings_for, str(source), config=options.get("config"), overrides=overrides, options=values)
    settings()  # reports errors before the data are read
    places: dict[str, Any] = {name: value for name, value in options.items() if name not in SETTINGS}
    origin = Origin.of(str(source), **places)
    dataset = origin.load(progress)
    return origin, dataset, settings(dataset)


def _prior(given: str | Sequence[float]) -> Any:
    """A class prior as a setting: numbers separated by commas are a list."""
    if not isinstance(given, str):
        return [float(share) for share in given]
    try:
        return [float(share) for share in given.split(",")]
    except ValueError:
        return given
