"""Bootstrap resampling of paired answers, and standard errors of paired differences.

Seeds may share their examples (crossed resampling) or have separate ones (nested resampling).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from synthsieve.evaluation.answers import Answers
from synthsieve.evaluation.metrics import log_losses, weighted_metric
from synthsieve.io.random_streams import numpy_stream
from synthsieve.settings import Metric

CURVE_RESAMPLES = 500  # for metrics that sort the examples of every resample
_BLOCK = 100  # resamples at a time: their counts of 26,032 examples take 10 MB


def strata_of(runs: Sequence[Answers], metric: Metric) -> list[np.ndarray]:
    """For each seed the stratum (n,) of each example: its class, or one for all with accuracy."""
    if metric is Metric.ACCURACY:
        return [np.zeros(len(run), dtype=np.int64) for run in runs]
    return [np.unique(run.y, return_inverse=True)[1] for run in runs]


def effective_size(runs: Sequence[Answers], metric: Metric, *, shared_items: bool) -> float:
    """The number of examples that one added answer is divided by; smaller with balanced accuracy.

    With balanced accuracy one answer of class c counts 1 / (K n_c): n = sqrt(K^3 / sum_c n_c^-2).
    """
    size = float(len(runs[0]) if shared_items else sum(len(run) for run in runs))
    if metric is Metric.BALANCED_ACCURACY:
        counts = np.bincount(strata_of(runs[:1], metric)[0]).astype(np.float64)
        size *= math.sqrt(len(counts) ** 3 / (1 / counts**2).sum()) / counts.sum()
    return size


def paired_differences(given: Mapping[str, Sequence[Answers]], baseline: str) -> dict[str, list[np.ndarray]]:
    """d of every arm but the baseline: int8 (n_s,) for each seed, values -1, 0, 1."""
    hits = {name: [run.right.astype(np.int8) for run in runs] for name, runs in given.items()}
    return {
        name: [arm - base for arm, base in zip(runs, hits[baseline], strict=True)]
        for name, runs in hits.items()
        if name != baseline
    }


def resample_nested(
    differences: Sequence[np.ndarray], weights: np.ndarray, strata: Sequence[np.ndarray], *, rng: np.random.Generator
) -> np.ndarray:
    """Resampled differences where each seed has separate examples: float64 (resamples,).

    d is -1, 0 or 1, so the sum of draws is (ones - minus ones) of a multinomial.
    """
    total = np.zeros(len(weights))
    for s, (d, group) in enumerate(zip(differences, strata, strict=True)):
        groups = np.unique(group)
        for one in groups:
            members = d[group == one]
            counts = np.array([np.count_nonzero(members == value) for value in (0, 1, -1)])
            drawn = rng.multinomial(weights[:, s] * len(members), counts / len(members))  # (resamples, 3)
            total += (drawn[:, 1] - drawn[:, 2]) / (len(members) * len(groups))
    return total / len(differences)


def resample_crossed(
    differences: Mapping[str, Sequence[np.ndarray]],
    weights: np.ndarray,
    strata: np.ndarray,
    *,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Resampled differences where all seeds share their examples: float64 (resamples,) for each arm.

    All arms see the same resamples, which are computed a block at a time.
    """
    num_seeds, groups = weights.shape[1], np.unique(strata)
    share = np.empty(len(strata))
    for one in groups:
        share[strata == one] = 1 / (np.count_nonzero(strata == one) * len(groups))
    columns = np.concatenate([np.stack(each, axis=1) for each in differences.values()], axis=1) * share[:, None]
    draws = np.empty((len(weights), len(differences)))
    for start in range(0, len(weights), _BLOCK):
        block = weights[start : start + _BLOCK]
        counts = np.stack([_drawn_counts(strata, groups, rng=rng) for _ in block])
        sums = (counts @ columns).reshape(len(block), len(differences), num_seeds)
        draws[start : start + len(block)] = np.einsum("bas,bs->ba", sums, block) / num_seeds
    return dict(zip(differences, draws.T, strict=True))


