"""Do samples help the model that drew them? Every way to use them, against the best way without them.

    python benchmarks/own_model.py digits --labels 50 --seeds 5 --json docs/results/own-model-digits.json
    python benchmarks/own_model.py adult --data-dir DATA --labels 200 --seeds 5 --json docs/results/own-model-adult.json
    python benchmarks/own_model.py --table docs/results/own-model-*.json

For each seed a model is pretrained, and each variant continues from it with the same compute, `--compute` times that of
pretraining: forward and backward passes of examples through the encoder are counted, and a variant with more examples a
step takes fewer steps; what it costs to draw samples is not counted. Weights are chosen on validation rows, and so is
the baseline, over all seeds: the best of the variants without samples. Differences are those of test rows. Results are
added to the JSON file one run at a time, and the same command continues.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from synthsieve.data.origin import Origin
from synthsieve.evaluation.bootstrap import holm
from synthsieve.evaluation.comparison import compare_paired
from synthsieve.evaluation.predict import part_of
from synthsieve.experiments.arms import BASELINE, POOLED, WITHOUT_SAMPLES, Arm, TableEntry, settings_of
from synthsieve.experiments.runner import answers_on
from synthsieve.io.files import write_json
from synthsieve.io.random_streams import numpy_stream
from synthsieve.settings import DrawFrom, Settings, Targets, settings_from
from synthsieve.training.data import TrainingData
from synthsieve.training.defaults import settings_for
from synthsieve.training.loop import Trained, fit_in_memory

BACKWARD = 2  # forward passes that a backward pass is worth

# Variant -> the arm, and what differs from it.
VARIANTS: dict[str, tuple[Arm, dict[str, Any]]] = {
    **{str(arm): (arm, {}) for arm in WITHOUT_SAMPLES},
    "all synthetic": (Arm.ALL, {}),
    "entropy": (Arm.ENTROPY, {}),
    "all synthetic, soft targets": (Arm.ALL, {"targets": Targets.SOFT}),
    "fresh draws, T = 0.25": (Arm.FRESH, {}),
    "fresh draws, T = 0.25, soft targets": (Arm.FRESH_SOFT, {}),
    "fresh draws, T = 0.25, weight 1": (Arm.FRESH, {"synthetic_loss_weight": 1.0}),
    "anchored, residual": (Arm.ANCHORED, {}),
    "anchored, residual, soft targets": (Arm.ANCHORED, {"targets": Targets.SOFT}),
    "anchored, residual, weight 1": (Arm.ANCHORED, {"synthetic_loss_weight": 1.0}),
    "anchored, x = g(z)": (Arm.ANCHORED, {"residual": False}),
    "reconstructions (control)": (Arm.ANCHORED, {"residual": False, "anchored_steps": 0}),
    "style swaps": (Arm.STYLE_SWAP, {}),
    "style swaps, residual": (Arm.STYLE_SWAP, {"residual": True}),
    "style swaps, soft targets": (Arm.STYLE_SWAP, {"targets": Targets.SOFT}),
    "within-class, residual": (Arm.WITHIN_CLASS, {}),
    "within-class, x = g(z)": (Arm.WITHIN_CLASS, {"residual": False}),
    "born again + all synthetic": (Arm.BORN_AGAIN_ALL, {}),
    "born again + all synthetic, soft targets": (Arm.BORN_AGAIN_ALL, {"targets": Targets.SOFT}),
}
PSEUDO_LABELED = ("anchored, residual", "style swaps", "within-class, residual", "fresh draws, T = 0.25, soft targets")
VARIANTS |= {f"{name} + pseudo-labels": VARIANTS[name] for name in PSEUDO_LABELED}


def passes_per_step(settings: Settings) -> int:
    """Passes of an example through the encoder in one step, a backward pass counted as `BACKWARD` forward ones."""
    training, augmentation = settings.training, settings.augmentation
    there_and_back = 1 + BACKWARD
    elbo = (training.batch_labeled + training.batch_unlabeled) * there_and_back
    labels = (training.batch_labeled + training.batch_unlabeled) * there_and_back
    smooth = training.batch_unlabeled * 2 * there_and_back * bool(training.smoothness_weight)
    extra = 0
    if augmentation.enabled:
        extra += augmentation.batch_synthetic * (there_and_back + (augmentation.targets is Targets.SOFT))
        extra += augmentation.batch_synthetic * (augmentation.draw_from is not DrawFrom.PRIOR)  # q of the labelled x
    if settings.pseudo_labels.enabled:
        extra += settings.pseudo_labels.batch * there_and_back
    return elbo + labels + smooth + extra


def settings_of_variant(name: str, settings: Settings, compute: float) -> Settings:
    """With as many further steps as cost `compute` times what pretraining did."""
    arm, changes = VARIANTS[name]
    of_arm = settings_of(TableEntry(arm, settings.comparison.pool_sizes[0] if arm in POOLED else 0), settings)
    if arm is Arm.PRETRAINED:
        return of_arm
    of_arm = of_arm.changed("augmentation", **changes)
    if name.endswith("+ pseudo-labels"):
        of_arm = of_arm.changed("pseudo_labels", enabled=True)
    budget = compute * settings.training.steps * passes_per_step(settings_of(BASELINE, settings))
    of_arm = of_arm.changed("augmentation", steps=round(budget / passes_per_step(of_arm)))
    return settings_from(of_arm.model_dump())  # changes were not checked


def measure(trained: Trained, started: float) -> dict[str, Any]:
    """Accuracy on validation and which test rows are right, for JSON."""
    data, model, found = trained.data, trained.best_model(), {}
    for part in ("validation", "test"):
        x, y = part_of(data.dataset, data.split, part)
        found[part] = answers_on(model, data, getattr(data.split, part), x, y).right
    figures = trained.recorder.extra_data.figures if trained.recorder.extra_data is not None else {}
    known = ("requested_class_at_x", "pseudo_label_purity")
    return {
        "steps": trained.result.steps,
        "validation": [int(found["validation"].sum()), len(found["validation"])],
        "right": np.packbits(found["test"]).tobytes().hex(),
        "test_rows": len(found["test"]),
        "figures": {name: figures[name] for name in known if figures.get(name) is not None},
        "seconds": round(time.monotonic() - started, 1),
    }


def run(
    settings: Settings, origin: Origin, path: Path, *, seeds: range, compute: float, only: list[str] | None
) -> None:
    """Measure each variant of each seed that the file does not have yet."""
    dataset = origin.load()
    stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    stored = stored or {
        "source": origin.source,
        "settings": settings.model_dump(mode="json"),
        "compute": compute,
        "shared_test_rows": dataset.test is not None,
        "runs": {},
    }
    for seed in seeds:
        of_seed = settings.model_copy(update={"seed": seed})
        runs = stored["runs"].setdefault(str(seed), {})
        two_towers = bool(settings.model.label_latent_dim)
        unfit = Arm.WITHIN_CLASS if two_towers else Arm.STYLE_SWAP
        missing = [name for name, (arm, _) in VARIANTS.items() if name not in runs and arm is not unfit]
        missing = [name for name in missing if only is None or name in only]
        if not missing:
            continue
        data, started = TrainingData.prepare(dataset, of_seed), time.monotonic()
        base = fit_in_memory(data, of_seed.pretrained())
        for name in missing:
            trained = base
            if VARIANTS[name][0] is not Arm.PRETRAINED:
                started = time.monotonic()
                trained = fit_in_memory(data, settings_of_variant(name, of_seed, stored["compute"]), base=base)
            runs[name] = measure(trained, started)
            write_json(path, stored)
            right, rows = runs[name]["validation"]
            print(f"seed {seed}, {name}: validation {100 * right / rows:.1f}, {runs[name]['seconds']} s", flush=True)


def _unpacked(text: str, rows: int) -> np.ndarray:
    """Which test rows are right: bool (rows,)."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(text), np.uint8), count=rows) > 0


