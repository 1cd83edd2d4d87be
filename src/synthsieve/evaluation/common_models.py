"""The models that people commonly train, by name, ready for any rows: tables, arrays or texts.

Tables get imputed and standardized numbers and one-hot categories, arrays standardized columns, pictures and other
rows of several dimensions pixels divided by their largest value, texts TF-IDF of words and pairs of words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, OneHotEncoder, StandardScaler

from synthsieve.data.containers import is_frame
from synthsieve.errors import InputError

MAX_CATEGORIES = 255  # of one column; rarer ones are merged
TEXT_COMPONENTS = 100  # of TF-IDF, for models that need dense rows


def _boosting() -> Any:
    return HistGradientBoostingClassifier(max_iter=30, learning_rate=0.2, min_samples_leaf=5, early_stopping=False)


COMMON_MODELS: dict[str, Callable[[], Any]] = {
    "logistic regression": lambda: LogisticRegression(max_iter=300),
    "random forest": lambda: RandomForestClassifier(n_estimators=100),
    "gradient boosting": _boosting,
    "nearest neighbours": lambda: KNeighborsClassifier(n_neighbors=3),
    "small MLP": lambda: MLPClassifier(hidden_layer_sizes=(100,), max_iter=100),
}
SHORT_NAMES = {
    "logistic": "logistic regression",
    "forest": "random forest",
    "boosting": "gradient boosting",
    "knn": "nearest neighbours",
    "mlp": "small MLP",
}


def common_model(name: str, rows: Any = None) -> Any:
    """A common model by its name or short name; with `rows` given, behind the preparation that such rows need."""
    full = SHORT_NAMES.get(name, name)
    if full not in COMMON_MODELS:
        raise InputError(
            f"expected a model of {', '.join(SHORT_NAMES)}, or module:factory, got {name!r}", code="unknown-estimator"
        )
    model = COMMON_MODELS[full]()
    return model if rows is None else make_pipeline(*_preparation(rows, dense=_needs_dense(model)), model)


def _needs_dense(model: Any) -> bool:
    return isinstance(model, HistGradientBoostingClassifier)


def _preparation(rows: Any, *, dense: bool) -> list[Any]:
    if is_frame(rows):
        numbers = make_column_selector(dtype_include=["number", "bool"])
        others = make_column_selector(dtype_exclude=["number", "bool"])
        one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, max_categories=MAX_CATEGORIES)
        words = make_pipeline(FunctionTransformer(_as_text), one_hot)
        filled = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
        return [make_column_transformer((filled, numbers), (words, others))]
    if getattr(rows, "ndim", 1) == 1:
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
        return [words, TruncatedSVD(TEXT_COMPONENTS, random_state=0)] if dense else [words]
    if rows.ndim > 2:
        return [FunctionTransformer(_flat), MaxAbsScaler()]
    return [StandardScaler(with_mean=not hasattr(rows, "tocsr"))]


def _as_text(columns: Any) -> Any:
    """Cells as text, so that a category is the same whatever its type; missing ones are a category."""
    return columns.astype(object).where(columns.notna(), "").astype(str)


def _flat(x: Any) -> np.ndarray:
    return np.asarray(x).reshape(len(x), -1)