def _drawn_counts(strata: np.ndarray, groups: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
    """How often each example is drawn, within its group: float64 (n,)."""
    counts = np.zeros(len(strata))
    for one in groups:
        rows = np.flatnonzero(strata == one)
        counts[rows] = np.bincount(rng.integers(0, len(rows), len(rows), dtype=np.int32), minlength=len(rows))
    return counts


def resample_metric(
    given: Mapping[str, Sequence[Answers]],
    baseline: str,
    weights: np.ndarray,
    metric: Metric,
    shared_items: bool,
    *,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Resampled differences of a metric of all examples together: float64 (resamples,) for each arm.

    Examples are drawn within their class, so that no class is lost.
    """
    strata = strata_of(given[baseline], Metric.BALANCED_ACCURACY)
    draws = {name: np.zeros(len(weights)) for name in given if name != baseline}
    losses = {name: [log_losses(run.y, run.probabilities) for run in each] for name, each in given.items()}

    def value(name: str, s: int, counts: np.ndarray) -> float:
        if metric is Metric.LOG_LOSS:
            return -float(np.average(losses[name][s], weights=counts))
        return weighted_metric(metric, given[name][s].y, given[name][s].probabilities, counts)

    for number, drawn in enumerate(weights):
        for s in np.flatnonzero(drawn) if not shared_items else range(weights.shape[1]):
            if s == 0 or not shared_items:
                counts = _drawn_counts(strata[s], np.unique(strata[s]), rng=rng)
            if drawn[s]:
                base = value(baseline, int(s), counts)
                for name in draws:
                    draws[name][number] += drawn[s] * (value(name, int(s), counts) - base) / weights.shape[1]
    return draws


def percentile_interval(draws: np.ndarray) -> tuple[float, float]:
    """The middle 95 % of the draws, rounded outwards to draws; rounding errors around zero are removed."""
    draws = np.round(draws, 12)
    low, high = np.quantile(draws, 0.025, method="lower"), np.quantile(draws, 0.975, method="higher")
    return float(low), float(high)


def two_sided_p_value(draws: np.ndarray) -> float:
    """2 min(share of draws <= 0, share of draws >= 0), at most 1, with one draw at zero added."""
    draws, total = np.round(draws, 12), len(draws) + 1
    below, above = 1 + np.count_nonzero(draws <= 0), 1 + np.count_nonzero(draws >= 0)
    return float(min(1.0, 2 * min(below, above) / total))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction of p-values for their number: p_(k) becomes max over j <= k of (m - j + 1) p_(j), at most 1."""
    corrected, highest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = highest
    return corrected


def standard_errors(
    given: Mapping[str, Sequence[Answers]], baseline: str, metric: Metric, *, shared_items: bool
) -> dict[str, float]:
    """Of each arm's mean difference, over examples.

    Accuracy: sqrt(sum_s var_s / n_s) / S, or sqrt(var / n) of the means over seeds with shared examples;
    balanced accuracy: the same within each class; other metrics: the standard deviation of resamples.
    """
    if metric not in (Metric.ACCURACY, Metric.BALANCED_ACCURACY):
        weights = np.ones((CURVE_RESAMPLES, len(given[baseline])), dtype=np.int64)
        draws = resample_metric(given, baseline, weights, metric, shared_items, rng=numpy_stream(0, "choice"))
        return {name: float(each.std(ddof=1)) for name, each in draws.items()}
    strata = strata_of(given[baseline], metric)
    errors = {}
    for name, each in paired_differences(given, baseline).items():
        differences = [np.mean(each, axis=0)] if shared_items else each
        variance = sum(_variance_of_mean(d, group) for d, group in zip(differences, strata, strict=False))
        errors[name] = math.sqrt(variance) / len(differences)
    return errors


def _variance_of_mean(d: np.ndarray, strata: np.ndarray) -> float:
    """Of the mean of group means: 1/G^2 sum_g var_g / n_g; a group of one takes the variance of all."""
    groups = np.unique(strata)
    parts = [d[strata == one] for one in groups]
    each = [(part if len(part) > 1 else d).var(ddof=1) / len(part) for part in parts]
    return float(sum(each)) / len(groups) ** 2
