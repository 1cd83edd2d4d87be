"""Gradients of the cross-entropy in the last layer, exact where the classifier is nearly certain.

    g = p - y, p = softmax(logits), y one-hot

At 1 - p_y = 1e-14 subtracting 1 would leave two digits, so the label's component is minus the sum of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synthsieve.selection.kernels.blocks import row_blocks


@dataclass(frozen=True)
class OuterProducts:
    """Gradients of a last layer's weights, (p - y) h', kept as their two factors.

    Attributes:
        residuals: float (n, num_classes), p - y.
        features: float (n, num_features), the input of the last layer.
    """

    residuals: np.ndarray
    features: np.ndarray

    def joined(self) -> tuple[np.ndarray, int]:
        """Both factors side by side, (n, num_classes + num_features), and the column where the features begin.

        Where one factor is zero so is the product: both are made zero, so that such rows count as equal.
        """
        both, split = np.concatenate([self.residuals, self.features], axis=1), self.residuals.shape[1]
        both[~(both[:, :split].any(axis=1) & both[:, split:].any(axis=1))] = 0.0
        return both, split


def residuals_of(output: np.ndarray, kind: str, labels: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """p - y from "logits" or "probabilities": see `residuals_of_logits` and `residuals_of_probabilities`."""
    return (residuals_of_logits if kind == "logits" else residuals_of_probabilities)(output, labels, rows)


def residuals_of_logits(logits: np.ndarray, labels: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """softmax(logits) - one_hot(labels): float64 (n, num_classes), relative error below 1e-12 in every component.

    With `rows`, only of those rows of the logits; `labels` are the labels of those rows.
    """
    residuals = np.empty((len(labels), logits.shape[1]))
    for part in row_blocks(*residuals.shape):
        p = residuals[part]
        p[...] = logits[part if rows is None else rows[part]]
        with np.errstate(over="ignore"):  # a gap beyond float64 is a probability of 0
            p -= p.max(axis=1, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=1, keepdims=True)
        _subtract_one_hot(p, labels[part])
    return residuals


def residuals_of_probabilities(
    probabilities: np.ndarray, labels: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """probabilities - one_hot(labels), float64; each label's component is minus the sum of the others.

    With `rows`, only of those rows; `labels` are the labels of those rows.
    """
    residuals = np.empty((len(labels), probabilities.shape[1]))
    for part in row_blocks(*residuals.shape):
        residuals[part] = probabilities[part if rows is None else rows[part]]
        _subtract_one_hot(residuals[part], labels[part])
    return residuals


def _subtract_one_hot(p: np.ndarray, labels: np.ndarray) -> None:
    """p - y in place: -exp(log(1 - p_y)) at the label, with 1 - p_y as the sum of the others."""
    column = labels[:, None]
    np.put_along_axis(p, column, 0.0, axis=1)
    np.put_along_axis(p, column, -p.sum(axis=1, keepdims=True), axis=1)
