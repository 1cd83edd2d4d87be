"""`synthsieve.evaluate`: all metrics of a trained model on held-out labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from synthsieve.errors import ConfigError, DataError
from synthsieve.evaluation.predict import part_of, score
from synthsieve.io.devices import AUTO, device_of
from synthsieve.io.files import write_json
from synthsieve.io.printable import one_line
from synthsieve.io.versions import versions
from synthsieve.results.table import FILE, ResultsTable
from synthsieve.training.run_dir import RunDirectory

PARTS = ("test", "validation")
CROSS_FITTED = "cross-fitting"
SHOWN = ("balanced_accuracy", "f1", "auroc", "average_precision", "log_loss", "majority_accuracy")
MAX_CLASSES = 12  # larger confusion tables are only in evaluation.json


@dataclass(frozen=True)
class Evaluation:
    """Metrics of a model."""

    part: str  # `test`, `validation`, `cross-fitting` where each label was held out in turn, or the name of a test file
    classes: tuple[str, ...]  # the class names
    metrics: dict[str, Any]  # plain numbers by name; see `evaluation.metrics.Metrics`
    interval_95: tuple[float, float]  # 95 % interval of the accuracy, over the choice of examples
    metadata: dict[str, Any]  # settings, split hash and versions
    path: Path  # the file that it was written to

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        per_class = dict(zip(self.classes, self.metrics["recall"], strict=True))
        figures = {"part": self.part, **self.metrics, "per_class": per_class, "classes": list(self.classes)}
        return {**figures, "interval_95": list(self.interval_95), **self.metadata}

    def lines(self) -> list[str]:
        """The summary that the command line prints."""
        figures, names, (low, high) = self.metrics, [one_line(name) for name in self.classes], self.interval_95
        lines = [
            f"{self.part} accuracy {100 * figures['accuracy']:.1f} % "
            f"(95 % interval {100 * low:.1f} to {100 * high:.1f}, {figures['count']:,} examples)"
        ]
        lines += [f"  {name.replace('_', ' ')}: {figures[name]:.3f}" for name in SHOWN if figures[name] is not None]
        error, before = figures["calibration_error"], figures.get("calibration_error_before")
        changed = "" if before in (None, error) else f"; {before:.3f} before calibration"
        lines.append(f"  calibration error: {error:.3f}{changed}")
        recall = [(name, share) for name, share in zip(names, figures["recall"], strict=True) if share is not None]
        lines += ["recall of each class:", *(f"  {name}: {100 * share:.1f} %" for name, share in recall)]
        if len(names) <= MAX_CLASSES:
            wide = max(6, *(len(f"{count:,}") + 2 for row in figures["confusion"] for count in row))
            lines.append("true class (rows) and predicted class (columns, in the same order):")
            for name, row in zip(names, figures["confusion"], strict=True):
                lines.append(f"  {name[:20]:20}" + "".join(f"{count:>{wide},}" for count in row))
        return [*lines, f"written to {self.path}"]


def evaluate(
    out: str | Path,
    *,
    part: str = "test",
    test: str | Path | None = None,
    data_dir: str | Path | None = None,
    device: str | torch.device = AUTO,
) -> Evaluation:
    """Measure the model in a folder of `run` or `fit`, and write OUT/evaluation.json.

    Args:
        out: the folder.
        part: `test` or `validation` rows of the run's split. Where `run` had no such rows and used cross-fitting, its
            stored predictions of held-out labels are measured.
        test: a file of labelled examples to measure on instead.
        data_dir: where the files of a built-in data set are now.
        device: as for `fit`.
    """
    out, torch_device = Path(out), device_of(device)
    if part not in PARTS:
        raise ConfigError(f"part must be {' or '.join(PARTS)}, got {part!r}", code="unknown-part")
    run = RunDirectory.find(out)
    settings = run.settings.model_dump(mode="json")
    metadata = {"settings": settings, "split_hash": run.split.hash, "versions": versions(), "device": str(torch_device)}
    has_rows = len(run.split.test if part == "test" else run.split.validation) > 0
    if test is None and not has_rows and (out / FILE).is_file():
        table = ResultsTable.read(out / FILE)
        name, metrics = CROSS_FITTED, table.metrics[table.kept]
    else:
        x, y = _examples(run, part, test, data_dir)
        name = part if test is None else Path(test).name
        model = run.load_model(device=torch_device)
        metrics = score(model, run.encoding, x, y)
        metadata["calibration"] = model.calibration.as_dict()
    path, classes = out / "evaluation.json", run.split.classes
    evaluation = Evaluation(name, classes, metrics.as_dict(), metrics.interval(), metadata, path)
    write_json(evaluation.path, evaluation.as_dict())
    return evaluation


def _examples(
    run: RunDirectory, part: str, test: str | Path | None, data_dir: str | Path | None
) -> tuple[np.ndarray, np.ndarray]:
    """x as stored and y of the examples to measure on."""
    origin = run.origin if data_dir is None else replace(run.origin, data_dir=str(Path(data_dir).resolve()))
    if test is not None:
        examples = replace(origin, test=str(Path(test).expanduser().resolve())).load().test
        assert examples is not None
        return examples.x, examples.y
    dataset = origin.load()
    run.split.check_against(dataset)
    x, y = part_of(dataset, run.split, part)
    if not len(y):
        message = f"the run in {run.path} has no {part} rows: give labelled examples with --test FILE"
        raise DataError(message, code="no-labelled-rows")
    return x, y
