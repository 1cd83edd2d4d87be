"""Whether synthetic samples are copies of training examples, by the distance to the nearest one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from scipy import stats
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches

from synthsieve.errors import DataError

QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
NEAR = 0.01  # the quantile of held-out distances below which a sample counts as near
MIN_COUNT = 100  # rows of each kind that are needed to detect a share of 1 %
SIGNIFICANCE = 0.01
ROUNDING = 2.0**-22  # relative difference of values that went through float32
CANDIDATES = 8  # neighbours whose distances are computed again without cancellation
MAX_VALUE = np.float64(1e100)  # squares of larger values would overflow
BLOCK_VALUES = 2**20


@dataclass(frozen=True)
class Nearest:
    """The nearest reference of each point."""

    distances: np.ndarray  # float64 (n,), Euclidean
    indices: np.ndarray  # int64 (n,), rows of the references

    def as_dict(self) -> dict[str, list[float] | list[int]]:
        return {"distances": self.distances.tolist(), "indices": self.indices.tolist()}


class CopyVerdict(StrEnum):
    COPIES = "copies suspected"
    NO_SIGN = "no sign of copies"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Memorization:
    """Distances to the nearest training example, of synthetic samples and of held-out real examples."""

    synthetic_quantiles: tuple[float, ...]  # the distances at the levels of `QUANTILES`
    held_out_quantiles: tuple[float, ...]
    threshold: float  # the held-out distance below which a sample counts as near, their 1 % quantile
    near_share: float  # share of synthetic samples nearer to a training example than `threshold`
    expected_share: float  # its mean if synthetic samples were new real examples, 1 % for enough held-out ones
    p_value: float  # probability of such a share or a larger one if they were
    reached_share: float  # share of training examples with a synthetic sample within `threshold`
    reached_held_out_share: float  # the same of held-out examples
    reached_p_value: float  # probability of such a difference if samples knew nothing of single training examples
    # probability that a synthetic sample is nearer to the training set than a held-out example; ties count half
    auc: float
    duplicates: int  # how many equal a training example, up to the rounding of float32
    held_out_duplicates: int
    num_synthetic: int  # number of rows
    num_held_out: int
    verdict: CopyVerdict  # the conclusion

    def describe(self) -> str:
        """One sentence: the verdict and the figures behind it."""
        advice = {
            CopyVerdict.COPIES: "; look at the nearest pairs: samples of dense regions are also near training examples",
            CopyVerdict.NO_SIGN: "",
            CopyVerdict.CANNOT_TELL: f"; give at least {MIN_COUNT} of each",
        }
        return f"{describe_copies(self.as_dict())}{advice[self.verdict]}"

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values, the quantiles as lists."""
        quantiles = {
            "quantile_levels": list(QUANTILES),
            "synthetic_quantiles": list(self.synthetic_quantiles),
            "held_out_quantiles": list(self.held_out_quantiles),
        }
        return {**quantiles, **{name: value for name, value in asdict(self).items() if name not in quantiles}}


def describe_copies(found: Mapping[str, Any]) -> str:
    """`Memorization.as_dict` as a sentence that begins with the verdict and its reason."""
    near, expected = f"{100 * found['near_share']:.1f} %", f"{100 * found['expected_share']:.1f} %"
    count, equal, real = found["num_synthetic"], found["duplicates"], found["held_out_duplicates"]
    shares = f"{near} of the samples lie very near a training example, where {expected} of new real data would"
    if "reached_share" in found and found["near_share"] > found["expected_share"]:
        reached, held_out = (f"{100 * found[name]:.1f} %" for name in ("reached_share", "reached_held_out_share"))
        shares += f"; {reached} of training examples have such a sample, and {held_out} of held-out examples"
    if found["verdict"] == CopyVerdict.CANNOT_TELL:
        few = f"{count:,} samples and {found['num_held_out']:,} held-out examples are too few"
        return f"{CopyVerdict.CANNOT_TELL} whether samples are copies: {few}"
    if not equal:
        return f"{found['verdict']}: {shares}"
    equals = f"{equal:,} of {count:,} samples equal{'s' if equal == 1 else ''} a training example"
    equals += f", as {real:,} of {found['num_held_out']:,} held-out examples do" if real else ""
    if found["verdict"] == CopyVerdict.NO_SIGN:
        return f"{CopyVerdict.NO_SIGN} beyond what the data repeat themselves: {equals}; {shares}"
    if found["near_share"] <= found["expected_share"]:
        return f"{CopyVerdict.COPIES}: {equals}; the other samples show no sign of it ({shares})"
    return f"{CopyVerdict.COPIES}: {equals}; {shares}"


