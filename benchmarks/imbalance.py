"""Whether drawn samples of a rare class help other classifiers more than class weights, oversampling and SMOTE.

    python benchmarks/imbalance.py digits adult [--data-dir DIR] [--seeds 5] [--json OUT.json] [--markdown OUT.md]

Of each data set three classes are made rare in turn: 10 labelled rows of the class and 200 of the others, and
unlabelled, validation and test rows in the same proportion. Our model is trained on the labelled and unlabelled rows
and draws samples: 190 of the rare class, or 3,000 of each class. Of these, those are kept whose class the model
confirms, or all have both classes, weighted by the model's probabilities (soft labels). Each way to treat the imbalance
trains the same scikit-learn models; the threshold of each is chosen on the validation rows by balanced accuracy.
Average precision needs no threshold. Test rows of the rare class are as many as there are, and weighted to one in 21.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import OneHotEncoder

from synthsieve import LatentEBMClassifier
from synthsieve.data.registry import load
from synthsieve.data.sources.adult import LABEL, read_adult
from synthsieve.evaluation.common_models import common_model
from synthsieve.io.random_streams import derive_seed, numpy_stream

RATIO = 20
POSITIVES = 10  # labelled rows of the rare class
MODELS = ("logistic regression", "random forest", "gradient boosting")
RARE, CONFIRMED, SOFT = "drawn rare samples", "drawn samples, class confirmed", "drawn samples, soft labels"
OURS = "our model"
DRAWN = (RARE, CONFIRMED, SOFT)
SAMPLES = 3000  # of each class, where both are drawn
METRICS = ("balanced_accuracy", "average_precision")
SMOTE_NEIGHBOURS = 5
MAX_TEST_POSITIVES = 2000


@dataclass(frozen=True)
class Task:
    """Rows with y = 1 for the rare class: 210 labelled, more unlabelled, and validation and test rows."""

    name: str
    labeled: tuple[Any, np.ndarray]
    unlabeled: tuple[Any, np.ndarray]
    validation: tuple[Any, np.ndarray]
    test: tuple[Any, np.ndarray]


def make_task(name: str, x: Any, rare: np.ndarray, seed: int, *, limits: tuple[int, int, int]) -> Task:
    """Rows drawn at random; `limits` are the most unlabelled, validation and test rows of the frequent class."""
    rng = numpy_stream(seed, f"imbalance/{name}")
    frequent, few = (rng.permutation(np.flatnonzero(rare == kind)) for kind in (False, True))
    rest = len(frequent) - RATIO * POSITIVES
    wanted = [min(limit, int(share * rest)) for limit, share in zip(limits, (0.4, 0.2, 0.4), strict=True)]
    counts = [(RATIO * POSITIVES, POSITIVES), *((count, count // RATIO) for count in wanted)]
    counts[-1] = (wanted[-1], min(MAX_TEST_POSITIVES, len(few) - sum(few for _, few in counts[:-1])))
    parts, at = [], [0, 0]
    for of_frequent, of_few in counts:
        rows = np.concatenate([frequent[at[0] : at[0] + of_frequent], few[at[1] : at[1] + of_few]])
        at = [at[0] + of_frequent, at[1] + of_few]
        parts.append((take(x, rows), rare[rows].astype(np.int64)))
    assert all(y.sum() >= POSITIVES for _, y in parts), [int(y.sum()) for _, y in parts]
    return Task(name, *parts)


def take(x: Any, rows: np.ndarray) -> Any:
    return x.iloc[rows].reset_index(drop=True) if isinstance(x, pd.DataFrame) else x[rows]


def stack(*parts: Any) -> Any:
    if isinstance(parts[0], pd.DataFrame):
        return pd.concat([part[parts[0].columns] for part in parts], ignore_index=True)
    return np.concatenate(parts)


def tasks(source: str, data_dir: Path | None, seed: int) -> Iterator[Task]:
    """Three rare classes of a data set."""
    if source == "digits":
        digits = load_digits()
        for label in (1, 5, 8):
            yield make_task(f"digit {label}", digits.images, digits.target == label, seed, limits=(800, 400, 800))
    elif source == "mnist":
        train = load("mnist", data_dir=data_dir / "mnist" if data_dir else None).train
        for label in (1, 5, 8):
            yield make_task(f"digit {label}", train.x, train.y == label, seed, limits=(8000, 2000, 8000))
    elif source == "adult":
        assert data_dir is not None, "adult needs --data-dir"
        frame = read_adult(data_dir / "adult" / "adult.data").to_pandas()
        targets = {">50K": (LABEL, ">50K"), "<=50K": (LABEL, "<=50K"), "Female": ("sex", "Female")}
        for name, (column, value) in targets.items():
            rare = frame[column].to_numpy() == value
            hidden = [column, "relationship"] if column == "sex" else [column]  # husbands are men
            yield make_task(name, frame.drop(columns=hidden), rare, seed, limits=(6000, 2000, 8000))
    else:
        raise SystemExit(f"no such data set: {source}")


def smote(x: Any, y: np.ndarray, count: int, *, rng: np.random.Generator) -> Any:
    """`count` new rows of class 1 (Chawla 2002): between a row and one of its neighbours of the class.

    Cells of text take the most frequent value of the neighbours (SMOTE-NC); distances use standardized numbers and
    one-hot cells.
    """
    few = take(x, np.flatnonzero(y == 1))
    frame = few if isinstance(few, pd.DataFrame) else pd.DataFrame(np.asarray(few, dtype=float).reshape(len(few), -1))
    numbers = frame.select_dtypes("number")
    words = frame.drop(columns=numbers.columns)
    values = numbers.to_numpy(dtype=float)
    values = np.where(np.isnan(values), np.nanmedian(values, axis=0), values)
    space = (values - values.mean(axis=0)) / np.where(values.std(axis=0) > 0, values.std(axis=0), 1)
    if words.shape[1]:
        space = np.hstack([space, OneHotEncoder(sparse_output=False).fit_transform(words.astype(str))])
    k = min(SMOTE_NEIGHBOURS, len(frame) - 1)
    near = NearestNeighbors(n_neighbors=k + 1).fit(space).kneighbors(space, return_distance=False)[:, 1:]
    start, other = rng.integers(len(frame), size=count), rng.integers(k, size=count)
    share = rng.random((count, 1))
    made = pd.DataFrame(values[start] + share * (values[near[start, other]] - values[start]), columns=numbers.columns)
    for column in words:
        cells = words[column].to_numpy()[near[start]]
        made[column] = [pd.Series(row).mode(dropna=False).iloc[0] for row in cells]
    if isinstance(x, pd.DataFrame):
        return made[x.columns]
    return made.to_numpy().reshape(count, *x.shape[1:])


Rows = tuple[Any, np.ndarray, np.ndarray | None]  # x, y and weights, where rows have any


def balanced(y: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Weights with the same sum for each class, and mean 1."""
    weights = np.ones(len(y)) if weights is None else weights
    totals = np.bincount(y, weights, minlength=2)
    return weights * (len(y) / 2 / totals)[y]


