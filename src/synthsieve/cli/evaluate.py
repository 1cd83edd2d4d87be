"""`synthsieve evaluate OUT`: the accuracy of a fitted run on its test set."""

from __future__ import annotations

from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.cli.options import finish
from synthsieve.cli.printing import one_line


def evaluate(
    out: options.Run,
    data_dir: options.DataDir = None,
    part: Annotated[str, typer.Option(help="test or validation.")] = "test",
    threads: options.Threads = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Measure the best model of a run on examples it never saw, and write OUT/evaluation.json."""
    from dataclasses import replace

    from synthsieve.errors import ConfigError, DataError
    from synthsieve.evaluation.accuracy import score_part
    from synthsieve.files import write_json
    from synthsieve.learning.run_folder import RunFolder, versions

    if part not in ("test", "validation"):
        raise ConfigError(f"--part can be test or validation, got {part!r}")
    options.use_threads(threads)
    run = RunFolder.find(out)
    origin = run.origin if data_dir is None else replace(run.origin, data_dir=str(data_dir.resolve()))
    dataset = origin.load()
    run.split.check_against(dataset)
    scores = score_part(run.model(), run.encoding, dataset, run.split, part)
    if scores is None:
        raise DataError(f"the run in {out} has no {part} rows: nothing can be measured there")
    low, high = scores.interval()
    report = {
        "part": part,
        "accuracy": scores.accuracy,
        "interval_95": [low, high],
        "cross_entropy": scores.cross_entropy,
        "per_class": {
            name: None if value != value else value
            for name, value in zip(run.split.classes, scores.per_class, strict=True)
        },
        "count": scores.count,
        "settings": run.settings.model_dump(mode="json"),
        "split_hash": run.split.hash,
        "versions": versions(),
    }
    write_json(out / "evaluation.json", report)
    lines = [scores.in_words(part)]
    lines += [
        f"  {one_line(name)}: {100 * value:.1f} %"
        for name, value in zip(run.split.classes, scores.per_class, strict=True)
        if value == value
    ]
    lines.append(f"written to {out / 'evaluation.json'}")
    finish(report, lines, as_json=as_json)
