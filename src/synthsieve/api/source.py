"""The data and settings of `run` and `fit`: one list of options for both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

from synthsieve.data.containers import as_arrow, is_frame
from synthsieve.data.dataset import Dataset
from synthsieve.data.origin import Origin
from synthsieve.errors import ConfigError, InputError
from synthsieve.io.files import atomic_write
from synthsieve.io.locks import locked
from synthsieve.io.printable import brief
from synthsieve.io.progress import Progress
from synthsieve.selection.rows import is_hub_dataset, is_list_of_dicts
from synthsieve.settings import Settings
from synthsieve.training.defaults import settings_for

SETTINGS = ("labels", "class_prior", "config", "overrides", "seed")
ROWS = "rows.parquet"  # in the folder of a run whose rows came from memory


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
    source: Any, out: Path, changes: Mapping[str, Any], *, progress: Progress, **options: Unpack[SourceOptions]
) -> tuple[Origin, Dataset, Settings]:
    """Where the data come from, the data, and the settings for them; `changes` are further settings, nested.

    Rows in memory are first written to OUT/rows.parquet, where workers and later commands find them.
    """
    rows = None
    if not isinstance(source, str | Path):
        rows, source = _table(source), out / ROWS
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
    if rows is not None:
        _store(rows, source)
    places: dict[str, Any] = {name: value for name, value in options.items() if name not in SETTINGS}
    origin = Origin.of(str(source), **places)
    dataset = origin.load(progress)
    return origin, dataset, settings(dataset)


def _store(table: Any, path: Path) -> None:
    """Write a pyarrow table to a Parquet file; one that an interrupted run left must hold the same rows."""
    import pyarrow as pa
    from pyarrow import parquet

    if not path.exists():
        with locked(path.parent), atomic_write(path) as partial:
            parquet.write_table(table, partial)
        return
    try:
        same = parquet.read_table(path).equals(table)
    except (pa.ArrowException, OSError):
        same = False
    if not same:
        raise ConfigError(f"{path} has other rows than those given: choose another folder", code="other-data")


def _table(rows: Any) -> Any:
    """A pyarrow table of a data frame, an Arrow table, a `datasets.Dataset`, a dict of columns or a list of dicts."""
    import pyarrow as pa

    if is_hub_dataset(rows):
        rows = rows.with_format("arrow")[:]
    if is_list_of_dicts(rows):
        rows = {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
    if isinstance(rows, Mapping):
        try:
            rows = pa.table({str(name): column for name, column in rows.items()})
        except (pa.ArrowException, TypeError, ValueError) as error:
            problem = f"the columns cannot be read as a table ({brief(error)}): each needs one type and the same length"
            raise InputError(problem, code="unreadable-table") from None
    if is_frame(rows) or hasattr(rows, "__arrow_c_stream__"):
        return as_arrow(rows)
    raise InputError(
        f"expected a path, a data frame, an Arrow table, a Dataset, a dict of columns or a list of dicts, got a "
        f"{type(rows).__name__}: for arrays use LatentEBMClassifier, or an .npz file with x and y",
        code="unknown-container",
    )


def _prior(given: str | Sequence[float]) -> Any:
    """A class prior as a setting: numbers separated by commas are a list."""
    if not isinstance(given, str):
        return [float(share) for share in given]
    try:
        return [float(share) for share in given.split(",")]
    except ValueError:
        return given