def ways(task: Task, model: LatentEBMClassifier, seed: int) -> dict[str, Callable[[], Rows]]:
    """Training rows by the name of the way."""
    x, y = task.labeled
    missing = int((y == 0).sum() - (y == 1).sum())
    more = np.concatenate([y, np.ones(missing, dtype=y.dtype)])

    def drawn(label: int, count: int) -> Any:
        stream = derive_seed(seed, f"samples/{label}") % 2**31
        return model.sample(count, classes=[label], random_state=stream)[0]

    def confirmed() -> Rows:
        rows, labels = [x], [y]
        for label in (0, 1):
            samples = drawn(label, SAMPLES)
            rows.append(take(samples, np.flatnonzero(model.predict(samples) == label)))
            labels.append(np.full(len(rows[-1]), label, dtype=y.dtype))
        together = np.concatenate(labels)
        return stack(*rows), together, balanced(together)

    def soft(added: Any) -> Rows:
        """The labelled rows, and `added` rows with soft labels."""
        given = model.soft_label(added)
        labels = np.concatenate([y, given.y])
        weights = np.concatenate([np.ones(len(y)), given.weight])
        return stack(x, take(added, given.rows)), labels, balanced(labels, weights)

    def oversampled() -> Any:
        return take(x, numpy_stream(seed, "oversampling").choice(np.flatnonzero(y == 1), missing))

    def self_labeled() -> Rows:
        labels = np.concatenate([y, model.predict(task.unlabeled[0])])
        return stack(x, task.unlabeled[0]), labels, balanced(labels)

    return {
        "labels only": lambda: (x, y, None),
        "class weights": lambda: (x, y, balanced(y)),
        "random oversampling": lambda: (stack(x, oversampled()), more, None),
        "SMOTE": lambda: (stack(x, smote(x, y, missing, rng=numpy_stream(seed, "smote"))), more, None),
        RARE: lambda: (stack(x, drawn(1, missing)), more, None),
        CONFIRMED: confirmed,
        SOFT: lambda: soft(stack(drawn(0, SAMPLES), drawn(1, SAMPLES))),
        "unlabelled rows, our labels": self_labeled,
        "unlabelled rows, soft labels": lambda: soft(task.unlabeled[0]),
    }


