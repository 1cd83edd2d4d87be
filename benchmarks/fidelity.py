"""Are samples what was asked for, and are they like the data? Measured by a classifier of all labels.

    python benchmarks/fidelity.py svhn RUN [RUN ...] --oracle WORK [--picture OUT.png] [--json OUT.json]

RUN are folders that `synthsieve fit` wrote. The oracle classifier is trained once on all labels of the training rows
and kept in WORK. For samples at temperature 1, unfiltered and filtered by the model's own class, and for the images
that the generator makes of encoded test rows, it prints the share to which the oracle gives the class, and in the
oracle's features the Fréchet distance to real rows, precision, recall, density, coverage and copies. Test rows
themselves are the control: what real images of the same number reach.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from synthsieve.data.origin import Origin
from synthsieve.evaluation.fidelity import frechet_distance, manifold
from synthsieve.evaluation.memorization import memorization
from synthsieve.evaluation.metrics import wilson_interval
from synthsieve.evaluation.predict import draw_and_score, latents, latents_and_logits, part_of
from synthsieve.experiments.arms import oracle_settings
from synthsieve.experiments.workers import Job, run_jobs
from synthsieve.io.progress import for_stream
from synthsieve.io.random_streams import numpy_stream
from synthsieve.models.chains import DrawSettings
from synthsieve.models.generate import chain_seeds, decode
from synthsieve.training.defaults import settings_for
from synthsieve.training.reference_file import attach_or_fit
from synthsieve.training.run_dir import RunDirectory

IN_PICTURE = 20  # samples of each class
TRAIN_ROWS = 20_000  # among which copies are searched
REAL, REBUILT, SAMPLES, FILTERED = "test rows", "test rows, encoded and decoded", "samples", "samples, class confirmed"


class OracleClassifier:
    """A run's classes and features of x as stored."""

    def __init__(self, folder: Path) -> None:
        self.run = RunDirectory.open(folder)
        self.model = self.run.load_model()

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        features, logits = latents_and_logits(self.model, self.run.encoding, x)
        return features, logits.argmax(axis=1)


def train_oracle(source: str, data_dir: Path | None, folder: Path, overrides: list[str]) -> OracleClassifier:
    """The label tower's network, trained on all labels unless `folder` has it."""
    origin = Origin.of(source, data_dir=data_dir)
    settings = oracle_settings(settings_for(source, origin.load(for_stream(source)), overrides=overrides))
    run_jobs([Job("oracle", folder, settings)], origin, workers=1, progress=for_stream("oracle"))
    return OracleClassifier(folder)


def measure(path: Path, oracle: OracleClassifier, per_class: int, picture: Path | None) -> dict[str, Any]:
    """Figures of one run, by the kind of image."""
    run = RunDirectory.open(path)
    model, dataset, seed = run.load_model(), run.origin.load(), run.settings.seed
    attach_or_fit(run, model, dataset)
    rng = numpy_stream(seed, "fidelity")
    test_x, test_y = part_of(dataset, run.split, "test")
    count = per_class * model.num_classes
    chosen = rng.choice(len(test_y), min(2 * count, len(test_y)), replace=False)
    test_x, test_y = test_x[chosen], test_y[chosen]
    real = oracle(test_x[count:])[0]  # what all others are compared with
    rows = np.concatenate([run.split.labeled, run.split.unlabeled])
    train = oracle(dataset.train.x[rng.choice(rows, min(TRAIN_ROWS, len(rows)), replace=False)])[0]
    y = np.arange(model.num_classes).repeat(2 * per_class)
    sampling = run.settings.sampling
    chains = DrawSettings(sampling.num_steps, sampling.step_size, 1.0, sampling.draw)
    drawn = draw_and_score(model, run.encoding, y, chain_seeds(seed, y), chains=chains, keep_x=True)
    confirmed = drawn["logits_x"].argmax(axis=1) == y
    first = np.tile(np.arange(2 * per_class) < per_class, model.num_classes)
    filtered = np.concatenate([np.flatnonzero((y == c) & confirmed)[:per_class] for c in range(model.num_classes)])
    z = latents(model, run.encoding, test_x[:count]).astype(np.float32)
    images = {
        REAL: (test_x[:count], test_y[:count]),
        REBUILT: (decode(model, run.encoding, z, chain_seeds(seed, test_y[:count])), test_y[:count]),
        SAMPLES: (drawn["x"][first], y[first]),
        FILTERED: (drawn["x"][filtered], y[filtered]),
    }
    if picture is not None:
        sheet(picture, drawn["x"], y)
    return {name: figures(oracle, x, y, real, train) for name, (x, y) in images.items()} | {
        "run": path.name,
        "confirmed": float(confirmed.mean()),
    }


def figures(oracle: OracleClassifier, x: np.ndarray, y: np.ndarray, real: np.ndarray, train: np.ndarray) -> Any:
    features, predicted = oracle(x)
    agreed = predicted == y
    overlap = manifold(real, features)
    copies = memorization(features, train, real)
    return {
        "images": len(y),
        "agreement": float(agreed.mean()),
        "interval": list(wilson_interval(float(agreed.mean()), len(y))),
        "by_class": [float(agreed[y == c].mean()) for c in np.unique(y)],
        "frechet_distance": frechet_distance(real, features),
        **{name: getattr(overlap, name) for name in ("precision", "recall", "density", "coverage")},
        "near_share": copies.near_share,
        "expected_share": copies.expected_share,
    }


def sheet(path: Path, x: np.ndarray, y: np.ndarray) -> None:
    """The first samples of each class, a class in a row."""
    rows = [np.concatenate(list(x[y == c][:IN_PICTURE]), axis=-1) for c in np.unique(y)]
    pixels = np.concatenate(rows, axis=-2).transpose(1, 2, 0)
    image = Image.fromarray(pixels.squeeze())
    image.resize((2 * image.width, 2 * image.height), Image.Resampling.BICUBIC).save(path, optimize=True)


def markdown(runs: list[dict[str, Any]]) -> str:
    names = ("frechet_distance", "precision", "recall", "density", "coverage", "near_share", "expected_share")
    titles = "Fréchet distance | precision | recall | density | coverage | near a training row % | expected %"
    lines = [f"| run | images | oracle agrees % | worst class % | {titles} |", "|" + "---|" * 11]
    for run in runs:
        for kind in (REAL, REBUILT, SAMPLES, FILTERED):
            found = run[kind]
            scaled = [100 * found[name] if name.endswith("share") else found[name] for name in names]
            agreement = f"{100 * found['agreement']:.1f} | {100 * min(found['by_class']):.1f}"
            cells = " | ".join(f"{value:.1f}" if value >= 10 else f"{value:.2f}" for value in scaled)
            lines.append(f"| {run['run']} | {kind} | {agreement} | {cells} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--oracle", type=Path, required=True)
    parser.add_argument("--oracle-set", action="append", default=["training.batch_labeled=128"], metavar="NAME=VALUE")
    parser.add_argument("--per-class", type=int, default=200)
    parser.add_argument("--picture", type=Path, help="samples of the first run")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    oracle = train_oracle(options.source, options.data_dir, options.oracle, options.oracle_set)
    runs = [
        measure(path, oracle, options.per_class, options.picture if number == 0 else None)
        for number, path in enumerate(options.runs)
    ]
    if options.json:
        options.json.write_text(json.dumps(runs, indent=1), encoding="utf-8")
    print(markdown(runs))


if __name__ == "__main__":
    main()
