"""Entropy of a classifier's output, and the filter by it.

    H = -sum_k p_k log p_k, in nats, p = softmax(logits)

Useful ceilings lie far below the resolution of float32: at H = 1e-6 the largest probability rounds to one. So
everything here is float64, and 1 - p is always the sum of the others, never a subtraction.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from synthsieve.errors import SelectionError, SynthsieveWarning
from synthsieve.selection.kernels.blocks import row_blocks, rows_by_class
from synthsieve.selection.options import SelectionOptions, check_filter


class PrecisionWarning(SynthsieveWarning):
    """The precision of the input is too low for the ceiling."""


class Reason(IntEnum):
    """The outcome of a row: rejected by the filter and why, kept by it, or kept and then selected as well."""

    KEPT = 0
    HIGH_ENTROPY = 1
    OTHER_LABEL = 2
    BY_HAND = 3
    SELECTED = 4
    COPY = 5
    LOW_QUALITY = 6
    OUTLIER = 7

    def describe(self) -> str:
        return DESCRIPTIONS[self]


DESCRIPTIONS = {
    Reason.SELECTED: "selected",
    Reason.KEPT: "not selected: a selected one represents it",
    Reason.HIGH_ENTROPY: "entropy not below the ceiling",
    Reason.OTHER_LABEL: "the classifier gives another label",
    Reason.BY_HAND: "rejected by hand",
    Reason.COPY: "a copy of a row of the reference",
    Reason.LOW_QUALITY: "quality below the floor",
    Reason.OUTLIER: "an outlier: far from its nearest rows",
}
# Reasons that a training run rejects its samples for; `select` has three more.
REJECTED = (Reason.HIGH_ENTROPY, Reason.OTHER_LABEL, Reason.BY_HAND)


def outcome_codes(reason: np.ndarray, selected: np.ndarray) -> np.ndarray:
    """Each row's outcome as the number of a `Reason`: int8 (n,), from the filter's reasons and a mask, (n,) each."""
    return np.where(selected, Reason.SELECTED, reason).astype(np.int8)


@dataclass(frozen=True)
class Survivors:
    """The outcome of the filter: a `Reason` for each row, int8 (n,), and the ceiling applied, infinity if none."""

    reason: np.ndarray
    ceiling: float

    @property
    def kept(self) -> np.ndarray:
        """bool (n,)"""
        return self.reason == Reason.KEPT


@dataclass(frozen=True)
class CeilingSearch:
    """The ceiling with the best validation score, and the score of each ceiling tried."""

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
        with np.errstate(over="ignore"):  # a gap beyond float64 is a probability of 0
            below = block - np.take_along_axis(block, top, axis=1)
        ratios = np.exp(below)
        np.put_along_axis(ratios, top, 0.0, axis=1)
        rest = ratios.sum(axis=1)
        terms = ratios * np.where(ratios > 0.0, -below, 0.0)
        entropy[part] = np.log1p(rest) + terms.sum(axis=1) / (1.0 + rest)
    return entropy


def entropy_of_probabilities(probabilities: np.ndarray, *, entropy_ceiling: float | None = None) -> np.ndarray:
    """Entropy in nats of each row, float64 (n,); the largest probability is taken as one less the sum of the others.

    Warns if the ceiling is below what the dtype can resolve.
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


def entropy_of(output: np.ndarray, kind: str, *, entropy_ceiling: float | None = None) -> np.ndarray:
    """Entropy in nats of each row of "logits" or "probabilities", float64 (n,)."""
    if kind == "logits":
        return entropy_of_logits(output)
    return entropy_of_probabilities(output, entropy_ceiling=entropy_ceiling)


def lowest_resolved(dtype: np.dtype) -> float:
    """The entropy at which 1 - p reaches half the spacing of `dtype` just below one."""
    half = float(np.finfo(dtype).epsneg) if np.issubdtype(dtype, np.floating) else float(np.finfo(np.float64).epsneg)
    return half * (1.0 - np.log(half))


