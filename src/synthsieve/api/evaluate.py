"""`synthsieve.evaluate`: every metric of a trained model on labels that it never saw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.errors import ConfigError, DataError
from synthsieve.evaluation.accuracy import part_of, probabilities, wilson_interval
from synthsieve.evaluation.metrics import measure
from synthsieve.files import write_json
from synthsieve.learning.run_folder import RunFolder, versions
from synthsieve.review.table_file import read_table

PARTS = ("test", "validation")
CROSS_FITTED = "cross-fitting"
TABLE = "table.json"


@dataclass(frozen=True)
class Evaluation:
    """A model's figures.

    Attributes:
        part: `test` or `validation`; `cross-fitting` where each label was held out in turn during the run.
        classes: their names.
        metrics: plain numbers by name; see `evaluation.metrics.Metrics`.
        interval_95: of the accuracy, over the choice of examples.
        about: settings, split and versions.
    """

    part: str
    classes: tuple[str, ...]
    metrics: dict[str, Any]
    interval_95: tuple[float, float]
    about: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        per_class = dict(zip(self.classes, self.metrics["recall"], strict=True))
        figures = {"part": self.part, **self.metrics, "per_class": per_class, "classes": list(self.classes)}
        return {**figures, "interval_95": list(self.interval_95), **self.about}


def evaluate(
    out: str | Path, *, part: str = "test", test: str | Path | None = None, data_dir: str | Path | None = None
) -> Evaluation:
    """Measure the model in a folder of `run` or `fit`, and write OUT/evaluation.json.

    Args:
        out: the folder.
        part: `test` or `validation` rows of the run's split. Where `run` used cross-fitting for want of test rows, the
            answers on held-out labels that it stored are measured.
        test: a file of labelled examples to measure on instead.
        data_dir: where the files of a built-in data set lie now.
    """
    out = Path(out)
    if part not in PARTS:
        raise ConfigError(f"part can be {' or '.join(PARTS)}, but {part!r} came")
    run = RunFolder.find(out)
    about = {
        "settings": run.settings.model_dump(mode="json"),
        "split_hash": run.split.hash,
        "versions": versions(),
    }
    has_rows = len(run.split.test if part == "test" else run.split.validation) > 0
    if test is None and not has_rows and (out / TABLE).is_file():
        table = read_table(out / TABLE)
        kept = table["proof"]["baseline"] if table["choice"] is None else table["choice"]["arm"]
        found = _evaluation(CROSS_FITTED, run, table["metrics"][kept], about)
    else:
        x, y = _examples(run, part, test, data_dir)
        metrics = measure(y, probabilities(run.model(), run.encoding, x))
        found = _evaluation(part if test is None else Path(test).name, run, metrics.as_dict(), about)
    write_json(out / "evaluation.json", found.as_dict())
    return found


def _evaluation(part: str, run: RunFolder, metrics: dict[str, Any], about: dict[str, Any]) -> Evaluation:
    interval = wilson_interval(metrics["accuracy"], metrics["count"])
    return Evaluation(part, run.split.classes, metrics, interval, about)


def _examples(
    run: RunFolder, part: str, test: str | Path | None, data_dir: str | Path | None
) -> tuple[np.ndarray, np.ndarray]:
    """x as stored and y of the examples to measure on."""
    origin = run.origin if data_dir is None else replace(run.origin, data_dir=str(Path(data_dir).resolve()))
    if test is not None:
        own = replace(origin, test=str(Path(test).expanduser().resolve())).load().test
        assert own is not None
        return own.x, own.y
    dataset = origin.load()
    run.split.check_against(dataset)
    x, y = part_of(dataset, run.split, part)
    if not len(y):
        raise DataError(f"the run in {run.path} has no {part} rows: give labelled examples with --test FILE")
    return x, y
