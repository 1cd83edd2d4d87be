"""scikit-learn's ways to learn from few labels, on our splits: features by kind of data, a small grid for each rival.

A rival learns from the labelled rows, and from unlabelled rows without their labels where it can use them. Its grid is
decided by accuracy on the validation rows, the first best one wins; the test rows only judge. Feature maps are fitted
on labelled and unlabelled rows, as our own encodings are.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from synthsieve.data.dataset import UNLABELED, Dataset, Kind
from synthsieve.data.splits import Split
from synthsieve.evaluation.accuracy import part_of
from synthsieve.files import written_atomically
from synthsieve.randomness import derive_seed, numpy_stream

MOST_UNLABELED = 10_000  # rows of the graph, and of self-training: all of them would take minutes a fit
COMPONENTS = 50
TEXT_COMPONENTS = 150

FEATURES = (
    "Features: images as pixels in [0, 1]; vectors and log-mel spectrograms standardised; tables with numbers imputed "
    "and standardised and categories one-hot; text as TF-IDF of one and two words; "
    f"self-training on images and sounds, and label spreading on images, sounds and text, by {COMPONENTS} principal "
    f"components ({TEXT_COMPONENTS} for text)."
)


@dataclass(frozen=True)
class Candidate:
    """A point of a rival's grid: the features it sees, and an estimator made for a seed."""

    name: str
    view: str
    make: Callable[[int], Any]


@dataclass(frozen=True)
class Rival:
    """A way to learn, with its grid by kind of data.

    Attributes:
        name: what people call it.
        grid: kind and data set -> the candidates.
        unlabeled: whether it learns from unlabelled rows too.
        notes: the grid in words.
    """

    name: str
    grid: Callable[[Dataset], list[Candidate]]
    unlabeled: bool
    notes: str

    @property
    def slug(self) -> str:
        return self.name.lower().replace(", ", "-").replace(" ", "-")


@dataclass(frozen=True)
class Answer:
    """What the best candidate of a rival's grid got right.

    Attributes:
        right: part -> bool (n,), of `validation` and `test`.
        about: chosen candidate, grid, validation accuracy of each, seconds, split hash, for JSON.
    """

    right: dict[str, np.ndarray]
    about: dict[str, Any]

    def write(self, path: Path) -> None:
        """One .npz, atomically."""
        with written_atomically(path) as partial, partial.open("wb") as file:
            np.savez(file, about=np.asarray(json.dumps(self.about)), **self.right)

    @classmethod
    def read(cls, path: Path) -> Answer:
        with np.load(path, allow_pickle=False) as stored:
            return cls({part: stored[part] for part in ("validation", "test")}, json.loads(str(stored["about"])))


@dataclass
class Views:
    """The parts of a split as matrices, by the name of a feature map; each is made when it is first asked for."""

    dataset: Dataset
    split: Split
    seed: int
    _maps: dict[str, Any] = field(default_factory=dict)
    _made: dict[tuple[str, str], Any] = field(default_factory=dict)

    def __call__(self, view: str, part: str) -> Any:
        """The matrix of `labeled`, `unlabeled` (a part of them, where they are many), `validation` or `test`."""
        if (view, part) not in self._made:
            self._made[view, part] = self._map(view).transform(self._source(view, part))
        return self._made[view, part]

    def unlabeled_rows(self) -> np.ndarray:
        """All unlabelled rows, or MOST_UNLABELED of them, chosen by the seed."""
        rows = self.split.unlabeled
        if len(rows) <= MOST_UNLABELED:
            return rows
        return np.sort(numpy_stream(self.seed, "rivals/unlabeled").choice(rows, MOST_UNLABELED, replace=False))

    def _source(self, view: str, part: str) -> Any:
        return self("plain", part) if view == "reduced" else self._stored(part)

    def _stored(self, part: str) -> np.ndarray:
        """x as the source stores it; `training` is what maps are fitted on."""
        if part in ("validation", "test"):
            return part_of(self.dataset, self.split, part)[0]
        rows = {
            "labeled": self.split.labeled,
            "unlabeled": self.unlabeled_rows(),
            "training": np.concatenate([self.split.labeled, self.split.unlabeled]),
        }[part]
        return self.dataset.train.x[rows]

    def _map(self, view: str) -> Any:
        if view not in self._maps:
            training = self._stored("training")
            if view == "reduced":
                training = self._map("plain").transform(training)
            self._maps[view] = _new_map(self.dataset, view, training).fit(training)
        return self._maps[view]


