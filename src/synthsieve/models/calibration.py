"""From softmax F to probabilities that can be trusted: a temperature, and the class prior that is predicted under."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar

RANGE = (0.1, 20.0)  # of temperatures
MAX_SHOWN = 6  # classes in a sentence
SPREAD = 0.5  # of log T: a few rows hardly move T from 1
SMALLEST = 1e-45  # of float32
MAX_OFFSET = 1.0  # nats: predictions without doubt must not be moved by shares that few labels give


@dataclass(frozen=True)
class Calibration:
    """p'(y given x) proportional to p(y given x)^(1/T) exp(offset_y).

    Attributes:
        temperature: T, which does not change the predicted class.
        rows: how many labelled rows T was fitted to; 0 where it was not fitted.
        source: where these rows come from: `validation`, `cross-fitting`, or `none`.
        offsets: of each class, (num_classes,); empty is 0 for all.
        class_prior: the share of each class that is predicted under; empty where the model's own is.
    """

    temperature: float = 1.0
    rows: int = 0
    source: str = "none"
    offsets: tuple[float, ...] = ()
    class_prior: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        values = (self.temperature, *self.offsets, *self.class_prior)
        if not all(math.isfinite(value) for value in values) or not self.temperature > 0 or self.rows < 0:
            raise ValueError(f"a calibration needs finite numbers and a temperature above 0, got {self}")

    def apply(self, probabilities: np.ndarray) -> np.ndarray:
        """The calibrated probabilities: float64 (n, num_classes), rows sum to 1."""
        if self.temperature == 1 and not self.offsets:
            return probabilities
        logs = np.log(np.maximum(probabilities, SMALLEST)) / self.temperature
        return softmax(logs + np.array(self.offsets) if self.offsets else logs)

    def describe(self) -> str:
        """One line for people."""
        text = "probabilities are not calibrated: there are no validation rows"
        if self.source != "none":
            text = (
                f"probabilities are calibrated: temperature {self.temperature:.2f}, by {self.rows:,} {self.source} rows"
            )
        if self.class_prior:
            shares = ", ".join(f"{100 * share:.1f}" for share in self.class_prior[:MAX_SHOWN])
            rest = ", ..." if len(self.class_prior) > MAX_SHOWN else ""
            text += f"; they assume class shares of {shares}{rest} %"
        return text

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**vars(self), "offsets": list(self.offsets), "class_prior": list(self.class_prior)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], num_classes: int) -> Calibration:
        """What `as_dict` gave; ValueError or TypeError where it does not fit."""
        offsets, prior = (tuple(map(float, stored[name])) for name in ("offsets", "class_prior"))
        if any(part and len(part) != num_classes for part in (offsets, prior)):
            raise ValueError("its calibration is of another number of classes")
        return cls(float(stored["temperature"]), int(stored["rows"]), str(stored["source"]), offsets, prior)


def softmax(logits: np.ndarray) -> np.ndarray:
    """(n, num_classes) -> (n, num_classes), rows sum to 1."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: np.ndarray = shifted / shifted.sum(axis=1, keepdims=True)
    return found


def fit_temperature(probabilities: np.ndarray, y: np.ndarray) -> float:
    """T of the lowest Brier score of p^(1/T) on the labels y (n,), plus (log T)^2 / (2 SPREAD^2).

    sum_i norm(p_i^(1/T) / Z - y_i)^2. The likelihood (Guo 2017) depends too much on a few rows that are certain and
    wrong, which no temperature corrects: with 143 rows it made probabilities worse (decision 0305).
    `probabilities` (n, num_classes) are of rows that trained nothing.
    """
    if not len(y) or not np.isfinite(probabilities).all():
        return 1.0
    logs, right = np.log(np.maximum(probabilities, SMALLEST)), np.eye(probabilities.shape[1])[y]

    def loss(log_t: float) -> float:
        return float(np.square(softmax(logs / math.exp(log_t)) - right).sum() + 0.5 * (log_t / SPREAD) ** 2)

    bounds = (math.log(RANGE[0]), math.log(RANGE[1]))
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    return round(math.exp(float(found.x)), 4)


def match_shares(probabilities: np.ndarray, shares: np.ndarray, *, limit: float = MAX_OFFSET) -> np.ndarray:
    """Offsets b with mean over rows of softmax(log p + b) = `shares` (num_classes,), or as near as `limit` lets them.

    Their mean is 0.

    They maximise the concave sum_y shares_y b_y - mean logsumexp(log p + b). `probabilities` (n, num_classes) are of
    rows that occur as often as in the population.
    """
    num_classes = len(shares)
    if not len(probabilities) or not np.isfinite(probabilities).all():
        return np.zeros(num_classes)
    logs = np.log(np.maximum(probabilities, SMALLEST))

    def loss(offsets: np.ndarray) -> tuple[float, np.ndarray]:
        moved = logs + offsets
        top = moved.max(axis=1)
        total = top + np.log(np.exp(moved - top[:, None]).sum(axis=1))
        mean = np.exp(moved - total[:, None]).mean(axis=0)
        return float(total.mean() - shares @ offsets), mean - shares

    limits = [(-limit, limit)] * num_classes
    found = minimize(loss, np.zeros(num_classes), jac=True, method="L-BFGS-B", bounds=limits, options={"ftol": 1e-12})
    return np.asarray(found.x - found.x.mean())


def combine(parts: Sequence[Calibration]) -> Calibration:
    """Of a model trained on all labels, from models that each held out some: the geometric mean of T."""
    fitted = [part for part in parts if part.rows]
    if not fitted:
        return Calibration()
    rows = sum(part.rows for part in fitted)
    mean = sum(part.rows * math.log(part.temperature) for part in fitted) / rows
    return Calibration(round(math.exp(mean), 4), rows, "cross-fitting")
