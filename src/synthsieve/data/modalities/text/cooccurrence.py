"""Word vectors from co-occurrence: words near the same words have similar vectors.

The leading singular vectors of the positive pointwise mutual information of word pairs (Levy, Goldberg and Dagan 2015),
from the training texts only, without labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WINDOW = 10  # words to either side
DIMENSIONS = 100
RARE = 1e-3  # share of all words: a word as frequent gets half the norm (Arora, Liang and Ma 2017)
SMOOTHING = 0.75  # power of the context counts, against overestimating rare words
ITERATIONS = 4
BLOCK = 20_000  # sentences counted at a time


def word_vectors(sentences: np.ndarray, num_words: int, *, dimensions: int = DIMENSIONS) -> np.ndarray:
    """A vector for each word: float32 (num_words, at most dimensions); zeros for a word that occurs only alone.

    A word with share p of all words has norm RARE / (RARE + p): frequent words carry little information.
    `sentences` are int64 (n, length), word indices below `num_words`, the size of the vocabulary; -1 for none.
    """
    from sklearn.utils.extmath import randomized_svd

    dimensions = min(dimensions, num_words)
    information = positive_information(count_pairs(sentences, num_words))
    if not information.nnz:
        return np.zeros((num_words, dimensions), dtype=np.float32)
    left, singular, _ = randomized_svd(information, dimensions, n_iter=ITERATIONS, random_state=0)
    vectors = left * np.sqrt(singular)
    norms = np.linalg.norm(vectors, axis=1)
    has_pairs = (np.diff(information.indptr) > 0) & (norms > 1e-9)  # the others are only rounding errors
    share = np.bincount(sentences[sentences >= 0], minlength=num_words) / max(1, int((sentences >= 0).sum()))
    length = np.where(has_pairs, RARE / (RARE + share), 0.0)
    return (vectors * (length / np.maximum(norms, 1e-9))[:, None]).astype(np.float32)


def count_pairs(sentences: np.ndarray, num_words: int) -> Any:
    """How often two words are within `WINDOW` of each other: a symmetric sparse matrix (num_words, num_words)."""
    from scipy import sparse

    counts = sparse.csr_array((num_words, num_words), dtype=np.float64)
    for start in range(0, len(sentences), BLOCK):
        block = sentences[start : start + BLOCK]
        for distance in range(1, min(WINDOW + 1, block.shape[1])):
            first, second = block[:, :-distance], block[:, distance:]
            both = (first >= 0) & (second >= 0)
            pairs = (np.ones(int(both.sum())), (first[both], second[both]))
            counts = counts + sparse.coo_array(pairs, shape=counts.shape).tocsr()
    return (counts + counts.T).tocsr()


def positive_information(counts: Any) -> Any:
    """max(0, log p(a, b) / (p(a) p(b))) of each pair that occurs, p(b) of smoothed counts: sparse, as `counts`."""
    from scipy import sparse

    pairs = counts.tocoo()
    if not pairs.nnz:
        return counts
    of_word = np.asarray(counts.sum(axis=1)).ravel()
    smoothed = of_word**SMOOTHING
    share = smoothed / smoothed.sum()
    information = np.log(pairs.data / (of_word[pairs.row] * share[pairs.col]))
    kept = information > 0
    return sparse.coo_array((information[kept], (pairs.row[kept], pairs.col[kept])), shape=counts.shape).tocsr()
