"""AdaCore: gradients preconditioned by a damped curvature diagonal, both smoothed over selections.

    g~ = g_bar / ((D_bar + damping) / (1 + damping)),   D_bar = sqrt(ema of D^2), g_bar = ema of g, bias-corrected

The diagonal D is one vector per class: the mean diagonal of the softmax Hessian, or Hutchinson's estimate of it. With
unit curvature the divisor is exactly 1, so the selection is CRAIG's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from synthsieve.selection.kernels.blocks import rows_by_class
from synthsieve.selection.options import Curvature

GRADIENT_DECAY, CURVATURE_DECAY = 0.9, 0.99  # of the moving averages, per selection


@dataclass(frozen=True)
class CurvatureState:
    """Moving averages carried from one selection to the next, and how many values each average has.

    Attributes:
        gradients: float64 (n, num_classes), their bias-corrected average; None before the first.
        squared_diagonal: float64 (num_labels, num_classes), the average of the squared diagonal, one row per label.
    """

    gradients: np.ndarray | None = None
    squared_diagonal: np.ndarray | None = None
    gradient_updates: int = 0
    diagonal_updates: int = 0

    def for_other_points(self) -> CurvatureState:
        """The state for a pool of other points: the curvature is kept, the average of the gradients dropped."""
        return CurvatureState(None, self.squared_diagonal, 0, self.diagonal_updates)


def hutchinson_diagonal(
    hessian_product: Callable[[np.ndarray], np.ndarray], num_dims: int, num_probes: int, *, rng: np.random.Generator
) -> np.ndarray:
    """mean over probes of v * (H v), v with random signs: an unbiased estimate of diag(H), (num_dims,)."""
    total = np.zeros(num_dims)
    for _ in range(num_probes):
        signs = rng.choice([-1.0, 1.0], size=num_dims)
        total += signs * hessian_product(signs)
    return total / num_probes


def class_diagonal(
    residuals: np.ndarray, labels: np.ndarray, curvature: Curvature, *, rng: np.random.Generator, num_probes: int = 16
) -> np.ndarray:
    """The mean over each label's rows of the diagonal of diag(p) - p p', (num_classes, num_classes); ones for `unit`.

    The diagonal is p_k (1 - p_k); Hutchinson's estimate uses products with the matrix alone.
    """
    num_classes = residuals.shape[1]
    if curvature is Curvature.UNIT:
        return np.ones((num_classes, num_classes))
    diagonal = np.zeros((num_classes, num_classes))
    for label, rows in zip(*rows_by_class(labels), strict=True):
        p = residuals[rows]
        rest = 1.0 - p
        p[:, label], rest[:, label] = 1.0 + p[:, label], -p[:, label]  # both without loss of digits
        if curvature is Curvature.SOFTMAX:
            diagonal[label] = (p * rest).mean(axis=0)
        else:

            def product(v: np.ndarray, p: np.ndarray = p) -> np.ndarray:
                mean: np.ndarray = (p * v - p * (p @ v)[:, None]).mean(axis=0)
                return mean

            diagonal[label] = hutchinson_diagonal(product, num_classes, num_probes, rng=rng)
    return diagonal


def precondition(
    residuals: np.ndarray,
    labels: np.ndarray,
    diagonal: np.ndarray,
    state: CurvatureState | None = None,
    *,
    damping: float = 1e-2,
) -> tuple[np.ndarray, CurvatureState]:
    """Smooth the gradients and the diagonal with `state`, and divide one by the other, damped: (n, num_classes)."""
    state = state or CurvatureState()
    updates = (state.gradient_updates + 1, state.diagonal_updates + 1)
    gradients = _average(state.gradients, residuals, GRADIENT_DECAY, updates[0])
    squares = _average(state.squared_diagonal, diagonal**2, CURVATURE_DECAY, updates[1])
    divisor = (np.sqrt(squares) + damping) / (1.0 + damping)
    return gradients / divisor[labels], CurvatureState(gradients, squares, *updates)


def _average(average: np.ndarray | None, value: np.ndarray, decay: float, updates: int) -> np.ndarray:
    """The exponential moving average with its bias corrected; the first value is returned bit for bit."""
    if average is None or updates == 1:
        return np.array(value, dtype=np.float64)
    return average + (value - average) * ((1.0 - decay) / (1.0 - decay**updates))
