"""Gradients of the cross-entropy in the last layer, exact where the classifier is nearly certain.

    g = p - y, p = softmax(logits), y one-hot

At 1 - p_y = 1e-14 subtracting 1 would leave two digits, so the label's component is minus the sum of the others.
"""

from __future__ import annotations

import numpy as np

from synthsieve.selection.kernels.blocks import row_blocks


def residuals_of(output: np.ndarray, kind: str, labels: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """p - y from "logits" or "probabilities": float64 (n, num_classes), relative error below 1e-12 everywhere.

    With `rows`, only of those rows of the output; `labels` are the labels of those rows.
    """
    residuals = np.empty((len(labels), output.shape[1]))
    for part in row_blocks(*residuals.shape):
        p, column = residuals[part], labels[part][:, None]
        p[...] = output[part if rows is None else rows[part]]
        if kind == "logits":
            with np.errstate(over="ignore"):  # a gap beyond float64 is a probability of 0
                p -= p.max(axis=1, keepdims=True)
            np.exp(p, out=p)
            p /= p.sum(axis=1, keepdims=True)
        np.put_along_axis(p, column, 0.0, axis=1)
        np.put_along_axis(p, column, -p.sum(axis=1, keepdims=True), axis=1)
    return residuals


def residuals_of_logits(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """softmax(logits) - one_hot(labels): see `residuals_of`."""
    return residuals_of(logits, "logits", labels)


def outer_product_factors(residuals: np.ndarray, features: np.ndarray) -> np.ndarray:
    """The factors of the gradients (p - y) h' of a last layer side by side, (n, num_classes + num_features).

    Where one factor is zero so is the product: both are made zero, so that such rows count as equal.
    """
    both, split = np.concatenate([residuals, features], axis=1), residuals.shape[1]
    both[~(both[:, :split].any(axis=1) & both[:, split:].any(axis=1))] = 0.0
    return both