def filter_by_entropy(
    entropy: np.ndarray,
    labels: np.ndarray,
    *,
    entropy_ceiling: float | None = None,
    keep_fraction: float | None = None,
    keep_per_class: bool = False,
    predicted: np.ndarray | None = None,
) -> Survivors:
    """Keep the rows with entropy below `entropy_ceiling`, or the `keep_fraction` of lowest entropy.

    Args:
        entropy: float64 (n,), in nats.
        labels: integers (n,).
        entropy_ceiling: rows at or above it are rejected.
        keep_fraction: in (0, 1]; among equal entropies the earlier rows are kept.
        keep_per_class: apply `keep_fraction` within each class.
        predicted: integers (n,); if given, rows whose prediction is not their label are rejected, too.
    """
    check_filter(entropy_ceiling, keep_fraction, keep_per_class=keep_per_class)
    eligible = np.ones(len(entropy), dtype=bool) if predicted is None else predicted == labels
    reason = np.where(eligible, Reason.KEPT, Reason.OTHER_LABEL).astype(np.int8)
    applied = np.inf
    if entropy_ceiling is not None:
        applied = entropy_ceiling
        reason[eligible & ~(entropy < entropy_ceiling)] = Reason.HIGH_ENTROPY
    elif keep_fraction is not None:
        groups = rows_by_class(labels)[1] if keep_per_class else [np.arange(len(entropy))]
        for group in groups:
            rows = group[eligible[group]]
            count = max(1, int(np.ceil(keep_fraction * len(group) - 1e-9)))
            reason[rows[np.argsort(entropy[rows], kind="stable")[count:]]] = Reason.HIGH_ENTROPY
        kept = entropy[reason == Reason.KEPT]
        applied = float(np.nextafter(kept.max(), np.inf)) if len(kept) else np.inf
    survivors = Survivors(reason, float(applied))
    if len(entropy) and not survivors.kept.any():
        raise SelectionError(
            empty_filter_message(float(entropy[eligible].min(initial=np.inf)), entropy_ceiling), code="no-survivors"
        )
    return survivors


def filter_rows(entropy: np.ndarray, labels: np.ndarray, predicted: np.ndarray, options: SelectionOptions) -> Survivors:
    """`filter_by_entropy` with the given options."""
    return filter_by_entropy(
        entropy,
        labels,
        entropy_ceiling=options.entropy_ceiling,  # type: ignore[arg-type]
        keep_fraction=options.keep_fraction,
        keep_per_class=options.keep_per_class,
        predicted=predicted if options.require_label else None,
    )


def search_ceiling(
    entropy: np.ndarray, score: Callable[[float], float], *, ceilings: Sequence[float] | None = None
) -> CeilingSearch:
    """The ceiling of highest validation score, the lowest among equals: the paper's grid search.

    The default `ceilings` keep 5, 10, 20, 40, 60, 80 and 100 % of the rows.
    """
    if ceilings is None:
        quantiles = np.quantile(entropy, [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0])
        ceilings = [float(np.nextafter(value, np.inf)) for value in np.unique(quantiles)]
    ceilings = sorted(ceilings)
    if not ceilings:
        raise SelectionError(
            "expected at least one ceiling to try, got none: leave ceilings out for a default grid", code="ceilings"
        )
    values = [score(ceiling) for ceiling in ceilings]
    scores = np.full(len(values), np.nan)
    with contextlib.suppress(TypeError, ValueError):
        scores[:] = [float(value) for value in values]
    if np.isnan(scores).any():
        raise SelectionError(
            f"expected a number as the score of each ceiling, got {values[:3]}: check ceiling_score",
            code="ceiling-score",
        )
    return CeilingSearch(ceilings[int(np.argmax(scores))], tuple(ceilings), tuple(scores.tolist()))


def empty_filter_message(lowest: float, ceiling: float | None) -> str:
    """Why no row survives; `lowest` is the lowest entropy of rows with the right label, infinity without any."""
    if not np.isfinite(lowest):
        return "no row is predicted as its own label: check the label order, train longer, or leave require_label out"
    return (
        f"no sample under entropy_ceiling={ceiling:g} (lowest was {lowest:.3g}): "
        "raise the ceiling, train longer, or use keep_fraction (--keep-fraction)"
    )
