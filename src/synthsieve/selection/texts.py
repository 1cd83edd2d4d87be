"""Texts as embeddings: by any object with `encode`, or by TF-IDF if there is none."""

from __future__ import annotations

from typing import Any

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.selection import validation

TFIDF = "tfidf"
TFIDF_NOTE = "texts were compared by their words (TF-IDF): embeddings of a language model also compare their meaning"


class TfidfEncoder:
    """Rows of length 1 by TF-IDF of one and two words and a truncated SVD, both fitted to the first texts."""

    def __init__(self, dimensions: int = 128, seed: int = 0) -> None:
        self.dimensions, self.seed = dimensions, seed
        self._fitted: Any = None

    def encode(self, texts: list[str]) -> np.ndarray:
        """Embeddings (n, d); texts without a known word are zeros."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import Normalizer

        if self._fitted is None:
            words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
            try:
                width = words.fit_transform(texts).shape
            except ValueError:
                raise SelectionError(
                    "expected words in the texts, got none: check the column of texts", code="text"
                ) from None
            kept = max(1, min(self.dimensions, min(width) - 1))
            # A single word is a single column, which TruncatedSVD refuses.
            svd = [TruncatedSVD(kept, random_state=self.seed)] if width[1] > 1 else []
            self._fitted = make_pipeline(words, *svd, Normalizer()).fit(texts)
        rows = self._fitted.transform(texts)
        return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float32)


def encoded(encoder: Any, texts: Any, name: str = "text") -> np.ndarray:
    """The embeddings of texts (n,) by `encoder.encode`, checked."""
    rows = as_texts(texts, name)
    if isinstance(encoder, str) or not callable(getattr(encoder, "encode", None)):
        raise SelectionError(
            f"expected an encoder with a method encode, such as a SentenceTransformer, got {encoder!r}: pass one or "
            f"encoder='{TFIDF}'",
            code="encoder",
        )
    embeddings = validation.matrix(encoder.encode(rows), "the encoder's embeddings")
    if len(embeddings) != len(rows):
        raise SelectionError(
            f"expected {len(rows)} embeddings from the encoder, one a text, got {len(embeddings)}: check its encode",
            code="encoder-count",
        )
    return embeddings


def as_texts(value: Any, name: str) -> list[str]:
    """A list of texts from a list or a column."""
    column = value.to_pylist() if hasattr(value, "to_pylist") else list(value)
    odd = next((row for row, text in enumerate(column) if not isinstance(text, str)), None)
    if odd is not None:
        empty = column[odd] is None or column[odd] != column[odd]  # missing text is nan in a data frame
        got = "an empty cell" if empty else repr(str(column[odd])[:40])
        raise SelectionError(f"expected text in {name}, got {got} in row {odd}: fill or drop that row", code="text")
    if not column:
        raise SelectionError("expected at least one row, got none: check that the input is not empty", code="no-rows")
    return column
