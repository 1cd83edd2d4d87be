"""How far a graph of nearest neighbours gets on its own, beside the model that starts from its labels.

    python benchmarks/graph_labels.py docs/results/digits.json

RESULTS.json is what `benchmarks/accuracy.py` wrote. On the splits of its seeds, test rows take the mean of their five
nearest labelled or unlabelled rows (graph labels), or are classified by scikit-learn's label spreading, whose settings
are chosen on validation rows. Differences of the joint model have a 95 % bootstrap interval over seeds.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading

from synthsieve.data.origin import Origin
from synthsieve.evaluation.predict import part_of
from synthsieve.io.random_streams import numpy_stream
from synthsieve.training.data import TrainingData
from synthsieve.training.defaults import settings_for

NEIGHBORS, ALPHAS = (3, 5, 7, 10, 20), (0.2, 0.5, 0.9, 0.99)
RESAMPLES = 5000


def graph_alone(data: TrainingData, labels: np.ndarray, x: np.ndarray, y: np.ndarray, test_x: np.ndarray) -> np.ndarray:
    """Classes of test x by the neighbours among labelled and unlabelled x."""
    p = np.concatenate([np.eye(len(data.split.classes))[y], labels])
    nearest = NearestNeighbors(n_neighbors=5).fit(x).kneighbors(test_x, return_distance=False)
    return np.asarray(p[nearest].mean(axis=1).argmax(axis=1))


def label_spreading(x: np.ndarray, y: np.ndarray, validation: tuple, test_x: np.ndarray) -> np.ndarray:
    """Classes of test x by the label spreading that is best on validation."""
    partly = np.concatenate([y, np.full(len(x) - len(y), -1)])
    best, predicted = -1.0, np.empty(0)
    for neighbors in NEIGHBORS:
        for alpha in ALPHAS:
            model = LabelSpreading(kernel="knn", n_neighbors=neighbors, alpha=alpha, max_iter=200).fit(x, partly)
            score = model.score(*validation)
            if score > best:
                best, predicted = score, model.predict(test_x)
    return predicted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--data-dir", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", "invalid value", RuntimeWarning)  # rows without a path to a label
    report = json.loads(options.results.read_text(encoding="utf-8"))
    dataset = Origin.of(report["source"], data_dir=options.data_dir).load()
    scores: dict[str, list[float]] = {
        "joint model": report["accuracy"]["joint"],
        "graph labels": [],
        "label spreading": [],
    }
    for seed in range(len(scores["joint model"])):
        overrides = ["training.graph_weight=1"]
        settings = settings_for(report["source"], dataset, overrides=overrides, options={"seed": seed})
        data = TrainingData.prepare(dataset, settings)
        labels, split = data.graph_labels(settings), data.split
        rows = np.concatenate([split.labeled, split.unlabeled])

        def flat(x: np.ndarray, data: TrainingData = data) -> np.ndarray:
            return data.encoding.encode(x).reshape(len(x), -1)

        x, y = flat(dataset.train.x[rows]), dataset.train.y[split.labeled]
        validation_x, validation_y = part_of(dataset, split, "validation")
        test_x, test_y = part_of(dataset, split, "test")
        predicted = graph_alone(data, labels, x, y, flat(test_x))
        scores["graph labels"].append(float((predicted == test_y).mean()))
        predicted = label_spreading(x, y, (flat(validation_x), validation_y), flat(test_x))
        scores["label spreading"].append(float((predicted == test_y).mean()))
    rng = numpy_stream(0, "bootstrap")
    print(f"| {report['source']}, {len(scores['joint model'])} seeds | test accuracy % | joint model - this |")
    print("|---|---|---|")
    for name, each in scores.items():
        difference = np.array(scores["joint model"]) - np.array(each)
        means = rng.choice(difference, (RESAMPLES, len(difference))).mean(axis=1)
        low, high = 100 * np.quantile(means, [0.025, 0.975])
        compared = "" if name == "joint model" else f"{100 * difference.mean():+.1f} ({low:+.1f} to {high:+.1f})"
        print(f"| {name} | {100 * np.mean(each):.1f} | {compared} |")


if __name__ == "__main__":
    main()
