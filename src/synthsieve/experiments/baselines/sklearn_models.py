"""scikit-learn baselines, each with a grid of hyperparameters; `run` uses the small grids of `CLASSICAL`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.experiments.baselines.features import (
    COMPONENTS,
    MAX_CATEGORIES,
    TEXT_COMPONENTS,
    numbers_and_categories,
)
from synthsieve.experiments.baselines.search import GridMethod, GridPoint

MAJORITY = "majority class"
MAX_UNLABELED = 10_000  # rows for label spreading and self-training; more take minutes per fit
WIDE = 2_000  # with more features, principal components are used


def logistic_regression(strengths: tuple[float, ...]) -> GridMethod:
    """On the labels only."""

    def grid(dataset: Dataset) -> list[GridPoint]:
        return [GridPoint(f"C={C:g}", _plain(dataset), _logistic(C)) for C in strengths]

    return GridMethod("logistic regression", grid, False, f"labels only; C in {_listed(strengths)}")


def majority() -> GridMethod:
    """Always the most frequent class of the labels."""

    def grid(dataset: Dataset) -> list[GridPoint]:
        return [GridPoint("most frequent class", _plain(dataset), _unseeded(DummyClassifier, strategy="prior"))]

    return GridMethod(MAJORITY, grid, False, "the most frequent class of the labels")


def random_forest(leaves: tuple[int, ...]) -> GridMethod:
    """On the labels only."""

    def grid(dataset: Dataset) -> list[GridPoint]:
        view = "reduced" if dataset.kind in (Kind.TEXT, Kind.SOUND) else _plain(dataset)
        forest = partial(_seeded, RandomForestClassifier, n_estimators=200)
        return [GridPoint(f"min_samples_leaf={n}", view, forest(min_samples_leaf=n)) for n in leaves]

    return GridMethod("random forest", grid, False, f"200 trees, labels only; min_samples_leaf in {_listed(leaves)}")


def gradient_boosting(leaves: tuple[int, ...], rounds: tuple[int, ...], *, pixels: bool = False) -> GridMethod:
    """On the labels only; with `pixels` also on the pixels of images."""

    def grid(dataset: Dataset) -> list[GridPoint]:
        reduced = dataset.kind in (Kind.IMAGE, Kind.TEXT, Kind.SOUND)
        views = ["codes" if dataset.kind == Kind.TABLE else "reduced" if reduced else _plain(dataset)]
        if pixels and dataset.kind == Kind.IMAGE:
            views = ["plain", "reduced"]
        return [
            GridPoint(f"{view}, min_samples_leaf={leaf}, max_iter={count}", view, _boosted(dataset, leaf, count))
            for view in views
            for leaf in leaves
            for count in rounds
        ]

    return GridMethod(
        "gradient boosting",
        grid,
        False,
        f"HistGradientBoostingClassifier, labels only; min_samples_leaf in {_listed(leaves)}; "
        f"max_iter in {_listed(rounds)}; images by {'pixels and by ' if pixels else ''}{COMPONENTS} principal "
        f"components, sounds by the components, text by {TEXT_COMPONENTS} components of TF-IDF, tables by their "
        "numbers and category codes",
    )


def self_training(
    strengths: tuple[float, ...], thresholds: tuple[float, ...], *, alphas: tuple[float, ...] = (0.1, 1.0)
) -> GridMethod:
    """On labels and unlabelled rows: a classifier trained again on its confident predictions."""

    def grid(dataset: Dataset) -> list[GridPoint]:
        return [
            GridPoint(f"{name}, threshold={t}", view, partial(_self_trained, make, t))
            for name, view, make in bases(dataset)
            for t in thresholds
        ]

    def bases(dataset: Dataset) -> Iterator[tuple[str, str, Callable[[int], Any]]]:
        """Base classifiers: logistic regression, and a usual one for the kind of data."""
        view = "reduced" if dataset.kind in (Kind.IMAGE, Kind.SOUND) else _plain(dataset)
        for C in strengths:
            yield f"logistic C={C:g}", view, _logistic(C)
        if dataset.kind == Kind.TEXT:
            for alpha in alphas:
                yield f"naive Bayes alpha={alpha}", "plain", _unseeded(MultinomialNB, alpha=alpha)
        if dataset.kind == Kind.TABLE:
            yield "gradient boosting", "codes", _boosted(dataset, 10, 30)

    return GridMethod(
        "self-training",
        grid,
        True,
        f"SelfTrainingClassifier around logistic regression (C in {_listed(strengths)}), for text also around naive "
        f"Bayes (alpha in {_listed(alphas)}), for tables also around gradient boosting; "
        f"threshold in {_listed(thresholds)}",
    )


def label_spreading(neighbours: tuple[int, ...], alphas: tuple[float, ...]) -> GridMethod:
    """On labels and unlabelled rows, by a graph of nearest neighbours."""

    def grid(dataset: Dataset) -> list[GridPoint]:
        view = _plain(dataset) if dataset.kind in (Kind.VECTOR, Kind.TABLE) else "reduced"
        model = partial(LabelSpreading, kernel="knn", max_iter=100)
        return [
            GridPoint(f"n_neighbors={k}, alpha={a}", view, _unseeded(model, n_neighbors=k, alpha=a))
            for k in neighbours
            for a in alphas
        ]

    grids = f"n_neighbors in {_listed(neighbours)}; alpha in {_listed(alphas)}"
    return GridMethod("label spreading", grid, True, f"LabelSpreading on the graph of nearest neighbours; {grids}")


def _plain(dataset: Dataset) -> str:
    """All features, or principal components of very many; TF-IDF is sparse and fast at any width."""
    wide = dataset.kind != Kind.TEXT and int(np.prod(dataset.shape)) > WIDE
    return "reduced" if wide else "plain"


def _seeded(model: Callable[..., Any], **parameters: Any) -> Callable[[int], Any]:
    return lambda seed: model(random_state=seed, **parameters)


def _unseeded(model: Callable[..., Any], **parameters: Any) -> Callable[[int], Any]:
    return lambda seed: model(**parameters)


def _logistic(C: float) -> Callable[[int], Any]:
    return _unseeded(LogisticRegression, C=C, max_iter=300)


def _self_trained(make: Callable[[int], Any], threshold: float, seed: int) -> Any:
    return SelfTrainingClassifier(make(seed), threshold=threshold)


def _boosted(dataset: Dataset, leaf: int, rounds: int) -> Callable[[int], Any]:
    categorical = None
    if dataset.kind == Kind.TABLE:
        numbers, categories = numbers_and_categories(dataset)
        counts = [len(dataset.metadata.columns[place].categories) for place in categories]
        # The codes of columns with more categories are used as numbers.
        categorical = [len(numbers) + i for i, count in enumerate(counts) if count <= MAX_CATEGORIES]
    sizes = {"min_samples_leaf": leaf, "max_iter": rounds, "early_stopping": False}
    return _seeded(HistGradientBoostingClassifier, categorical_features=categorical, **sizes)


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)


# The first candidate of each is used where there are no validation rows.
CLASSICAL = (
    majority(),
    logistic_regression((1, 0.1, 10)),
    random_forest((1, 3)),
    gradient_boosting((5, 20), (50,)),
    self_training((1, 10), (0.95, 0.75), alphas=(1.0,)),
    label_spreading((10, 5, 20), (0.2, 0.9)),
)
