"""The joint model against its supervised baseline, over seeds, paired, with intervals.

    python benchmarks/accuracy.py digits --seeds 5 --out runs/digits --results docs/results/digits

Each seed has its own split, weights and batches; the baseline gets the same split, the same encoder and energy, and the
settings of --baseline-set. Interrupted runs are resumed. Checkpoints are chosen on validation rows, and the results are
those of the test set: RESULTS.json (numbers, settings, versions) and RESULTS.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.origin import Origin
from synthsieve.evaluation.comparison import compare_paired
from synthsieve.experiments.runner import answers_of
from synthsieve.experiments.workers import Job, default_workers, run_jobs
from synthsieve.io.files import write_json, write_text
from synthsieve.io.progress import for_stream
from synthsieve.io.random_streams import numpy_stream
from synthsieve.io.versions import versions
from synthsieve.training.defaults import settings_for
from synthsieve.training.history import read
from synthsieve.training.run_dir import RunDirectory

ARMS = ("baseline", "joint")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--config")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of both")
    parser.add_argument("--baseline-set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--workers", type=int, default=default_workers())
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    options = parser.parse_args()

    origin = Origin.of(options.source, data_dir=options.data_dir)
    dataset = origin.load(for_stream(options.source))
    overrides = {"joint": options.set, "baseline": [*options.set, *options.baseline_set]}
    jobs = []
    for seed in range(options.seeds):
        for arm in reversed(ARMS):
            given = {"seed": seed, **({} if arm == "joint" else {"training": {"objective": "supervised"}})}
            settings = settings_for(
                options.source, dataset, config=options.config, overrides=overrides[arm], options=given
            )
            jobs.append(Job(f"{arm}, seed {seed}", options.out / f"{arm}-{seed}", settings.pretrained()))
    run_jobs(jobs, origin, workers=options.workers, progress=for_stream("runs"))
    folders = {arm: [options.out / f"{arm}-{seed}" for seed in range(options.seeds)] for arm in ARMS}
    correct = {arm: [answers_of(folder)["test"].right for folder in each] for arm, each in folders.items()}
    report = summarise(correct, shared_items=same_test(folders["joint"]))
    report["runs"] = {job.folder.name: describe(job.folder) for job in jobs}
    report["versions"] = versions()
    report["source"] = options.source
    write_json(options.results.with_suffix(".json"), report)
    text = as_markdown(options.source, report)
    write_text(options.results.with_suffix(".md"), text)
    print(text)


def summarise(correct: dict[str, list[np.ndarray]], *, shared_items: bool) -> dict[str, Any]:
    """Means over seeds, and the paired difference with its 95 % interval over seeds and test examples."""
    paired_comparison = compare_paired(
        correct, baseline="baseline", shared_items=shared_items, rng=numpy_stream(0, "paired_comparison")
    )
    joint = paired_comparison.comparison("joint")
    return {
        "accuracy": {arm.name: list(arm.scores) for arm in paired_comparison.arms},
        "mean": {arm.name: arm.mean for arm in paired_comparison.arms},
        "difference": joint.difference,
        "difference_interval_95": list(joint.interval),
        "verdict": joint.verdict.value,
        "note": paired_comparison.note,
        "test_examples": paired_comparison.num_items[0],
        "shared_test_examples": paired_comparison.shared_items,
    }


def same_test(folders: list[Path]) -> bool:
    """Whether the runs were all measured on the same test examples."""
    first, *others = [RunDirectory.open(folder).split for folder in folders]
    return all(split.test_is_own == first.test_is_own and np.array_equal(split.test, first.test) for split in others)


def describe(folder: Path) -> dict[str, Any]:
    """A run's settings, split and best row, for the results file."""
    run = RunDirectory.open(folder)
    rows = read(folder / "history.jsonl")
    best = rows[-1]
    if "validation_accuracy" in best:
        best = max(rows, key=lambda row: (row["validation_accuracy"], -row["validation_cross_entropy"]))
    labels = {"training": len(run.split.labeled), "choosing": len(run.split.validation)}
    settings = run.settings.model_dump(mode="json")
    return {"settings": settings, "split_hash": run.split.hash, "labels": labels, "best": best}


def as_markdown(source: str, report: dict[str, Any]) -> str:
    low, high = report["difference_interval_95"]
    lines = [f"# {source}: joint model against its supervised baseline", ""]
    labels = next(iter(report["runs"].values()))["labels"]
    lines += [
        f"Test accuracy in %, {report['test_examples']} examples; {labels['training']} labels train and "
        f"{labels['choosing']} further ones choose the checkpoint.",
        "",
    ]
    lines += ["| seed | supervised baseline | joint |", "|---|---|---|"]
    pairs = zip(report["accuracy"]["baseline"], report["accuracy"]["joint"], strict=True)
    lines += [
        f"| {seed} | {100 * supervised_baseline:.1f} | {100 * joint:.1f} |"
        for seed, (supervised_baseline, joint) in enumerate(pairs)
    ]
    mean = report["mean"]
    lines += [f"| mean | {100 * mean['baseline']:.1f} | **{100 * mean['joint']:.1f}** |", ""]
    lines += [
        f"Paired difference {100 * report['difference']:+.1f} points "
        f"(95 % bootstrap over seeds and test examples: {100 * low:+.1f} to {100 * high:+.1f}): "
        f"{report['verdict']}. {report['note']}",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
