"""The joint model against its supervised-only twin, over seeds, paired, with intervals.

    python benchmarks/accuracy.py digits --seeds 5 --out runs/digits --results docs/results/digits

Each seed has its own split, weights and batches; the twin gets the same split, the same encoder and energy, and the
settings named by --twin-set. Runs are single-threaded, as many at once as there are cores, and resume after a stop.
Checkpoints are chosen on validation, figures are of the test set. Writes RESULTS.json (figures, settings, versions)
and RESULTS.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.evaluation.proof import prove
from synthsieve.experiments.jobs import answers_of, is_finished, store_answers
from synthsieve.files import write_json, write_text
from synthsieve.learning.history import read
from synthsieve.learning.run_folder import RunFolder, versions
from synthsieve.randomness import numpy_stream

ARMS = ("twin", "joint")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--config")
    parser.add_argument("--data-dir")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of both")
    parser.add_argument("--twin-set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    chosen = parser.parse_args()

    jobs = [(arm, seed) for seed in range(chosen.seeds) for arm in reversed(ARMS)]
    with ThreadPoolExecutor(chosen.workers) as workers:
        list(workers.map(lambda job: fit_one(chosen, *job), jobs))
    known = {arm: [correctness(chosen.out / f"{arm}-{seed}") for seed in range(chosen.seeds)] for arm in ARMS}
    shared = same_test([chosen.out / f"joint-{seed}" for seed in range(chosen.seeds)])
    report = summarise(known, shared_items=shared)
    report["runs"] = {f"{arm}-{seed}": describe(chosen.out / f"{arm}-{seed}") for arm, seed in jobs}
    report["versions"] = versions()
    report["source"] = chosen.source
    write_json(chosen.results.with_suffix(".json"), report)
    text = as_markdown(chosen.source, report)
    write_text(chosen.results.with_suffix(".md"), text)
    print(text)


def fit_one(chosen: argparse.Namespace, arm: str, seed: int) -> None:
    """One run, in a process of its own, resumed if it was begun."""
    words = [sys.executable, "-m", "synthsieve", "fit", chosen.source, "-o", str(chosen.out / f"{arm}-{seed}")]
    words += ["--seed", str(seed), "--threads", "1", "--resume", "--quiet", "--json"]
    words += ["--config", chosen.config] if chosen.config else []
    words += ["--data-dir", chosen.data_dir] if chosen.data_dir else []
    words += [word for setting in chosen.set for word in ("--set", setting)]
    if arm == "twin":
        words += ["--supervised", *(word for setting in chosen.twin_set for word in ("--set", setting))]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise SystemExit(f"{arm} with seed {seed} failed: {done.stderr.strip()}")
    print(f"{arm} seed {seed} done", file=sys.stderr, flush=True)


def correctness(folder: Path) -> np.ndarray:
    """Which test examples the run's best model gets right: bool (n,). Kept beside the run, as it never changes."""
    if not is_finished(folder):
        run = RunFolder.open(folder)
        dataset = run.origin.load()
        run.split.check_against(dataset)
        store_answers(run, dataset)
    return answers_of(folder)["test"].right


def summarise(known: dict[str, list[np.ndarray]], *, shared_items: bool) -> dict[str, Any]:
    """Means over seeds, and the paired difference with its 95 % interval over seeds and test examples."""
    proof = prove(known, baseline="twin", shared_items=shared_items, generator=numpy_stream(0, "proof"))
    joint = proof.comparison("joint")
    return {
        "accuracy": {arm.name: list(arm.scores) for arm in proof.arms},
        "mean": {arm.name: arm.mean for arm in proof.arms},
        "difference": joint.difference,
        "difference_interval_95": list(joint.interval),
        "verdict": joint.verdict.value,
        "note": proof.note,
        "test_examples": proof.num_items[0],
        "shared_test_examples": proof.shared_items,
    }


def same_test(folders: list[Path]) -> bool:
    """Whether the runs were all judged by the same test examples."""
    first, *others = [RunFolder.open(folder).split for folder in folders]
    return all(split.test_is_own == first.test_is_own and np.array_equal(split.test, first.test) for split in others)


def describe(folder: Path) -> dict[str, Any]:
    """A run's settings, split and best row, for the results file."""
    run = RunFolder.open(folder)
    rows = read(folder / "history.jsonl")
    best = rows[-1]
    if "validation_accuracy" in best:
        best = max(rows, key=lambda row: (row["validation_accuracy"], -row["validation_cross_entropy"]))
    labels = {"training": len(run.split.labeled), "choosing": len(run.split.validation)}
    settings = run.settings.model_dump(mode="json")
    return {"settings": settings, "split_hash": run.split.hash, "labels": labels, "best": best}


def as_markdown(source: str, report: dict[str, Any]) -> str:
    low, high = report["difference_interval_95"]
    lines = [f"# {source}: joint model against its supervised-only twin", ""]
    labels = next(iter(report["runs"].values()))["labels"]
    lines += [
        f"Test accuracy in %, {report['test_examples']} examples; {labels['training']} labels train and "
        f"{labels['choosing']} further ones choose the checkpoint.",
        "",
    ]
    lines += ["| seed | twin | joint |", "|---|---|---|"]
    pairs = zip(report["accuracy"]["twin"], report["accuracy"]["joint"], strict=True)
    lines += [f"| {seed} | {100 * twin:.1f} | {100 * joint:.1f} |" for seed, (twin, joint) in enumerate(pairs)]
    mean = report["mean"]
    lines += [f"| mean | {100 * mean['twin']:.1f} | **{100 * mean['joint']:.1f}** |", ""]
    lines += [
        f"Paired difference {100 * report['difference']:+.1f} points "
        f"(95 % bootstrap over seeds and test examples: {100 * low:+.1f} to {100 * high:+.1f}): "
        f"{report['verdict']}. {report['note']}",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
