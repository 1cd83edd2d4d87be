"""`synthsieve.utility`: how much do synthetic rows help any estimator? Also from files, for the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.formats.npz import read_npz
from synthsieve.data.formats.table import read_csv, read_parquet
from synthsieve.data.labels import listed
from synthsieve.errors import ConfigError, DataError
from synthsieve.evaluation import utility as evaluation
from synthsieve.evaluation.common_models import common_model
from synthsieve.evaluation.students import Student
from synthsieve.io.progress import Progress
from synthsieve.results.utility import UtilityView
from synthsieve.settings import Metric

TABLES = (".csv", ".tsv", ".parquet")


@wraps(evaluation.utility)
def utility(*arguments: Any, **options: Any) -> UtilityView:
    return UtilityView.of(evaluation.utility(*arguments, **options))


def utility_of_files(
    real: str | Path,
    synthetic: str | Path,
    *,
    label: str | None = None,
    test: str | Path | None = None,
    unlabeled: str | Path | None = None,
    text: str | None = None,
    weights: str | None = None,
    estimator: str = "forest",
    metric: Metric | str | None = None,
    repeats: int | None = None,
    drop_leaks: bool = False,
    seed: int = 0,
    progress: Callable[[str], Progress] | None = None,
) -> UtilityView:
    """How much the rows of one file help a model that is trained on those of another.

    Args:
        real: labelled rows, .csv, .tsv or .parquet with a label column, or .npz with x and y; rows without a label
            count as unlabelled.
        synthetic: the rows to measure; columns that the real rows do not have are ignored.
        label: the label column of tables.
        test: labelled rows that trained nothing; without them labels are held out in turn.
        unlabeled: real rows without labels, for the control of self-labelled rows.
        text: train on this column of texts only.
        weights: the column, or array, of weights of the synthetic rows.
        estimator: logistic, forest, boosting, knn or mlp, or `module:factory` for an estimator of your own; that
            module is imported, also from the current folder, and the factory called.
        metric, repeats, drop_leaks, seed: as for `utility`.
        progress: returns the progress bar of a stage by its name; None shows none.
    """
    first = _read(Path(real), label, text)
    second = _read(Path(synthetic), label, text, like=first, extra=weights)
    tests = None if test is None else _read(Path(test), label, text, like=first)
    others = None if unlabeled is None else _read(Path(unlabeled), label, text, like=first, labeled=False)
    if tests is not None and tests.y is None:
        raise DataError(f"{test} has no labels to measure on", code="no-labels")
    model = _named(estimator, first.x)
    return utility(
        model,
        first.x,
        first.y,
        (second.x, second.y),
        X_test=None if tests is None else tests.x,
        y_test=None if tests is None else tests.y,
        unlabeled=None if others is None else others.x,
        weights=second.extra,
        metric=metric,
        repeats=repeats,
        drop_leaks=drop_leaks,
        seed=seed,
        name=estimator,
        progress=None if progress is None else progress("utility"),
    )


class _File:
    """Rows of a file: x, labels y and a column of numbers `extra`; None for those that are not there."""

    def __init__(self, x: Any, y: Any, extra: Any) -> None:
        self.x, self.y, self.extra = x, y, extra


def _read(
    path: Path,
    label: str | None,
    text: str | None,
    *,
    like: _File | None = None,
    extra: str | None = None,
    labeled: bool = True,
) -> _File:
    if not path.is_file():
        raise DataError(f"{path} is not a file: expected {', '.join(TABLES)} or .npz", code="missing-file")
    if path.suffix.lower() == ".npz":
        return _arrays(path, extra, labeled=labeled)
    if path.suffix.lower() not in TABLES:
        raise DataError(f"{path} must end in {', '.join(TABLES)} or .npz", code="unknown-format")
    if label is None:
        raise ConfigError(f"{path} is a table: name its label column with --label", code="missing-label")
    is_csv = path.suffix.lower() != ".parquet"
    frame = (read_csv(path, as_written=[label]) if is_csv else read_parquet(path)).to_pandas()
    needed = [name for name in (label if labeled else None, text, extra) if name is not None]
    wanted = [] if like is None or text is not None else [str(name) for name in like.x.columns]
    lacking = [name for name in [*needed, *wanted] if name not in frame.columns]
    if lacking:
        raise DataError(
            f"{path} has no column {listed(lacking)}: its columns are {listed([str(c) for c in frame.columns])}",
            code="missing-column",
        )
    y = None if not labeled else [None if value != value or value is None else str(value) for value in frame[label]]
    weights = None if extra is None else frame[extra].to_numpy(dtype=np.float64)
    if text is not None:
        return _File([str(value) for value in frame[text]], y, weights)
    rows = frame[wanted] if wanted else frame.drop(columns=[label])
    return _File(rows, y, weights)


def _arrays(path: Path, extra: str | None, *, labeled: bool) -> _File:
    arrays = read_npz(path)
    lacking = [name for name in ("x", *(["y"] if labeled else []), extra) if name is not None and name not in arrays]
    if lacking:
        raise DataError(f"{path} has no array {listed(lacking)}: it has {listed(list(arrays))}", code="missing-array")
    return _File(arrays["x"], arrays["y"] if labeled else None, None if extra is None else arrays[extra])


def own_student(estimator: Any) -> Student:
    """A user's estimator, checked to fit and predict: one in memory, a callable, or the name of one."""
    named = isinstance(estimator, str)
    return Student.of(_named(estimator) if named else estimator, weighted=False, name=estimator if named else None)


def _named(name: str, rows: Any = None) -> Any:
    """A common model, or what the factory of a module returns."""
    module, _, factory = name.partition(":")
    if not factory:
        return common_model(name, np.asarray(rows, dtype=object) if isinstance(rows, list) else rows)
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        found = getattr(import_module(module), factory)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{name!r} cannot be imported ({error}): expected module:factory, such as my_models:make",
            code="unknown-estimator",
        ) from None
    finally:
        sys.path.remove(folder)
    return found