def best_threshold(y: np.ndarray, score: np.ndarray) -> float:
    """The threshold of highest balanced accuracy, between two scores."""
    order = np.argsort(score)
    sorted_y, sorted_score = y[order], score[order]
    above = 1 - np.concatenate([[0.0], np.cumsum(sorted_y) / sorted_y.sum()])
    below = np.concatenate([[0.0], np.cumsum(1 - sorted_y) / (1 - sorted_y).sum()])
    ends = np.concatenate([[-np.inf], sorted_score, [np.inf]])
    distinct = np.flatnonzero(ends[1:] > ends[:-1])
    cut = distinct[(above + below)[distinct].argmax()]
    return float(np.mean([max(ends[cut], -1.0), min(ends[cut + 1], 2.0)]))


def figures(task: Task, validation: np.ndarray, test: np.ndarray) -> dict[str, float]:
    """Balanced accuracy at the threshold of validation, and average precision at one in 21."""
    y = task.test[1]
    called = test >= best_threshold(task.validation[1], validation)
    balanced = (called[y == 1].mean() + (~called[y == 0]).mean()) / 2
    weights = np.where(y == 1, (y == 0).sum() / RATIO / y.sum(), 1.0)
    return {
        "balanced_accuracy": float(balanced),
        "average_precision": float(average_precision_score(y, test, sample_weight=weights)),
    }


def measure(task: Task, seed: int, max_iter: int | None) -> dict[str, Any]:
    """All figures of one task, by way and model."""
    x, y = task.labeled
    model = LatentEBMClassifier(random_state=seed, max_iter=max_iter).fit(x, y, unlabeled_X=task.unlabeled[0])
    found: dict[str, Any] = {}
    for name, make in ways(task, model, seed).items():
        train_x, train_y, weights = make()
        found[name] = {}
        for student in MODELS:
            pipeline = common_model(student, train_x)
            last = pipeline.steps[-1][0]
            given = {} if weights is None else {f"{last}__sample_weight": weights}
            pipeline.set_params(**{f"{last}__random_state": seed}).fit(train_x, train_y, **given)
            found[name][student] = figures(
                task, *(pipeline.predict_proba(part[0])[:, 1] for part in (task.validation, task.test))
            )
    ours = [model.predict_proba(part[0])[:, 1] for part in (task.validation, task.test)]
    called, truth = model.predict(task.test[0]), task.test[1]
    argmax = (called[truth == 1].mean() + 1 - called[truth == 0].mean()) / 2
    found[OURS] = {"itself": {**figures(task, *ours), "argmax_balanced_accuracy": float(argmax)}}
    agreeing = model.predict(model.sample(200, classes=[1], random_state=seed)[0]).mean()
    return {"found": found, "agreeing": float(agreeing)}


