"""What each part of the objective adds: the preset without it, over seeds, paired, with intervals.

    python benchmarks/ablation.py digits --seeds 5 --out runs/ablation --results docs/results/ablation-digits

Every row has the same splits, initial weights, batches and number of steps as the preset; a term that is switched off
gets weight zero. `--steps` shortens all of them, with their ramps and schedules. Checkpoints are chosen on validation
rows, and the results are those of the test set. The generator steps after pretraining, which change no prediction, are
left out. Interrupted runs are resumed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from accuracy import describe, same_test

from synthsieve.data.origin import Origin
from synthsieve.evaluation.comparison import ComparisonResult, compare_paired
from synthsieve.experiments.runner import answers_of
from synthsieve.experiments.workers import Job, default_workers, run_jobs
from synthsieve.io.files import write_json, write_text
from synthsieve.io.progress import for_stream
from synthsieve.io.random_streams import numpy_stream
from synthsieve.io.versions import versions
from synthsieve.training.defaults import settings_for

PRESET = "everything (the preset)"
NO_FINISH = "training.generator_ratio=0"
NO_GENERATOR, NO_INFORMATION = "training.elbo_weight=0", "training.mutual_information_weight=0"
NO_GRAPH = "training.graph_weight=0"
NO_SMOOTHNESS = ("training.smoothness_weight=0", "training.latent_smoothness_weight=0")
ALONG = ("training.latent_smoothness_weight=1", "training.latent_smoothness_latents=all")
# A row whose settings are those of an earlier one, because the preset has no such term, is left out.
ROWS = {
    PRESET: (),
    "labels only": ("training.objective=supervised",),
    "labels, smoothness in x": (NO_GENERATOR, NO_INFORMATION, NO_GRAPH),
    "labels, smoothness in x, mutual information": (NO_GENERATOR, NO_GRAPH),
    "labels, smoothness in x, mutual information, graph labels": (NO_GENERATOR,),
    "labels, smoothness in x, ELBO and energy": (NO_INFORMATION, NO_GRAPH),
    "everything but graph labels": (NO_GRAPH,),
    "everything but smoothness": NO_SMOOTHNESS,
    "everything, and smoothness along the generator": ALONG,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, help="training steps of every row (default: those of the preset)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of all rows")
    parser.add_argument("--workers", type=int, default=default_workers())
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    options = parser.parse_args()

    origin = Origin.of(options.source, data_dir=options.data_dir)
    dataset = origin.load(for_stream(options.source))
    jobs, folders, seen = [], {}, []
    for number, (row, overrides) in enumerate(ROWS.items()):
        settings = settings_for(options.source, dataset, overrides=[*options.set, NO_FINISH, *overrides]).pretrained()
        if options.steps is not None:
            settings = settings.over(options.steps)
        if settings in seen:
            continue
        seen.append(settings)
        folders[row] = [options.out / f"{number}-{seed}" for seed in range(options.seeds)]
        jobs += [
            Job(f"{row}, seed {seed}", folder, settings.model_copy(update={"seed": seed}))
            for seed, folder in enumerate(folders[row])
        ]
    run_jobs(jobs, origin, workers=options.workers, progress=for_stream("runs"))
    correct = {row: [answers_of(folder)["test"].right for folder in each] for row, each in folders.items()}
    found = compare_paired(
        correct, baseline=PRESET, shared_items=same_test(folders[PRESET]), rng=numpy_stream(0, "paired_comparison")
    )
    runs = {row: [describe(folder) for folder in each] for row, each in folders.items()}
    report = {"source": options.source, "versions": versions(), "comparison": found.as_dict(), "runs": runs}
    write_json(options.results.with_suffix(".json"), report)
    validation = {row: np.mean([run["best"]["validation_accuracy"] for run in each]) for row, each in runs.items()}
    text = as_markdown(options.source, found, validation)
    write_text(options.results.with_suffix(".md"), text)
    print(text)


def as_markdown(source: str, found: ComparisonResult, validation: dict[str, float]) -> str:
    """A table of mean accuracies, and of differences to the preset."""
    seeds = len(found.arms[0].scores)
    lines = [
        f"# {source}: what each term adds",
        "",
        f"Accuracy in %, mean of {seeds} seeds, {found.num_items[0]:,} test rows each; difference to the preset on test"
        " rows, with a 95 % bootstrap interval over seeds and rows.",
        "",
        "| objective | validation | test | difference | interval |",
        "|---|---|---|---|---|",
    ]
    for arm in found.arms:
        compared = "| |"
        if arm.name != PRESET:
            one = found.comparison(arm.name)
            low, high = (100 * end for end in one.interval)
            compared = f"{100 * one.difference:+.1f} | {low:+.1f} to {high:+.1f} |"
        lines.append(f"| {arm.name} | {100 * validation[arm.name]:.1f} | {100 * arm.mean:.1f} | {compared}")
    return "\n".join([*lines, "", found.note, ""])


if __name__ == "__main__":
    main()
