"""The classical methods that every reader would try first, each made with a grid: small ones for `run`, below.

A benchmark may make the same methods with larger grids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.experiments.classical import Candidate, Method
from synthsieve.experiments.views import COMPONENTS, MOST_CATEGORIES, TEXT_COMPONENTS, numbers_and_categories

MAJORITY = "majority class"
MOST_UNLABELED = 10_000  # rows of the graph, and of self-training: all of them would take minutes a fit
WIDE = 2_000  # features from which on principal components stand for all of them


def logistic_regression(strengths: tuple[float, ...]) -> Method:
    """On the labels alone."""

    def grid(dataset: Dataset) -> list[Candidate]:
        return [Candidate(f"C={C:g}", _plain(dataset), _logistic(C)) for C in strengths]

    return Method("logistic regression", grid, False, f"labels only; C in {_listed(strengths)}")


def majority() -> Method:
    """The most frequent class of the labels, whatever the example: what every classifier must beat."""

    def grid(dataset: Dataset) -> list[Candidate]:
        return [Candidate("most frequent class", _plain(dataset), lambda seed: DummyClassifier(strategy="prior"))]

    return Method(MAJORITY, grid, False, "the most frequent class of the labels")


def random_forest(leaves: tuple[int, ...]) -> Method:
    """On the labels alone."""

    def grid(dataset: Dataset) -> list[Candidate]:
        return [Candidate(f"min_samples_leaf={leaf}", _forest_view(dataset), _forest(leaf)) for leaf in leaves]

    return Method("random forest", grid, False, f"200 trees, labels only; min_samples_leaf in {_listed(leaves)}")


def gradient_boosting(leaves: tuple[int, ...], rounds: tuple[int, ...], *, pixels: bool = False) -> Method:
    """On the labels alone; with `pixels` it tries images by their pixels too."""

    def grid(dataset: Dataset) -> list[Candidate]:
        views = [_boosting_view(dataset)]
        if pixels and dataset.kind == Kind.IMAGE:
            views = ["plain", "reduced"]
        return [
            Candidate(f"{view}, min_samples_leaf={leaf}, max_iter={count}", view, _boosted(dataset, leaf, count))
            for view in views
            for leaf in leaves
            for count in rounds
        ]

    return Method(
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
) -> Method:
    """On labels and unlabelled rows: a classifier that learns on from what it is sure of."""

    def grid(dataset: Dataset) -> list[Candidate]:
        return [
            Candidate(f"{name}, threshold={threshold}", view, _self_trained(make, threshold))
            for name, view, make in bases(dataset)
            for threshold in thresholds
        ]

    def bases(dataset: Dataset) -> Iterator[tuple[str, str, Callable[[int], Any]]]:
        """What is repeated: logistic regression, and the classic of the kind."""
        view = "reduced" if dataset.kind in (Kind.IMAGE, Kind.SOUND) else _plain(dataset)
        for C in strengths:
            yield f"logistic C={C:g}", view, _logistic(C)
        if dataset.kind == Kind.TEXT:
            for alpha in alphas:
                yield f"naive Bayes alpha={alpha}", "plain", _naive_bayes(alpha)
        if dataset.kind == Kind.TABLE:
            yield "gradient boosting", "codes", _boosted(dataset, 10, 30)

    return Method(
        "self-training",
        grid,
        True,
        f"SelfTrainingClassifier around logistic regression (C in {_listed(strengths)}), for text also around naive "
        f"Bayes (alpha in {_listed(alphas)}), for tables also around gradient boosting; "
        f"threshold in {_listed(thresholds)}",
    )


def label_spreading(neighbours: tuple[int, ...], alphas: tuple[float, ...]) -> Method:
    """On labels and unlabelled rows: labels go from neighbour to neighbour."""

    def grid(dataset: Dataset) -> list[Candidate]:
        view = _plain(dataset) if dataset.kind in (Kind.VECTOR, Kind.TABLE) else "reduced"
        return [
            Candidate(f"n_neighbors={k}, alpha={alpha}", view, _spreading(k, alpha))
            for k in neighbours
            for alpha in alphas
        ]

    return Method(
        "label spreading",
        grid,
        True,
        f"LabelSpreading on the graph of nearest neighbours; n_neighbors in {_listed(neighbours)}; "
        f"alpha in {_listed(alphas)}",
    )


def _plain(dataset: Dataset) -> str:
    """All features, or the principal components of very many; TF-IDF is sparse, and quick however wide."""
    wide = dataset.kind != Kind.TEXT and int(np.prod(dataset.shape)) > WIDE
    return "reduced" if wide else "plain"


def _boosting_view(dataset: Dataset) -> str:
    if dataset.kind == Kind.TABLE:
        return "codes"
    return "reduced" if dataset.kind in (Kind.IMAGE, Kind.TEXT, Kind.SOUND) else _plain(dataset)


def _forest_view(dataset: Dataset) -> str:
    return "reduced" if dataset.kind in (Kind.TEXT, Kind.SOUND) else _plain(dataset)


def _forest(leaf: int) -> Callable[[int], Any]:
    return lambda seed: RandomForestClassifier(200, min_samples_leaf=leaf, random_state=seed)


def _logistic(C: float) -> Callable[[int], Any]:
    return lambda seed: LogisticRegression(C=C, max_iter=300)


def _naive_bayes(alpha: float) -> Callable[[int], Any]:
    return lambda seed: MultinomialNB(alpha=alpha)


def _self_trained(make: Callable[[int], Any], threshold: float) -> Callable[[int], Any]:
    return lambda seed: SelfTrainingClassifier(make(seed), threshold=threshold)


def _spreading(k: int, alpha: float) -> Callable[[int], Any]:
    return lambda seed: LabelSpreading(kernel="knn", n_neighbors=k, alpha=alpha, max_iter=100)


def _boosted(dataset: Dataset, leaf: int, rounds: int) -> Callable[[int], Any]:
    categorical = None
    if dataset.kind == Kind.TABLE:
        numbers, categories = numbers_and_categories(dataset)
        known = [len(dataset.about.columns[place].categories) <= MOST_CATEGORIES for place in categories]
        categorical = [len(numbers) + i for i, few in enumerate(known) if few]  # codes of more pass as numbers
    return lambda seed: HistGradientBoostingClassifier(
        min_samples_leaf=leaf,
        max_iter=rounds,
        categorical_features=categorical,
        early_stopping=False,
        random_state=seed,
    )


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)


# The first candidate of each stands where there are no validation rows.
CLASSICAL = (
    majority(),
    logistic_regression((1, 0.1, 10)),
    random_forest((1, 3)),
    gradient_boosting((5, 20), (50,)),
    self_training((1, 10), (0.95, 0.75), alphas=(1.0,)),
    label_spreading((10, 5, 20), (0.2, 0.9)),
)
