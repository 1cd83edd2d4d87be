"""Labels of unlabelled x from a graph of nearest neighbours, before any network is trained."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import cg
from scipy.special import softmax
from sklearn.neighbors import NearestNeighbors

from synthsieve.models.calibration import match_shares

MAX_NODES = 10_000  # rows of the graph; others take the mean of their neighbours in it
MAX_LOGIT = 20.0
SHARPNESS = 5.0  # of the solution, in standard deviations, as logits
END = 0.01  # probability that a walk on the graph ends at each step: without it, labels reach through every gap


def graph_labels(
    x_labeled: np.ndarray,
    y: np.ndarray,
    x_unlabeled: np.ndarray,
    *,
    num_classes: int,
    neighbors: int,
    class_shares: np.ndarray | None = None,
    rng: np.random.Generator,
) -> np.ndarray:
    """p(y given x) of unlabelled x by Poisson learning (Calder et al. 2020). float32 (m, num_classes).

    The labels y are sources on a graph that joins each row with its `neighbors` nearest rows, and u solves
    ((1 + 0.01) D - W) u = sum over labelled j of (onehot(y_j) - mean onehot) delta_j. Then each class gets its expected
    share of all rows, as in the balanced form of the method.

    Args:
        x_labeled: (n, ...), compared by Euclidean distance.
        x_unlabeled: (m, ...).
        class_shares: (num_classes,), how often each class is expected; None: all equally often.
    """
    rows = np.concatenate([x_labeled, x_unlabeled]).reshape(len(y) + len(x_unlabeled), -1).astype(np.float32)
    nodes = np.arange(len(rows))
    if len(rows) > MAX_NODES:
        chosen = rng.choice(len(x_unlabeled), max(MAX_NODES - len(y), 0), replace=False)
        nodes = np.concatenate([np.arange(len(y)), len(y) + np.sort(chosen)])
    search = NearestNeighbors(n_neighbors=min(neighbors + 1, len(nodes))).fit(rows[nodes])
    shares = np.full(num_classes, 1 / num_classes) if class_shares is None else class_shares
    logits = _poisson(_weights(*search.kneighbors(rows[nodes])), y, num_classes)
    p = softmax(logits + match_shares(softmax(logits, axis=1), shares, limit=MAX_LOGIT), axis=1)
    found = np.empty((len(rows), num_classes), dtype=np.float32)
    found[nodes] = p
    others = np.setdiff1d(np.arange(len(rows)), nodes)
    if len(others):
        found[others] = p[search.kneighbors(rows[others], n_neighbors=neighbors, return_distance=False)].mean(axis=1)
    return found[len(y) :]


def _weights(distances: np.ndarray, nearest: np.ndarray) -> csr_array:
    """Symmetric edge weights exp(-d_ij^2 / (s_i s_j)), s the distance to the furthest neighbour of the row. (n, n)."""
    count, neighbors = nearest.shape
    scale = np.maximum(distances[:, -1:], np.finfo(np.float32).tiny)
    weights = np.exp(-(distances**2) / (scale * scale[nearest, 0]))
    edges = csr_array((weights.ravel(), (np.repeat(np.arange(count), neighbors), nearest.ravel())), (count, count))
    edges.setdiag(0)
    return edges.maximum(edges.T)


def _poisson(weights: csr_array, y: np.ndarray, num_classes: int) -> np.ndarray:
    """The solution u, centred and scaled, as logits; 0 where no label is connected. The first rows are the labelled."""
    degree = weights.sum(axis=1) + np.finfo(np.float32).tiny
    sources = np.zeros((len(degree), num_classes))
    onehot = np.eye(num_classes)[y]
    sources[: len(y)] = onehot - onehot.mean(axis=0)
    laplacian, scale = diags_array((1 + END) * degree) - weights, diags_array(1 / degree)
    u = np.stack([cg(laplacian, column, rtol=1e-6, M=scale)[0] for column in sources.T], axis=1)
    u -= np.average(u, axis=0, weights=degree)
    _, part = connected_components(weights, directed=False)
    u[~np.isin(part, part[: len(y)])] = 0
    return SHARPNESS * u / (u.std() + np.finfo(np.float32).tiny)