def answer(rival: Rival, views: Views) -> Answer:
    """Fit every candidate of the grid, choose on validation, judge on validation and test."""
    started = time.monotonic()
    truth = {part: part_of(views.dataset, views.split, part)[1] for part in ("validation", "test")}
    best, best_right, accuracies = None, np.empty(0, dtype=bool), {}
    grid = rival.grid(views.dataset)
    for candidate in grid:
        fitted = _fit(rival, candidate, views)
        right = _predict(candidate, fitted, views, "validation") == truth["validation"]
        accuracies[candidate.name] = float(right.mean())
        if best is None or right.mean() > best_right.mean():
            best, best_right = (candidate, fitted), right
    assert best is not None
    candidate, fitted = best
    test_right = _predict(candidate, fitted, views, "test") == truth["test"]
    about = {
        "chosen": candidate.name,
        "grid": accuracies,
        "unlabeled": len(views.unlabeled_rows()) if rival.unlabeled else 0,
        "seconds": time.monotonic() - started,
        "split_hash": views.split.hash,
    }
    return Answer({"validation": best_right, "test": test_right}, about)


def is_answered(rival: Rival, path: Path, dataset: Dataset, split: Split) -> bool:
    """Whether `path` holds the rival's answer with the grid of today, on that split."""
    if not path.is_file():
        return False
    about = Answer.read(path).about
    return about["split_hash"] == split.hash and list(about["grid"]) == [one.name for one in rival.grid(dataset)]


def _fit(rival: Rival, candidate: Candidate, views: Views) -> Any:
    x, y = views(candidate.view, "labeled"), views.dataset.train.y[views.split.labeled]
    if rival.unlabeled and len(views.split.unlabeled):
        more = views(candidate.view, "unlabeled")
        x = sparse.vstack([x, more]).tocsr() if sparse.issparse(x) else np.concatenate([x, more])
        y = np.concatenate([y, np.full(more.shape[0], UNLABELED)])
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        return candidate.make(derive_seed(views.seed, f"rivals/{rival.name}") % 2**32).fit(x, y)


def _predict(candidate: Candidate, fitted: Any, views: Views, part: str) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # label spreading: rows whose neighbours no label has reached
        return fitted.predict(views(candidate.view, part))


def _new_map(dataset: Dataset, view: str, training: Any) -> Any:
    if view == "reduced":
        if dataset.kind == Kind.TEXT:
            return make_pipeline(TruncatedSVD(TEXT_COMPONENTS, random_state=0), Normalizer())
        return PCA(min(COMPONENTS, *training.shape), svd_solver="randomized", random_state=0)
    return _codes_map(dataset) if view == "codes" else _MAPS[dataset.kind](dataset)


def _image_map(dataset: Dataset) -> Any:
    return FunctionTransformer(_pixels)


def _pixels(x: np.ndarray) -> np.ndarray:
    """uint8, or floats in [-1, 1] -> float32 (n, pixels) in [0, 1]."""
    flat = x.reshape(len(x), -1).astype(np.float32)
    return flat / 255 if x.dtype == np.uint8 else (flat + 1) / 2


def _flat_map(dataset: Dataset) -> Any:
    return make_pipeline(FunctionTransformer(_flat), StandardScaler())


def _flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(len(x), -1)


def _text_map(dataset: Dataset) -> Any:
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=3, sublinear_tf=True, token_pattern=r"(?u)\S+")
    return Pipeline([("decode", FunctionTransformer(_sentences)), ("tf-idf", words)])


def _sentences(x: np.ndarray) -> list[str]:
    return [text.decode("utf-8") for text in x.tolist()]


def _table_map(dataset: Dataset) -> Any:
    numbers, categories = _columns(dataset)
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
            ("categories", OneHotEncoder(handle_unknown="ignore", sparse_output=False), categories),
        ]
    )


def _columns(dataset: Dataset) -> tuple[list[int], list[int]]:
    """The numbers and the categories of a table, as places of columns; a gap is a category of its own."""
    types = [column.type for column in dataset.about.columns]
    numbers = [i for i, given in enumerate(types) if given in ("number", "date")]
    categories = [i for i, given in enumerate(types) if given in ("category", "boolean")]
    return numbers, categories


def _codes_map(dataset: Dataset) -> Any:
    """Numbers as they are, then categories as their stored codes, NaN where a cell is missing: for boosting."""
    places = [place for group in _columns(dataset) for place in group]
    return FunctionTransformer(lambda x: x[:, places])


