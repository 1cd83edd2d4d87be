"""Entropy of a classifier's answer, and who lies under the ceiling.

    H = -sum_k p_k log p_k, in nats, p = softmax(logits)

The ceilings that matter lie far below float32: at H = 1e-6 the largest probability rounds to one. So everything here
is float64, and 1 - p is always the sum of the others, never a subtraction.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.selection.blocks import row_blocks, rows_by_class


class PrecisionWarning(UserWarning):
    """The numbers given cannot tell what is asked of them."""


class Reason(IntEnum):
    """Why a row was kept or rejected."""

    KEPT = 0
    HIGH_ENTROPY = 1
    OTHER_LABEL = 2
    BY_HAND = 3

    def in_words(self) -> str:
        words = ("kept", "entropy not below the ceiling", "the classifier gives another label", "rejected by hand")
        return words[self]


@dataclass(frozen=True)
class Survivors:
    """Who passed the filter.

    Attributes:
        reason: int8 (n,), a `Reason` for each row.
        ceiling: the entropy ceiling applied; infinity if none was asked for.
    """

    reason: np.ndarray
    ceiling: float

    @property
    def kept(self) -> np.ndarray:
        """bool (n,)"""
        return self.reason == Reason.KEPT


@dataclass(frozen=True)
class CeilingSearch:
    """What a search for the ceiling found: the best ceiling, and the validation score of each one tried."""

    ceiling: float
    ceilings: tuple[float, ...]
    scores: tuple[float, ...]


def entropy_of_logits(logits: np.ndarray) -> np.ndarray:
    """Entropy in nats of softmax(logits): float64 (n,) from (n, num_classes), relative error below 1e-12.

    H = log(1 + r) + sum_{k != top} p_k (top - logit_k), r = sum_{k != top} exp(logit_k - top): no term is negative.
    """
    logits = np.asarray(logits)
    entropy = np.empty(len(logits))
    for part in row_blocks(*logits.shape):
        block = np.asarray(logits[part], dtype=np.float64)
        top = block.argmax(axis=1)[:, None]
        with np.errstate(over="ignore"):  # a gap beyond float64 is a probability of nothing
            below = block - np.take_along_axis(block, top, axis=1)
        ratios = np.exp(below)
        np.put_along_axis(ratios, top, 0.0, axis=1)
        rest = ratios.sum(axis=1)
        terms = ratios * np.where(ratios > 0.0, -below, 0.0)
        entropy[part] = np.log1p(rest) + terms.sum(axis=1) / (1.0 + rest)
    return entropy


def entropy_of_probabilities(probabilities: np.ndarray, *, entropy_ceiling: float | None = None) -> np.ndarray:
    """Entropy in nats of each row, float64 (n,); the largest probability is taken as one less the sum of the others.

    Warns when float32 probabilities are asked for a ceiling they cannot resolve.
    """
    probabilities = np.asarray(probabilities)
    resolution = lowest_resolved(probabilities.dtype)
    if entropy_ceiling is not None and entropy_ceiling < resolution:
        warnings.warn(
            f"{probabilities.dtype} probabilities resolve entropies down to {resolution:.1e} only, "
            f"and entropy_ceiling={entropy_ceiling:g} is below that: pass logits, or float64 probabilities",
            PrecisionWarning,
            stacklevel=2,
        )
    entropy = np.empty(len(probabilities))
    for part in row_blocks(*probabilities.shape):
        block = np.array(probabilities[part], dtype=np.float64)
        top = block.argmax(axis=1)[:, None]
        np.put_along_axis(block, top, 0.0, axis=1)
        rest = np.minimum(block.sum(axis=1), 1.0)
        logs = np.log(block, out=np.zeros_like(block), where=block > 0.0)
        largest = 1.0 - rest
        log_largest = np.log1p(-rest, out=np.zeros_like(rest), where=rest < 1.0)
        entropy[part] = -(block * logs).sum(axis=1) - largest * log_largest
    return entropy


def lowest_resolved(dtype: np.dtype) -> float:
    """The entropy at which 1 - p reaches half the spacing of `dtype` just below one."""
    half = float(np.finfo(dtype).epsneg) if np.issubdtype(dtype, np.floating) else float(np.finfo(np.float64).epsneg)
    return half * (1.0 - np.log(half))


def filter_by_entropy(
    entropy: np.ndarray,
    labels: np.ndarray,
    *,
    ceiling: float | None = None,
    keep_fraction: float | None = None,
    per_class: bool = False,
    predicted: np.ndarray | None = None,
) -> Survivors:
    """Keep the rows whose entropy is below `ceiling`, or the `keep_fraction` of lowest entropy (overall or per class).

    Args:
        entropy: float64 (n,), in nats.
        labels: int64 (n,).
        ceiling: rows at or above it are rejected.
        keep_fraction: in (0, 1]; among equal entropies the earlier rows are kept.
        per_class: apply `keep_fraction` within each class.
        predicted: int64 (n,); if given, a row must also be predicted as its own label.
    """
    check_filter(ceiling, keep_fraction)
    eligible = np.ones(len(entropy), dtype=bool) if predicted is None else predicted == labels
    reason = np.where(eligible, Reason.KEPT, Reason.OTHER_LABEL).astype(np.int8)
    applied = np.inf
    if ceiling is not None:
        applied = ceiling
        reason[eligible & ~(entropy < ceiling)] = Reason.HIGH_ENTROPY
    elif keep_fraction is not None:
        groups = rows_by_class(labels)[1] if per_class else [np.arange(len(entropy))]
        for group in groups:
            rows = group[eligible[group]]
            count = max(1, int(np.ceil(keep_fraction * len(group) - 1e-9)))
            reason[rows[np.argsort(entropy[rows], kind="stable")[count:]]] = Reason.HIGH_ENTROPY
        kept = entropy[reason == Reason.KEPT]
        applied = float(np.nextafter(kept.max(), np.inf)) if len(kept) else np.inf
    survivors = Survivors(reason, float(applied))
    if len(entropy) and not survivors.kept.any():
        raise SelectionError(nobody(float(entropy[eligible].min(initial=np.inf)), ceiling))
    return survivors


def check_filter(ceiling: float | None, keep_fraction: float | None) -> None:
    """Refuse a filter that cannot be."""
    if ceiling is not None and keep_fraction is not None:
        raise SelectionError("expected an entropy_ceiling or a keep_fraction, got both: leave one out")
    if ceiling is not None and not ceiling > 0:
        raise SelectionError(f"expected entropy_ceiling above 0 nats, got {ceiling:g}: try 1e-6, or use keep_fraction")
    if keep_fraction is not None and not 0 < keep_fraction <= 1:
        raise SelectionError(f"expected keep_fraction in (0, 1], got {keep_fraction:g}: 0.1 keeps a tenth")


def search_ceiling(
    entropy: np.ndarray, score: Callable[[float], float], *, ceilings: Sequence[float] | None = None
) -> CeilingSearch:
    """The ceiling of highest validation score, the lowest among equals: the paper's grid search.

    Without `ceilings`, those tried keep 5, 10, 20, 40, 60, 80 and 100 % of the rows.
    """
    if ceilings is None:
        quantiles = np.quantile(entropy, [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0])
        ceilings = [float(np.nextafter(value, np.inf)) for value in np.unique(quantiles)]
    ceilings = sorted(ceilings)
    if not ceilings:
        raise SelectionError("expected at least one ceiling to try, got none: leave ceilings out for a default grid")
    scores = [_as_score(score(ceiling)) for ceiling in ceilings]
    if np.isnan(scores).any():
        raise SelectionError("expected a number as every ceiling's score, got nan: check the callable given for auto")
    return CeilingSearch(ceilings[int(np.argmax(scores))], tuple(ceilings), tuple(scores))


def _as_score(value: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise SelectionError(
            f"expected a number as every ceiling's score, got {value!r}: check the callable given for auto"
        ) from None


def nobody(lowest: float, ceiling: float | None) -> str:
    """What to say when no row survives; `lowest` is the lowest entropy of those with the right label, if any."""
    if not np.isfinite(lowest):
        return "no row is predicted as its own label: check the label order, train longer, or leave require_label out"
    return (
        f"no sample under entropy_ceiling={ceiling:g} (lowest was {lowest:.3g}): "
        "raise the ceiling, train longer, or use keep_fraction (--keep-fraction)"
    )
