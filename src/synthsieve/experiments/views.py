"""The parts of a split as matrices of numbers, for classifiers that know nothing of images, tables or sentences.

Maps are fitted on labelled and unlabelled rows alone, as our own encodings are. A `plain` view has all there is: pixels
in [0, 1]; vectors and log-mel spectrograms standardised; tables with numbers imputed and standardised and categories
one-hot; text as TF-IDF of one and two words; another kind as its encoding has it, standardised. `reduced` has its
principal components; `codes`, for tables alone, has numbers and categories as they are stored, with gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.data.encoding import fit_encoding
from synthsieve.data.splits import Split
from synthsieve.evaluation.accuracy import part_of
from synthsieve.randomness import numpy_stream

COMPONENTS = 50
TEXT_COMPONENTS = 150
MOST_CATEGORIES = 255  # of one column: rarer ones share a place, and boosting knows no more
RARE_WORDS = 3  # a word or pair of words in fewer sentences is left out
BLOCK = 2048  # rows turned into features at a time


@dataclass
class Views:
    """The parts of a split as matrices, by the name of a view; each is made when it is first asked for.

    Attributes:
        dataset: whose rows they are.
        split: who is labelled, unlabelled, validation, test.
        seed: decides which unlabelled rows are left where they are many.
        most_unlabeled: so many of them at most are learned from.
        most_measured: so many of them at most, beside the labelled ones, are what maps are fitted on; None = all.
    """

    dataset: Dataset
    split: Split
    seed: int
    most_unlabeled: int
    most_measured: int | None = None
    _maps: dict[str, Any] = field(default_factory=dict)
    _made: dict[tuple[str, str], Any] = field(default_factory=dict)

    def __call__(self, view: str, part: str) -> Any:
        """The matrix of `labeled`, `unlabeled` (a part of them, where they are many) or `validation`: (n, features)."""
        if (view, part) not in self._made:
            self._made[view, part] = stacked(list(self.blocks(view, part)))
        return self._made[view, part]

    def blocks(self, view: str, part: str) -> Iterator[Any]:
        """The same, a block of rows at a time and not kept: for `test`, which is looked at once."""
        stored = self._stored(part)
        for start in range(0, max(len(stored), 1), BLOCK):
            yield self._features(view, stored[start : start + BLOCK])

    def of_new(self, view: str, x: np.ndarray) -> Any:
        """The same of any examples as the source stores them."""
        return self._features(view, x)

    def unlabeled_rows(self) -> np.ndarray:
        """All unlabelled rows, or `most_unlabeled` of them."""
        return self._some_unlabeled(self.most_unlabeled)

    def _some_unlabeled(self, most: int | None) -> np.ndarray:
        rows = self.split.unlabeled
        if most is None or len(rows) <= most:
            return rows
        return np.sort(numpy_stream(self.seed, "rivals/unlabeled").choice(rows, most, replace=False))

    def _stored(self, part: str) -> np.ndarray:
        """x as the source stores it."""
        if part in ("validation", "test"):
            return part_of(self.dataset, self.split, part)[0]
        rows = self.split.labeled if part == "labeled" else self.unlabeled_rows()
        return self.dataset.train.x[rows]

    def _features(self, view: str, x: np.ndarray) -> Any:
        if view == "reduced":
            return self._map(view).transform(self._features("plain", x))
        return self._map(view).transform(x)

    def _map(self, view: str) -> Any:
        if view not in self._maps:
            rows = np.concatenate([self.split.labeled, self._some_unlabeled(self.most_measured)])
            training = self.dataset.train.x[rows]
            if view == "reduced":
                plain = self._features("plain", training)
                self._maps[view] = _reduction(self.dataset.kind, plain.shape).fit(plain)
            elif view == "codes":
                self._maps[view] = _codes_map(self.dataset).fit(training)
            else:
                self._maps[view] = _MAPS.get(self.dataset.kind, _encoded_map)(self.dataset, rows).fit(training)
        return self._maps[view]


def stacked(blocks: list[Any]) -> Any:
    """Blocks of rows, dense or sparse, as one matrix."""
    if len(blocks) == 1:
        return blocks[0]
    return sparse.vstack(blocks).tocsr() if sparse.issparse(blocks[0]) else np.concatenate(blocks)


def numbers_and_categories(dataset: Dataset) -> tuple[list[int], list[int]]:
    """Of a table, as places of columns; a gap is a category of its own. The order of the view `codes`."""
    types = [column.type for column in dataset.about.columns]
    numbers = [i for i, given in enumerate(types) if given in ("number", "date")]
    categories = [i for i, given in enumerate(types) if given in ("category", "boolean")]
    return numbers, categories


def _reduction(kind: str, shape: tuple[int, int]) -> Any:
    if kind == Kind.TEXT:
        return make_pipeline(TruncatedSVD(min(TEXT_COMPONENTS, *shape), random_state=0), Normalizer())
    return PCA(min(COMPONENTS, *shape), svd_solver="randomized", random_state=0)


def _image_map(dataset: Dataset, rows: np.ndarray) -> Any:
    return FunctionTransformer(_pixels)


def _pixels(x: np.ndarray) -> np.ndarray:
    """uint8, or floats in [-1, 1] -> float32 (n, pixels) in [0, 1]."""
    flat = _flat(x).astype(np.float32)
    return flat / 255 if x.dtype == np.uint8 else (flat + 1) / 2


def _flat_map(dataset: Dataset, rows: np.ndarray) -> Any:
    return make_pipeline(FunctionTransformer(_flat), StandardScaler())


def _flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(len(x), int(np.prod(x.shape[1:])))


def _encoded_map(dataset: Dataset, rows: np.ndarray) -> Any:
    """For a kind that registered itself: what networks see."""
    encoding = fit_encoding(dataset, rows)
    return make_pipeline(FunctionTransformer(lambda x: _flat(encoding.encode(x))), StandardScaler())


def _text_map(dataset: Dataset, rows: np.ndarray) -> Any:
    words = TfidfVectorizer(
        ngram_range=(1, 2),
        min_df=min(RARE_WORDS, 1 + len(rows) // 1000),
        sublinear_tf=True,
        token_pattern=r"(?u)\S+",
    )
    return Pipeline([("decode", FunctionTransformer(_sentences)), ("tf-idf", words)])


def _sentences(x: np.ndarray) -> list[str]:
    return [text.decode("utf-8") for text in x.tolist()]


def _table_map(dataset: Dataset, rows: np.ndarray) -> Any:
    numbers, categories = numbers_and_categories(dataset)
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, max_categories=MOST_CATEGORIES)
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
            ("categories", one_hot, categories),
        ]
    )


def _codes_map(dataset: Dataset) -> Any:
    """Numbers as they are, then categories as their stored codes, NaN where a cell is missing: for boosting."""
    places = [place for group in numbers_and_categories(dataset) for place in group]
    return FunctionTransformer(lambda x: x[:, places])


_MAPS: dict[str, Callable[[Dataset, np.ndarray], Any]] = {
    Kind.IMAGE: _image_map,
    Kind.VECTOR: _flat_map,
    Kind.TABLE: _table_map,
    Kind.SOUND: _flat_map,
    Kind.TEXT: _text_map,
}