_MAPS: dict[str, Callable[[Dataset], Any]] = {
    Kind.IMAGE: _image_map,
    Kind.VECTOR: _flat_map,
    Kind.TABLE: _table_map,
    Kind.SOUND: _flat_map,
    Kind.TEXT: _text_map,
}


def _logistic(C: float) -> LogisticRegression:
    return LogisticRegression(C=C, max_iter=300)


def _logistic_grid(dataset: Dataset) -> list[Candidate]:
    return [Candidate(f"C={C:g}", "plain", lambda seed, C=C: _logistic(C)) for C in (0.01, 0.1, 1, 10, 100)]


def _self_training_grid(dataset: Dataset) -> list[Candidate]:
    return [
        Candidate(f"{name}, threshold={threshold}", view, _self_trained(make, threshold))
        for name, view, make in _bases(dataset)
        for threshold in (0.75, 0.95)
    ]


def _bases(dataset: Dataset) -> Iterator[tuple[str, str, Callable[[int], Any]]]:
    """What self-training repeats: logistic regression, and the classic of the kind."""
    view = "reduced" if dataset.kind in (Kind.IMAGE, Kind.SOUND) else "plain"
    for C in (0.1, 1, 10, 100):
        yield f"logistic C={C:g}", view, lambda seed, C=C: _logistic(C)
    if dataset.kind == Kind.TEXT:
        for alpha in (0.1, 1.0):
            yield f"naive Bayes alpha={alpha}", "plain", lambda seed, alpha=alpha: MultinomialNB(alpha=alpha)
    if dataset.kind == Kind.TABLE:
        yield "gradient boosting", "codes", _boosted(dataset, 10, 30)


def _self_trained(make: Callable[[int], Any], threshold: float) -> Callable[[int], Any]:
    return lambda seed: SelfTrainingClassifier(make(seed), threshold=threshold)


def _spreading_grid(dataset: Dataset) -> list[Candidate]:
    view = "plain" if dataset.kind in (Kind.VECTOR, Kind.TABLE) else "reduced"
    return [
        Candidate(f"n_neighbors={k}, alpha={alpha}", view, lambda seed, k=k, alpha=alpha: _spreading(k, alpha))
        for k in (3, 5, 10, 20)
        for alpha in (0.2, 0.9)
    ]


def _spreading(k: int, alpha: float) -> LabelSpreading:
    return LabelSpreading(kernel="knn", n_neighbors=k, alpha=alpha, max_iter=100)


def _boosting_grid(dataset: Dataset) -> list[Candidate]:
    views = {Kind.VECTOR: ("plain",), Kind.TABLE: ("codes",), Kind.TEXT: ("reduced",), Kind.SOUND: ("reduced",)}
    return [
        Candidate(f"{view}, min_samples_leaf={leaf}, max_iter={rounds}", view, _boosted(dataset, leaf, rounds))
        for view in views.get(Kind(dataset.kind), ("plain", "reduced"))
        for leaf in (5, 10, 20)
        for rounds in (30, 100)
    ]


def _boosted(dataset: Dataset, leaf: int, rounds: int) -> Callable[[int], Any]:
    categorical = None
    if dataset.kind == Kind.TABLE:
        numbers, categories = _columns(dataset)
        categorical = list(range(len(numbers), len(numbers) + len(categories)))
    return lambda seed: HistGradientBoostingClassifier(
        min_samples_leaf=leaf,
        max_iter=rounds,
        categorical_features=categorical,
        early_stopping=False,
        random_state=seed,
    )


RIVALS = (
    Rival(
        "logistic regression",
        _logistic_grid,
        False,
        "labels only; C in 0.01, 0.1, 1, 10, 100",
    ),
    Rival(
        "gradient boosting",
        _boosting_grid,
        False,
        "HistGradientBoostingClassifier, labels only; min_samples_leaf in 5, 10, 20; max_iter in 30, 100; images by "
        f"pixels and by {COMPONENTS} principal components, sounds by the components, text by {TEXT_COMPONENTS} "
        "components of TF-IDF, tables by their numbers and category codes",
    ),
    Rival(
        "self-training",
        _self_training_grid,
        True,
        "SelfTrainingClassifier around logistic regression (C in 0.1, 1, 10, 100), for text also around naive Bayes "
        "(alpha in 0.1, 1), for tables also around gradient boosting; threshold in 0.75, 0.95",
    ),
    Rival(
        "label spreading",
        _spreading_grid,
        True,
        "LabelSpreading on the graph of nearest neighbours; n_neighbors in 3, 5, 10, 20; alpha in 0.2, 0.9",
    ),
)
