"""Whether synthetic samples are copies of training examples: nearest neighbours, and what they say.

Distances come from blocked matrix products; whatever rounding could decide is worked out again by differences, so that
neither the block size nor the number of threads changes a result, and equal rows are at distance 0 exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from scipy import stats

from synthsieve.errors import DataError

BLOCK_ROWS = 1024
QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
NEAR = 0.01  # the quantile of held-out distances below which a sample counts as near
FEWEST = 100  # rows of either kind without which a share of 1 % cannot be seen
SIGNIFICANCE = 0.01
ROUNDING = 2.0**-22  # a value that went through float32 and back is off by less than this, relatively
PAIR_VALUES = 2**20


@dataclass(frozen=True)
class Nearest:
    """The nearest reference of each point.

    Attributes:
        distances: float64 (n,), Euclidean.
        indices: int64 (n,), rows of the references; the lowest among equally near ones.
    """

    distances: np.ndarray
    indices: np.ndarray

    def as_dict(self) -> dict[str, list[float] | list[int]]:
        return {"distances": self.distances.tolist(), "indices": self.indices.tolist()}


class Verdict(StrEnum):
    COPIES = "copies suspected"
    NO_SIGN = "no sign of copies"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Memorisation:
    """Distances to the nearest training example: of synthetic samples, and of held-out real examples.

    Attributes:
        synthetic_quantiles, held_out_quantiles: the distances at the levels of `QUANTILES`.
        threshold: the held-out distance below which a sample counts as near, their 1 % quantile.
        near_share: share of synthetic samples nearer to a training example than `threshold`.
        expected_share: its mean if synthetic samples were fresh real examples, 1 % for enough held-out ones.
        p_value: probability of such a share or a larger one if they were.
        auc: probability that a synthetic sample is nearer to the training set than a held-out example; ties count half.
        duplicates, held_out_duplicates: how many equal a training example, up to the rounding of float32.
        num_synthetic, num_held_out: how many there are.
        verdict: what follows.
    """

    synthetic_quantiles: tuple[float, ...]
    held_out_quantiles: tuple[float, ...]
    threshold: float
    near_share: float
    expected_share: float
    p_value: float
    auc: float
    duplicates: int
    held_out_duplicates: int
    num_synthetic: int
    num_held_out: int
    verdict: Verdict

    def in_words(self) -> str:
        """One sentence: the verdict and the figures it rests on."""
        advice = {
            Verdict.COPIES: "; look at the nearest pairs, since samples huddled where data are dense look alike",
            Verdict.NO_SIGN: "",
            Verdict.CANNOT_TELL: f"; give at least {FEWEST} of each",
        }
        return f"{copies_in_words(self.as_dict())}{advice[self.verdict]}"

    def as_dict(self) -> dict[str, float | int | str | list[float]]:
        """Plain JSON values, the quantiles as lists."""
        return {
            "quantile_levels": list(QUANTILES),
            "synthetic_quantiles": list(self.synthetic_quantiles),
            "held_out_quantiles": list(self.held_out_quantiles),
            "threshold": self.threshold,
            "near_share": self.near_share,
            "expected_share": self.expected_share,
            "p_value": self.p_value,
            "auc": self.auc,
            "duplicates": self.duplicates,
            "held_out_duplicates": self.held_out_duplicates,
            "num_synthetic": self.num_synthetic,
            "num_held_out": self.num_held_out,
            "verdict": self.verdict.value,
        }


def copies_in_words(found: Mapping[str, Any]) -> str:
    """What a `Memorisation` as a dictionary means, in a sentence that names the reason for its verdict first."""
    near, expected = f"{100 * found['near_share']:.1f} %", f"{100 * found['expected_share']:.1f} %"
    count, equal, real = found["num_synthetic"], found["duplicates"], found["held_out_duplicates"]
    shares = f"{near} of the samples lie very near a training example, where {expected} of new real data would"
    if found["verdict"] == Verdict.CANNOT_TELL:
        few = f"{count:,} samples and {found['num_held_out']:,} held-out examples are too few"
        return f"{Verdict.CANNOT_TELL} whether samples are copies: {few}"
    if not equal:
        return f"{found['verdict']}: {shares}"
    equals = f"{equal:,} of {count:,} samples equal{'s' if equal == 1 else ''} a training example"
    equals += f", as {real:,} of {found['num_held_out']:,} held-out examples do" if real else ""
    if found["verdict"] == Verdict.NO_SIGN:
        return f"{Verdict.NO_SIGN} beyond what the data repeat themselves: {equals}; {shares}"
    if found["near_share"] <= found["expected_share"]:
        return f"{Verdict.COPIES}: {equals}; the other samples show no sign of it ({shares})"
    return f"{Verdict.COPIES}: {equals}; {shares}"


def memorisation(
    synthetic: np.ndarray, train: np.ndarray, held_out: np.ndarray, *, block_rows: int = BLOCK_ROWS
) -> Memorisation:
    """How much nearer to `train` (n, d) the samples `synthetic` (m, d) are than real examples `held_out` (h, d).

    near_share = share of synthetic s with min_t norm(s - t) < the r-th smallest held-out distance, r = (h + 1) / 100.
    If synthetic samples were fresh examples, the number below would be beta-binomial (m, r, h - r + 1), whatever the
    law of the data. Copies are suspected when the share is larger than that allows, or when duplicates are found that
    held-out examples do not have as well; without such a sign, fewer than 100 rows of either kind cannot tell.
    """
    points, real, others = same_space(synthetic=synthetic, train=train, held_out=held_out)
    ours = nearest_distances(points, real, block_rows=block_rows)
    theirs = nearest_distances(others, real, block_rows=block_rows)
    num_synthetic, num_held_out = len(points), len(others)

    rank = max(1, math.floor(NEAR * (num_held_out + 1) + 1e-9))
    threshold = float(np.partition(theirs.distances, rank - 1)[rank - 1])
    near = int((ours.distances < threshold).sum())
    p_value = float(stats.betabinom(num_synthetic, rank, num_held_out - rank + 1).sf(near - 1))
    duplicates, held_out_duplicates = _duplicates(points, real, ours), _duplicates(others, real, theirs)
    copied = _more_duplicates(duplicates, num_synthetic, held_out_duplicates, num_held_out)
    if copied or p_value < SIGNIFICANCE:
        verdict = Verdict.COPIES
    else:
        verdict = Verdict.NO_SIGN if min(num_synthetic, num_held_out) >= FEWEST else Verdict.CANNOT_TELL
    return Memorisation(
        synthetic_quantiles=tuple(np.quantile(ours.distances, QUANTILES).tolist()),
        held_out_quantiles=tuple(np.quantile(theirs.distances, QUANTILES).tolist()),
        threshold=threshold,
        near_share=near / num_synthetic,
        expected_share=rank / (num_held_out + 1),
        p_value=p_value,
        auc=_probability_of_less(ours.distances, theirs.distances),
        duplicates=duplicates,
        held_out_duplicates=held_out_duplicates,
        num_synthetic=num_synthetic,
        num_held_out=num_held_out,
        verdict=verdict,
    )


def nearest_distances(points: np.ndarray, references: np.ndarray, *, block_rows: int = BLOCK_ROWS) -> Nearest:
    """The nearest of `references` (m, d) to each of `points` (n, d), exactly; `block_rows`^2 distances at a time."""
    points, references = same_space(points=points, references=references)
    check_block_rows(block_rows)
    frame = Frame.around(points, references)
    distances, indices = k_nearest(frame.of(points), frame.of(references), 1, block_rows=block_rows)
    return Nearest(distances[:, 0] * frame.magnitude, indices[:, 0])


def _duplicates(points: np.ndarray, train: np.ndarray, nearest: Nearest) -> int:
    """How many points equal their nearest training row, each value up to float32's rounding of its column."""
    largest = np.maximum(np.abs(train.max(axis=0).astype(np.float64)), np.abs(train.min(axis=0).astype(np.float64)))
    count = 0
    for rows in _slices(len(points), max(1, PAIR_VALUES // max(1, points.shape[1]))):
        here, there = points[rows].astype(np.float64), train[nearest.indices[rows]].astype(np.float64)
        count += int((np.abs(here / 2 - there / 2) <= largest * (ROUNDING / 2)).all(axis=1).sum())
    return count


def _more_duplicates(duplicates: int, num_synthetic: int, held_out_duplicates: int, num_held_out: int) -> bool:
    """Whether samples repeat training rows beyond what data that repeat themselves explain (Fisher's exact test)."""
    if held_out_duplicates == 0:
        return duplicates > 0
    both = duplicates + held_out_duplicates
    p_value = stats.hypergeom(num_synthetic + num_held_out, both, num_synthetic).sf(duplicates - 1)
    return bool(p_value < SIGNIFICANCE)


def _probability_of_less(left: np.ndarray, right: np.ndarray) -> float:
    """P(left < right) + P(left = right) / 2 over all pairs."""
    ordered = np.sort(right)
    above = len(right) - np.searchsorted(ordered, left, side="right")
    not_below = len(right) - np.searchsorted(ordered, left, side="left")
    return float((above + not_below).sum() / (2 * len(left) * len(right)))


# Distances between any two matrices; `fidelity` uses these too.


def same_space(**matrices: np.ndarray) -> list[np.ndarray]:
    """The matrices, each named, checked to be finite, not empty, (rows, d) with one d for all."""
    checked: list[np.ndarray] = []
    first = next(iter(matrices))
    for name, given in matrices.items():
        matrix = np.asarray(given)
        if matrix.ndim != 2 or 0 in matrix.shape or matrix.dtype.kind not in "fiub":
            raise DataError(
                f"expected `{name}` as a matrix of numbers (rows, features) with at least one of each, "
                f"got {matrix.dtype} of shape {matrix.shape}: flatten each example to a row"
            )
        if matrix.dtype.kind == "f" and not np.isfinite(matrix).all():
            bad = int((~np.isfinite(matrix)).any(axis=1).sum())
            raise DataError(
                f"expected finite numbers in `{name}`, got NaN or infinity in {bad} rows: drop or fill them"
            )
        if checked and matrix.shape[1] != checked[0].shape[1]:
            raise DataError(
                f"expected as many features in `{name}` as in `{first}` ({checked[0].shape[1]}), "
                f"got {matrix.shape[1]}: take both from one feature space"
            )
        checked.append(matrix.astype(np.uint8) if matrix.dtype.kind == "b" else matrix)
    return checked


def check_block_rows(block_rows: int) -> None:
    if block_rows < 1:
        raise DataError(f"expected block_rows of at least 1, got {block_rows}: leave it at {BLOCK_ROWS}")


@dataclass(frozen=True)
class Placed:
    """Rows of one matrix as a frame sees them; converted block by block, never copied whole.

    Attributes:
        matrix: (n, d), as it came.
        frame: the frame.
        squares: float64 (n,), squared norms of the centred rows.
    """

    matrix: np.ndarray
    frame: Frame
    squares: np.ndarray

    def __len__(self) -> int:
        return len(self.matrix)

    def left(self, rows: slice) -> np.ndarray:
        """float64 (b, d + 2): times the transposed `right` of other rows, the squared distances."""
        centred = self.frame.centred(self.matrix[rows])
        return np.column_stack([-2 * centred, self.squares[rows], np.ones(len(centred))])

    def right(self, rows: slice) -> np.ndarray:
        centred = self.frame.centred(self.matrix[rows])
        return np.column_stack([centred, np.ones(len(centred)), self.squares[rows]])

    def doubt(self, other: Placed) -> np.ndarray:
        """float64 (n,): more than the rounding of a squared distance from each row to any of `other`."""
        unit = 4 * (self.matrix.shape[1] + 8) * np.finfo(np.float64).eps
        return unit * (self.squares + other.squares.max())


@dataclass(frozen=True)
class Frame:
    """A common origin and unit for several matrices, so that squares neither cancel nor overflow.

    Attributes:
        centre: float64 (d,), in the new unit.
        magnitude: the unit, a power of two: a distance is this times one in the frame.
    """

    centre: np.ndarray
    magnitude: float

    @staticmethod
    def around(*matrices: np.ndarray) -> Frame:
        largest = max(max(abs(float(m.max())), abs(float(m.min()))) for m in matrices)
        magnitude = 2.0 ** float(np.clip(np.frexp(largest)[1], -1000, 1000)) if largest > 0 else 1.0
        last = matrices[-1]
        total = np.zeros(last.shape[1])
        for rows in _slices(len(last), BLOCK_ROWS):
            total += (last[rows].astype(np.float64) / magnitude).sum(axis=0)
        return Frame(total / len(last), magnitude)

    def of(self, matrix: np.ndarray) -> Placed:
        squares = np.empty(len(matrix))
        for rows in _slices(len(matrix), BLOCK_ROWS):
            squares[rows] = (self.centred(matrix[rows]) ** 2).sum(axis=1)
        return Placed(matrix, self, squares)

    def centred(self, rows: np.ndarray) -> np.ndarray:
        return rows.astype(np.float64) / self.magnitude - self.centre

    def by_differences(self, left: Placed, left_rows: np.ndarray, right: Placed, right_rows: np.ndarray) -> np.ndarray:
        """float64 (pairs,): squared distances in the frame; the same bits for the same two rows, 0 for equal ones."""
        squares = np.empty(len(left_rows))
        for pairs in _slices(len(left_rows), max(1, PAIR_VALUES // len(self.centre))):
            apart = left.matrix[left_rows[pairs]].astype(np.float64) / self.magnitude
            apart -= right.matrix[right_rows[pairs]].astype(np.float64) / self.magnitude
            squares[pairs] = np.square(apart, out=apart).sum(axis=1)
        return squares


def tiles(left: Placed, right: Placed, block_rows: int) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """Rows of `left`, rows of `right`, squared distances between them, up to `left.doubt(right)`."""
    for rows in _slices(len(left), block_rows):
        here = left.left(rows)
        for columns in _slices(len(right), block_rows):
            yield rows, columns, here @ right.right(columns).T


def k_nearest(points: Placed, references: Placed, count: int, *, block_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Distances in the frame and indices, (n, count) each, nearest first, then lowest index first."""
    squares = np.full((len(points), count), np.inf)
    indices = np.full((len(points), count), -1)
    doubt = points.doubt(references)
    for rows, columns, tile in tiles(points, references, block_rows):
        found, column = _within_reach(tile, squares[rows, -1], doubt[rows], count)
        fresh = points.frame.by_differences(points, found + rows.start, references, column + columns.start)
        _keep_nearest(squares[rows], indices[rows], found, fresh, column + columns.start)
    return np.sqrt(squares), indices


def _within_reach(
    tile: np.ndarray, farthest: np.ndarray, doubt: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of a tile (b, c) that may be nearer than the farthest neighbour so far, (b,).

    An equally near one comes later and is never taken, so a row whose farthest lies at 0 is done.
    """
    limit = np.where(farthest > 0, farthest + doubt, -np.inf)
    reached = tile <= limit[:, None]
    if np.count_nonzero(reached) > 8 * count * len(tile) and tile.shape[1] > count:
        kth = np.partition(tile, count - 1, axis=1)[:, count - 1]
        reached = tile <= np.minimum(limit, kth + 2 * doubt)[:, None]
    rows, columns = np.divmod(np.flatnonzero(reached), tile.shape[1])
    return rows, columns


def _keep_nearest(
    squares: np.ndarray, indices: np.ndarray, rows: np.ndarray, fresh: np.ndarray, fresh_indices: np.ndarray
) -> None:
    """Merge new pairs into the sorted lists (b, count) in place."""
    num_rows, count = squares.shape
    owner = np.concatenate([np.repeat(np.arange(num_rows), count), rows])
    square = np.concatenate([squares.ravel(), fresh])
    index = np.concatenate([indices.ravel(), fresh_indices])
    order = np.lexsort((index, square, owner))
    first = np.searchsorted(owner[order], np.arange(num_rows))
    chosen = order[first[:, None] + np.arange(count)]
    squares[...], indices[...] = square[chosen], index[chosen]


def _slices(total: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, total)) for start in range(0, total, size))