Unit = dict[str, Any]  # source, task, seed, and figures by way and model


def mean_of(unit: Unit, way: str, metric: str) -> float:
    """A figure of one unit, averaged over models."""
    return float(np.mean([one[metric] for one in unit["found"][way].values()]))


def difference(units: list[Unit], way: str, other: str, metric: str) -> str:
    """In points, paired by class and seed, with a 95 % interval of Student's t."""
    gaps = 100 * np.array([mean_of(unit, way, metric) - mean_of(unit, other, metric) for unit in units])
    if len(gaps) < 2:
        return f"{gaps.mean():+.1f}"
    low, high = stats.t.interval(0.95, len(gaps) - 1, gaps.mean(), max(stats.sem(gaps), 1e-12))
    return f"{gaps.mean():+.1f} ({low:+.1f} to {high:+.1f})"


def markdown(units: list[Unit]) -> str:
    lines = []
    for source in dict.fromkeys(unit["source"] for unit in units):
        own = [unit for unit in units if unit["source"] == source]
        classes, seeds = (list(dict.fromkeys(unit[name] for unit in own)) for name in ("task", "seed"))
        lines += [f"## {source}: {', '.join(classes)}, {len(seeds)} seeds each", ""]
        lines += ["| | balanced accuracy | average precision |", "|---|---|---|"]
        for way in own[0]["found"]:
            means = [f"{100 * np.mean([mean_of(unit, way, metric) for unit in own]):.1f}" for metric in METRICS]
            lines.append(f"| {way} | {' | '.join(means)} |")
        lines += ["", "Differences of drawn samples, balanced accuracy and average precision:", ""]
        lines += [f"| against | {' | '.join(f'{way}, {name}' for way in DRAWN for name in ('BA', 'AP'))} |"]
        lines += ["|" + "---|" * (1 + 2 * len(DRAWN))]
        for other in (name for name in own[0]["found"] if name not in DRAWN):
            gaps = [difference(own, way, other, metric) for way in DRAWN for metric in METRICS]
            lines.append(f"| {other} | {' | '.join(gaps)} |")
        argmax = np.mean([unit["found"][OURS]["itself"]["argmax_balanced_accuracy"] for unit in own])
        agree = np.mean([unit["agreeing"] for unit in own])
        lines += ["", f"Our model without a chosen threshold has a balanced accuracy of {100 * argmax:.1f}; it gives"]
        lines += [f"{100 * agree:.1f} % of the drawn samples the rare class.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", choices=("digits", "adult", "mnist"))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(5)))
    parser.add_argument("--max-iter", type=int, help="steps of our model; by default those of the preset")
    parser.add_argument("--json", type=Path, help="figures of every class and seed; those in it are not measured again")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", message=".*unknown category")
    units: list[Unit] = []
    if options.json and options.json.is_file():
        units = json.loads(options.json.read_text(encoding="utf-8"))
    done = {(unit["source"], unit["task"], unit["seed"]) for unit in units}
    for source in options.sources:
        for seed in options.seeds:
            for task in tasks(source, options.data_dir, seed):
                if (source, task.name, seed) in done:
                    continue
                units.append(
                    {"source": source, "task": task.name, "seed": seed, **measure(task, seed, options.max_iter)}
                )
                shown = {way: round(100 * mean_of(units[-1], way, METRICS[0]), 1) for way in units[-1]["found"]}
                print(source, task.name, seed, shown, flush=True)
                if options.json:
                    options.json.write_text(json.dumps(units), encoding="utf-8")
    table = markdown([unit for unit in units if unit["source"] in options.sources])
    print(table)
    if options.markdown:
        options.markdown.write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
