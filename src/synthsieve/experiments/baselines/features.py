"""The rows of a split as feature matrices for scikit-learn.

Transformers are fitted on labelled and unlabelled rows only. The view `plain` has all features: pixels in [0, 1];
standardized vectors and log-mel spectrograms; tables with imputed, standardized numbers and one-hot categories; text as
TF-IDF of words and pairs of words; other kinds as their standardized encoding. `reduced` has its principal components.
`codes`, for tables, has numbers and category codes as they are stored, with NaN for missing cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.data.modalities.registry import fit_encoding
from synthsieve.data.splits import Split
from synthsieve.evaluation.predict import part_of
from synthsieve.io.random_streams import numpy_stream

COMPONENTS = 50
TEXT_COMPONENTS = 150
MAX_CATEGORIES = 255  # of one column, as in gradient boosting; rarer ones are merged
RARE_WORDS = 3  # words and pairs in fewer sentences are left out
BLOCK = 2048  # rows transformed at a time


@dataclass
class Views:
    """The parts of a split as matrices, by the name of a view; computed on first use."""

    dataset: Dataset  # the data set
    split: Split  # labelled, unlabelled, validation and test rows
    seed: int  # of the choice of unlabelled rows where there are many
    max_unlabeled: int  # the maximum number of unlabelled rows
    max_measured: int | None = None  # the maximum number of unlabelled rows that transformers are fitted on; None: all
    _transformers: dict[str, Any] = field(default_factory=dict)
    _matrices: dict[tuple[str, str], Any] = field(default_factory=dict)

    def __call__(self, view: str, part: str) -> Any:
        """The matrix of `labeled`, `unlabeled` (at most `max_unlabeled`) or `validation`: (n, features)."""
        if (view, part) not in self._matrices:
            self._matrices[view, part] = stacked(list(self.blocks(view, part)))
        return self._matrices[view, part]

    def blocks(self, view: str, part: str) -> Iterator[Any]:
        """The same in blocks of rows that are not kept, for `test`."""
        if part in ("validation", "test"):
            stored = part_of(self.dataset, self.split, part)[0]
        else:
            stored = self.dataset.train.x[self.split.labeled if part == "labeled" else self.unlabeled_rows()]
        for start in range(0, max(len(stored), 1), BLOCK):
            yield self.of_new(view, stored[start : start + BLOCK])

    def of_new(self, view: str, x: np.ndarray) -> Any:
        """The features of examples, as the source stores them."""
        if view == "reduced":
            return self._transformer(view).transform(self.of_new("plain", x))
        return self._transformer(view).transform(x)

    def unlabeled_rows(self) -> np.ndarray:
        """All unlabelled rows, or `max_unlabeled` of them."""
        return self._some_unlabeled(self.max_unlabeled)

    def _some_unlabeled(self, limit: int | None) -> np.ndarray:
        rows = self.split.unlabeled
        if limit is None or len(rows) <= limit:
            return rows
        return np.sort(numpy_stream(self.seed, "rivals/unlabeled").choice(rows, limit, replace=False))

    def _transformer(self, view: str) -> Any:
        if view not in self._transformers:
            rows = np.concatenate([self.split.labeled, self._some_unlabeled(self.max_measured)])
            training = self.dataset.train.x[rows]
            if view == "reduced":
                training = self.of_new("plain", training)
                transformer = _reduction(self.dataset.kind, training.shape)
            elif view == "codes":  # numbers, then category codes, NaN for missing cells: for gradient boosting
                places = [place for group in numbers_and_categories(self.dataset) for place in group]
                transformer = FunctionTransformer(lambda x: x[:, places])
            else:
                transformer = _plain_transformer(self.dataset, rows)
            self._transformers[view] = transformer.fit(training)
        return self._transformers[view]


def stacked(blocks: list[Any]) -> Any:
    """Blocks of rows, dense or sparse, as one matrix."""
    if len(blocks) == 1:
        return blocks[0]
    return sparse.vstack(blocks).tocsr() if sparse.issparse(blocks[0]) else np.concatenate(blocks)


def numbers_and_categories(dataset: Dataset) -> tuple[list[int], list[int]]:
    """Indices of the numeric and of the categorical columns of a table, in the order of the view `codes`."""
    types = [column.type for column in dataset.metadata.columns]
    numbers = [i for i, given in enumerate(types) if given in ("number", "date")]
    categories = [i for i, given in enumerate(types) if given in ("category", "boolean")]
    return numbers, categories


def _reduction(kind: str, shape: tuple[int, int]) -> Any:
    if kind == Kind.TEXT:
        return make_pipeline(TruncatedSVD(min(TEXT_COMPONENTS, *shape), random_state=0), Normalizer())
    return PCA(min(COMPONENTS, *shape), svd_solver="randomized", random_state=0)


def _plain_transformer(dataset: Dataset, rows: np.ndarray) -> Any:
    """The view `plain`; for registered kinds of data it is the input of the networks."""
    if dataset.kind == Kind.IMAGE:
        return FunctionTransformer(_pixels)
    if dataset.kind == Kind.TEXT:
        rare = min(RARE_WORDS, 1 + len(rows) // 1000)
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=rare, sublinear_tf=True, token_pattern=r"(?u)\S+")
        return make_pipeline(FunctionTransformer(lambda x: [text.decode("utf-8") for text in x.tolist()]), words)
    if dataset.kind == Kind.TABLE:
        numbers, categories = numbers_and_categories(dataset)
        one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, max_categories=MAX_CATEGORIES)
        imputed = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        return ColumnTransformer([("numbers", imputed, numbers), ("categories", one_hot, categories)])
    if dataset.kind in (Kind.VECTOR, Kind.SOUND):
        return make_pipeline(FunctionTransformer(_flat), StandardScaler())
    encoding = fit_encoding(dataset, rows)
    return make_pipeline(FunctionTransformer(lambda x: _flat(encoding.encode(x))), StandardScaler())


def _pixels(x: np.ndarray) -> np.ndarray:
    """uint8, or floats in [-1, 1] -> float32 (n, pixels) in [0, 1]."""
    flat = _flat(x).astype(np.float32)
    return flat / 255 if x.dtype == np.uint8 else (flat + 1) / 2


def _flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(len(x), int(np.prod(x.shape[1:])))
