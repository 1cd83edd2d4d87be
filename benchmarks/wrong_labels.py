"""How many wrong labels a selection keeps, by which rule, and what a classifier trained on it is worth.

    python benchmarks/wrong_labels.py                        scikit-learn's digits
    python benchmarks/wrong_labels.py --data-dir DATA        also MNIST (DATA/mnist) and SST-2 (DATA/sst2)

Labels are replaced by another class at random; a tenth of the rows is selected. Purity is the share of right labels
among the selected rows. Accuracy is that of a logistic regression with the weights of the selection, on other rows with
right labels. Figures are means over seeds.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from synthsieve import select
from synthsieve.selection.outliers import neighbour_distance
from synthsieve.selection.texts import TfidfEncoder

SHARES = (0.0, 0.1, 0.3)
BUDGET = 0.1
ROWS, TEST_ROWS = 3_500, 1_500


def digits(folder: Path | None) -> tuple[np.ndarray, np.ndarray]:
    x, y = load_digits(return_X_y=True)
    return x / 16.0, y


def mnist(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    def read(name: str, skip: int) -> np.ndarray:
        return np.frombuffer(gzip.decompress((folder / "mnist" / name).read_bytes()), np.uint8, offset=skip)

    images = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 784)[:20_000]
    return PCA(64, random_state=0).fit_transform(images / 255.0), read("train-labels-idx1-ubyte.gz", 8)[:20_000]


def sst2(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    with (folder / "sst2" / "train.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    rows = [row for row in rows if len(row["sentence"]) > 20][:20_000]
    return TfidfEncoder().encode([row["sentence"] for row in rows]), np.array([int(row["label"]) for row in rows])


def loneliness(x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """The rank in its class, in [0, 1), of each row's mean distance to its nearest rows of the class."""
    rank = np.empty(len(x))
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        distance = neighbour_distance(x.__getitem__, rows, split=None, rng=np.random.default_rng(seed))
        rank[rows] = np.argsort(np.argsort(distance)) / len(rows)
    return rank


def ways(x: np.ndarray, y: np.ndarray, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, selected rows and loss weights of each rule."""
    rows = np.random.default_rng(seed).permutation(len(x))[: round(BUDGET * len(x))]
    yield "random rows, weight 1", rows, np.ones(len(rows))
    lonely = loneliness(x, y, seed)
    for name, points in (("gradients", {"features": x}), ("embeddings", {"embeddings": x})):
        given = {**points, "labels": y, "seed": seed, "budget": BUDGET}
        plain = select(**given, require_label=False)
        yield f"{name}", plain.indices, plain.loss_weights
        for cap in (3.0, 1.5):
            chosen = select(**given, max_weight=cap, require_label=False)
            yield f"{name}, `max_weight={cap:g}`", chosen.indices, chosen.loss_weights
        for share in (0.1, 0.3):
            changes = {"outlier_fraction": share, "budget": BUDGET / (1 - share)}  # as many rows as without
            chosen = select(**{**given, **changes}, require_label=False)
            yield f"{name}, `outlier_fraction={share:g}`", chosen.indices, chosen.loss_weights
        more = select(**{**given, "budget": 2 * BUDGET}, require_label=False)
        heavy = np.concatenate(
            [_heaviest(more.weights, y[more.indices] == label, (y == label).sum()) for label in np.unique(y)]
        )
        yield f"{name}, the heavier half of twice as many", more.indices[heavy], more.loss_weights[heavy]
        chosen = select(**given, quality=np.maximum(1.0 - lonely, 0.02), quality_factor=True, require_label=False)
        yield f"{name}, density as quality", chosen.indices, chosen.loss_weights
        if name == "embeddings":
            chosen = select(**given)
            yield f"{name}, confident contradictions rejected", chosen.indices, chosen.loss_weights
        chosen = select(**given, require_label=True)
        yield f"{name}, `require_label`", chosen.indices, chosen.loss_weights


def _heaviest(weights: np.ndarray, of_class: np.ndarray, size: int) -> np.ndarray:
    rows = np.flatnonzero(of_class)
    return rows[np.argsort(-weights[rows], kind="stable")[: round(BUDGET * size)]]


def measure(x: np.ndarray, y: np.ndarray, seeds: int) -> dict[str, np.ndarray]:
    """Of each rule, purity, weighted purity and accuracy for each share of wrong labels: (shares, seeds, 3)."""
    found: dict[str, list[list[tuple[float, float, float]]]] = {}
    classes = int(y.max()) + 1
    for place, share in enumerate(SHARES):
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            order = rng.permutation(len(x))
            test, rows = order[: min(TEST_ROWS, len(x) // 4)], order[min(TEST_ROWS, len(x) // 4) :][:ROWS]
            wrong = rng.random(len(rows)) < share
            given = np.where(wrong, (y[rows] + rng.integers(1, classes, len(rows))) % classes, y[rows])
            for name, chosen, weights in ways(x[rows], given, seed):
                right = given[chosen] == y[rows][chosen]
                model = LogisticRegression(max_iter=300).fit(x[rows][chosen], given[chosen], sample_weight=weights)
                figures = right.mean(), weights @ right / weights.sum(), model.score(x[test], y[test])
                found.setdefault(name, [[] for _ in SHARES])[place].append(figures)
    return {name: np.array(figures) for name, figures in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help="folder with mnist and sst2")
    parser.add_argument("--only", choices=("digits", "MNIST", "SST-2"), help="one data set")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    sources = {"digits": digits} if given.data_dir is None else {"digits": digits, "MNIST": mnist, "SST-2": sst2}
    for name, source in sources.items():
        if given.only not in (None, name):
            continue
        print(f"\n{name}, {given.seeds} seeds: purity (weighted), accuracy\n")
        print("| selection | " + " | ".join(f"{share:.0%} wrong" for share in SHARES) + " |")
        print("|---" * (len(SHARES) + 1) + "|")
        for way, figures in measure(*source(given.data_dir), given.seeds).items():
            cells = (f"{p:.3f} ({w:.3f}), {a:.3f}" for p, w, a in figures.mean(axis=1))
            print(f"| {way} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