def memorization(synthetic: np.ndarray, train: np.ndarray, held_out: np.ndarray) -> Memorization:
    """How much nearer to `train` (n, d) the samples `synthetic` (m, d) are than real examples `held_out` (h, d).

    near_share = share of synthetic s with min_t norm(s - t) < the r-th smallest held-out distance, r = (h + 1) / 100.
    If synthetic samples were new real examples, their number below it would be beta-binomial (m, r, h - r + 1),
    whatever the distribution of the data. Samples without noise are near all examples, those of training or not. So
    Fisher's exact test also compares how often a training example is that near to a sample with how often a held-out
    one is: without copies the two are exchangeable. Copies are suspected when both are so, or when there are more
    duplicates than among held-out examples; otherwise fewer than 100 rows of either kind cannot tell.
    """
    synthetic, train, held_out = same_space(synthetic=synthetic, train=train, held_out=held_out)
    near_synthetic, near_held_out = nearest_distances(synthetic, train), nearest_distances(held_out, train)
    num_synthetic, num_held_out = len(synthetic), len(held_out)

    rank = max(1, math.floor(NEAR * (num_held_out + 1) + 1e-9))
    threshold = float(np.partition(near_held_out.distances, rank - 1)[rank - 1])
    near = int((near_synthetic.distances < threshold).sum())
    p_value = float(stats.betabinom(num_synthetic, rank, num_held_out - rank + 1).sf(near - 1))
    reached, reached_held_out = (
        int((nearest_distances(rows, synthetic).distances < threshold).sum()) for rows in (train, held_out)
    )
    all_rows, both = len(train) + num_held_out, reached + reached_held_out
    reached_p_value = float(stats.hypergeom(all_rows, both, len(train)).sf(reached - 1))
    duplicates = _duplicates(synthetic, train, near_synthetic)
    held_out_duplicates = _duplicates(held_out, train, near_held_out)
    copied = duplicates > 0
    if held_out_duplicates:  # more often than held-out rows, by Fisher's exact test
        both = duplicates + held_out_duplicates
        copied = stats.hypergeom(num_synthetic + num_held_out, both, num_synthetic).sf(duplicates - 1) < SIGNIFICANCE
    if copied or max(p_value, reached_p_value) < SIGNIFICANCE:
        verdict = CopyVerdict.COPIES
    else:
        verdict = CopyVerdict.NO_SIGN if min(num_synthetic, num_held_out) >= MIN_COUNT else CopyVerdict.CANNOT_TELL
    nearer = stats.mannwhitneyu(near_held_out.distances, near_synthetic.distances, method="asymptotic").statistic
    return Memorization(
        synthetic_quantiles=tuple(np.quantile(near_synthetic.distances, QUANTILES).tolist()),
        held_out_quantiles=tuple(np.quantile(near_held_out.distances, QUANTILES).tolist()),
        threshold=threshold,
        near_share=near / num_synthetic,
        expected_share=rank / (num_held_out + 1),
        p_value=p_value,
        reached_share=reached / len(train),
        reached_held_out_share=reached_held_out / num_held_out,
        reached_p_value=reached_p_value,
        auc=float(nearer / (num_synthetic * num_held_out)),
        duplicates=duplicates,
        held_out_duplicates=held_out_duplicates,
        num_synthetic=num_synthetic,
        num_held_out=num_held_out,
        verdict=verdict,
    )


def nearest_distances(points: np.ndarray, references: np.ndarray) -> Nearest:
    """The nearest of `references` (m, d) to each of `points` (n, d), in memory proportional to n and m.

    scikit-learn's neighbours come from matrix products, which cancel for close rows. The distances of the best
    candidates are therefore computed again by differences: equal rows are at distance 0 exactly. Among equally near
    candidates the lowest index is taken.
    """
    points, references = same_space(points=points, references=references)
    centre = references.mean(axis=0, dtype=np.float64)
    search = NearestNeighbors(n_neighbors=min(CANDIDATES, len(references)), algorithm="brute").fit(references - centre)
    distances, indices = np.empty(len(points)), np.empty(len(points), dtype=np.int64)
    for rows in gen_batches(len(points), max(1, BLOCK_VALUES // (CANDIDATES * points.shape[1]))):
        here = points[rows].astype(np.float64)
        candidates = np.sort(search.kneighbors(here - centre, return_distance=False), axis=1)
        exact = np.linalg.norm(here[:, None] - references[candidates], axis=2)
        best = exact.argmin(axis=1)[:, None]
        distances[rows] = np.take_along_axis(exact, best, axis=1)[:, 0]
        indices[rows] = np.take_along_axis(candidates, best, axis=1)[:, 0]
    return Nearest(distances, indices)


def _duplicates(points: np.ndarray, train: np.ndarray, nearest: Nearest) -> int:
    """How many points equal their nearest training row, each value up to float32's rounding of its column."""
    tolerance = ROUNDING * np.maximum(np.abs(train.max(axis=0).astype(float)), np.abs(train.min(axis=0).astype(float)))
    count = 0
    for rows in gen_batches(len(points), max(1, BLOCK_VALUES // points.shape[1])):
        difference = points[rows].astype(np.float64) - train[nearest.indices[rows]]
        count += int((np.abs(difference) <= tolerance).all(axis=1).sum())
    return count


def same_space(**matrices: np.ndarray) -> list[np.ndarray]:
    """The matrices, each named, checked to be finite, not empty, (rows, d) with one d for all."""
    checked: list[np.ndarray] = []
    first = next(iter(matrices))
    for name, given in matrices.items():
        matrix = np.asarray(given)
        if matrix.ndim != 2 or 0 in matrix.shape or matrix.dtype.kind not in "fiub":
            raise DataError(
                f"expected `{name}` as a matrix of numbers (rows, features) with at least one of each, "
                f"got {matrix.dtype} of shape {matrix.shape}: flatten each example to a row",
                code="not-a-matrix",
            )
        if matrix.dtype.kind == "f" and not (usable := np.abs(matrix) < MAX_VALUE).all():
            bad = int((~usable).any(axis=1).sum())
            raise DataError(
                f"expected finite numbers below {MAX_VALUE:g} in `{name}`, got others in {bad} rows: drop or fill them",
                code="non-finite",
            )
        if checked and matrix.shape[1] != checked[0].shape[1]:
            raise DataError(
                f"expected as many features in `{name}` as in `{first}` ({checked[0].shape[1]}), "
                f"got {matrix.shape[1]}: take both from one feature space",
                code="feature-mismatch",
            )
        checked.append(matrix.astype(np.uint8) if matrix.dtype.kind == "b" else matrix)
    return checked