def table_of(path: Path) -> str:
    """The variants in Markdown: accuracy on validation and test, difference from the best one without samples."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    complete = [name for name in VARIANTS if all(name in runs for runs in stored["runs"].values())]
    by_seed = {name: [runs[name] for runs in stored["runs"].values()] for name in complete}
    validation = {name: np.mean([a / b for a, b in (r["validation"] for r in runs)]) for name, runs in by_seed.items()}
    answers = {name: [_unpacked(one["right"], one["test_rows"]) for one in runs] for name, runs in by_seed.items()}
    best = max(map(str, WITHOUT_SAMPLES), key=lambda name: validation[name])
    shared = stored["shared_test_rows"]
    compared = compare_paired(answers, baseline=best, shared_items=shared, rng=numpy_stream(0, "own model"))
    settings, seeds = stored["settings"], len(stored["runs"])
    lines = [
        f"{stored['source']}, {settings['data']['labels']} labels, {seeds} seeds, {compared.num_items[0]:,} test rows "
        f"each; {settings['training']['steps']:,} steps of pretraining, and {stored['compute']:g} times its compute "
        f"for each variant. Baseline, chosen on validation: **{best}**.",
        "",
        "| variant | steps | validation | test | difference | 95 % interval | verdict | Holm's p |",
        "|---|---|---|---|---|---|---|---|",
    ]
    with_samples = [one for one in compared.comparisons if one.arm not in WITHOUT_SAMPLES]
    p_values = dict(zip((one.arm for one in with_samples), holm([one.p_value for one in with_samples]), strict=True))
    for name, test, difference, interval, verdict in compared.rows():
        steps = by_seed[name][0]["steps"] - settings["training"]["steps"]
        p_value = f"{p_values[name]:.2f}" if name in p_values else ""
        cells = (name, f"{steps:,}", f"{100 * validation[name]:.2f}", test, difference, interval, verdict, p_value)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", compared.note, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?", help="digits, adult, ...")
    parser.add_argument("--labels", type=int)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--compute", type=float, default=1.0, help="of each variant, as a share of pretraining's")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--preset")
    parser.add_argument("--set", action="append", default=[], help="a setting, such as model.label_latent_dim=4")
    parser.add_argument("--only", action="append", help="a variant; all by default")
    parser.add_argument("--json", type=Path, help="where results are kept")
    parser.add_argument("--table", nargs="+", type=Path, default=[], help="print the tables of such files")
    given = parser.parse_args()
    if given.source is not None:
        torch.set_num_threads(1)
        origin = Origin.of(given.source, data_dir=given.data_dir)
        labels = [] if given.labels is None else [f"data.labels={given.labels}"]
        settings = settings_for(given.source, config=given.preset, overrides=[*labels, *given.set])
        run(settings, origin, given.json, seeds=range(given.seeds), compute=given.compute, only=given.only)
    for path in [*given.table, *([given.json] if given.source else [])]:
        print(table_of(path))


if __name__ == "__main__":
    main()
