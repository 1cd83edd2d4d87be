"""The plain algorithms, from the definitions: a full distance matrix, every gain at every step."""

import numpy as np


def distances(points, split=None):
    points = np.asarray(points, dtype=np.float64)
    if split is not None:
        points = (points[:, :split, None] * points[:, None, split:]).reshape(len(points), -1)
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))


def naive_greedy(matrix, count, weight=None):
    """Picks of greedy facility location, the lowest index among equals."""
    weight = np.ones(len(matrix)) if weight is None else weight
    reach, picks = np.full(len(matrix), matrix.max() + 1.0), []
    for _ in range(count):
        gains = (weight[:, None] * np.maximum(0.0, reach[:, None] - matrix)).sum(axis=0)
        gains[picks] = -1.0
        picks.append(int(np.argmax(gains)))
        reach = np.minimum(reach, matrix[:, picks[-1]])
    return picks


def bound(matrix, picks, weight=None):
    nearest = matrix[:, picks].min(axis=1)
    return float(nearest.sum() if weight is None else weight @ nearest)


def gradients(n, seed=0, num_classes=10):
    """Skewed gradients of one class, as a classifier leaves them."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, num_classes)) * 1.5 + np.linspace(-0.5, 0.5, num_classes)
    logits[:, 0] += 2.0
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[:, 0] -= 1.0
    return p
