"""Exact greedy facility location in many dimensions, by float32 matrix products.

In hundreds of dimensions boxes bound no distances, and a scalar loop over all pairs is far slower than a matrix
product. The greedy algorithm then has two phases:

1. The first picks. Gains of all candidates come from products of blocks of rows, each pair computed once; afterwards
   only candidates whose earlier gain still exceeds the best are computed again (lazy greedy), a block at a time. Among
   many points several picks are guessed from a sample instead, and verified in one pass over all pairs.
2. As soon as few enough pairs are nearer than the nearest pick, these pairs alone are stored, about n / picks a
   candidate. From then on everything is a lazy greedy over short lists.

Distances from products are approximate, so they only bound gains. A candidate is picked if its lower bound exceeds the
upper bounds of all others; otherwise the contenders are compared in float64. The distance of each point to its nearest
pick is always computed in float64 from the points themselves. So picks and L are those of the plain algorithm, on
whatever device the products are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from synthsieve.io.progress import NullProgress, Progress
from synthsieve.selection.budget import Target
from synthsieve.selection.kernels.compiled import approximate_kernel, kernel
from synthsieve.selection.kernels.workers import Workers

if TYPE_CHECKING:
    import torch

# From this dimension on products are faster than tiles with boxes.
MIN_DIMS = 48
MAX_PAIRS = 24_000_000  # stored pairs, 8 bytes each
HEIGHT, WIDTH = 256, 2_048  # rows and columns of a product
PRODUCT = 4_000_000  # numbers of a product with all points
SAMPLE = 96  # candidates that estimate how many pairs there will be
# Pairs whose squared distance is below this part of their squared norms are computed in float64.
_NEAR = 1e-3
_CANDIDATES = 512  # whose gains are updated at a time
_TURNS = 32  # picks after which a gain is computed from scratch
_PICKS_PER_CALL = 64
_SEGMENT = 256
_SAMPLED = 2_048  # points by which gains are estimated, and distances to them
_SAMPLED_PAIRS = 24_000_000
_MORE_SAMPLED = 4_096  # by which those of the best candidates are estimated again
_SHORTLISTS = 2_048, 256  # candidates of the largest first and second estimates
_UNINFORMED, _AT_ONCE = 3, 16  # picks that are guessed before one pass, at first and when gains are known
_MAX_PASSES = 4
GUESSED = 6 * MAX_PAIRS, 32 * MAX_PAIRS  # numbers of all pairs between which guessing is faster


class DensePoints:
    """Points `values[rows]` (n, d) with weights (n,), centred and scaled in float32 for products.

    `factor` (n,) is what gains are multiplied by when picks are compared, 0 for points never to pick; ones if None.
    `scale` is the power of two that lengths of the input are multiplied by here. Products are computed by numpy, or by
    torch on a `device`, unless that computes them less exactly than in float32.
    """

    def __init__(
        self,
        values: np.ndarray,
        rows: np.ndarray,
        weight: np.ndarray,
        factor: np.ndarray | None = None,
        *,
        device: torch.device | None = None,
    ) -> None:
        self.values, self.rows, self.weight = values, rows, weight
        self.factor = np.ones(len(rows)) if factor is None else factor
        self.is_weighted = bool((self.factor != np.sign(self.factor)).any())
        blocks = [rows[start : start + WIDTH] for start in range(0, len(rows), WIDTH)]
        top = max(float(np.abs(values[block]).max()) for block in blocks)
        self.scale = float(2.0 ** -np.clip(np.frexp(top)[1], -1000, 1000)) if top > 0 else 1.0
        mean = sum(values[block].sum(axis=0, dtype=np.float64) * self.scale for block in blocks) / len(rows)
        self.centred = np.empty((len(rows), values.shape[1]), dtype=np.float32)
        for number, block in enumerate(blocks):
            part = self.centred[number * WIDTH : number * WIDTH + len(block)]
            part[...] = values[block] * np.float64(self.scale) - mean
        self.norms = np.einsum("ij,ij->i", self.centred, self.centred)
        self.diameter = 2.0 * float(np.sqrt(self.norms.max())) * (1.0 + 1e-5) + 2.0**-20  # above every distance
        # The error of a squared distance, relative to the sum of both squared norms: a few roundings of the entries,
        # and those of the products, which grow with the root of their number.
        self.error = 2.0**-23 * (4.0 + np.sqrt(values.shape[1]))
        self._moved: torch.Tensor | None = None
        if device is not None:
            import torch

            self._moved = torch.from_numpy(self.centred).to(device)
            if not self._is_exact():
                self._moved = None

    def take(self, rows: slice | np.ndarray) -> Any:
        """Rows of `centred`, where products are computed."""
        if self._moved is None:
            return self.centred[rows]
        if isinstance(rows, slice):
            return self._moved[rows]
        import torch

        return self._moved[torch.from_numpy(rows).to(self._moved.device)]

    def product(self, taken: Any, rows: slice | np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The scalar products of `take` (m, d) with some rows: float32 (m, k), in `out` where that is possible."""
        if self._moved is None:
            return np.matmul(taken, self.centred[rows].T, out=out)
        product: np.ndarray = (taken @ self.take(rows).T).cpu().numpy()
        return product

    def _is_exact(self) -> bool:
        """Whether products on the device have the error of float32: those of TF32 have thousands of times as much."""
        some = self.centred[:SAMPLE].astype(np.float64)
        apart = np.abs(self.product(self.take(slice(SAMPLE)), slice(SAMPLE)) - some @ some.T)
        norms = self.norms[:SAMPLE]
        return bool((2.0 * apart <= self.error * (norms[:, None] + norms)).all())

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def input(self) -> tuple[np.ndarray, np.ndarray, float]:
        return self.values, self.rows, self.scale


class DenseLocation:
    """The state of a selection: picks, and for each point the distance to its nearest pick and that pick's ordinal."""

    def __init__(
        self, points: DensePoints, workers: Workers, report: Callable[[str], None] = lambda message: None
    ) -> None:
        self.points, self._workers, self._report = points, workers, report
        self.reach = np.full(len(points), points.diameter)
        self.nearest = np.full(len(points), -1, dtype=np.int32)
        self.picks: list[int] = []
        self._taken_off: list[float] = []
        # Approximate gains, their errors, the number of picks when they were computed, and the reach at those times.
        self._gains, self._slack = np.where(points.factor > 0.0, np.inf, -np.inf), np.zeros(len(points))
        self._turn = np.full(len(points), -1)
        self._history: list[np.ndarray] = []
        self._num_fixed = 0

    @property
    def upper_bound(self) -> float:
        """L in the scale of the input, rounded up."""
        return float(self.points.weight @ self.reach) * (1.0 + 1e-12) / self.points.scale

    @property
    def taken_off(self) -> np.ndarray:
        """By how much each pick lowered L, in the scale of the input."""
        return np.array(self._taken_off) / self.points.scale

    def take(self, candidate: int) -> None:
        """Add a pick and assign the points it is nearest to."""
        points, ordinal = self.points, len(self.picks)
        served = _serve_all(*points.input, candidate, points.weight, ordinal, self.reach, self.nearest)
        self._taken_off.append(served)
        self.picks.append(candidate)

    def start_from(self, picks: np.ndarray) -> None:
        """Start from picks (k,), in this order; each point is assigned to the nearest, up to rounding in float32."""
        points = self.points
        with threadpool_limits(1, user_api="blas"):
            self.nearest = _nearest(points, picks, self._workers)
        self.nearest[picks] = np.arange(len(picks))
        self.reach = _distances_between(*points.input, np.arange(len(points)), picks[self.nearest])
        self.picks, self._taken_off, self._num_fixed = picks.tolist(), [0.0] * len(picks), len(picks)

    def greedy(self, target: Target, progress: Progress) -> None:
        """Take the best candidate until the target is reached, the lowest row among equals."""
        points = self.points
        sampled = np.sort(np.random.default_rng(0).permutation(len(points))[:SAMPLE])
        with threadpool_limits(1, user_api="blas"):
            self._guess_and_verify(target, progress)
            apart = self._distances(sampled)
            while not target.reached(self):
                fits = self._pairs_fit(float((apart < self.reach).mean()))
                # The gains of the first pick count from an arbitrary length: its factor must not matter.
                fits = fits and (bool(self.picks) or not points.is_weighted)
                if fits and self._greedy_over_pairs(target, progress):
                    return
                self.take(self._best())
                progress.update(len(self.picks), target.count)

    def _pairs_fit(self, nearer: float) -> bool:
        """Whether pairs can be stored if this share of them is nearer than the nearest pick."""
        return min(1.15 * nearer + 0.001, 1.0) * len(self.points) ** 2 <= MAX_PAIRS

    def _guess_and_verify(self, target: Target, progress: Progress) -> None:
        """Guess the first picks from a sample of points, and verify all of them in one pass over all pairs.

        A wrong guess costs time only: the gains that prove it wrong give the right pick.
        """
        count = len(self.points)
        if not GUESSED[0] < count**2 <= GUESSED[1]:
            return
        sampled = np.sort(np.random.default_rng(0).permutation(count)[: min(_SAMPLED, _SAMPLED_PAIRS // count)])
        for number in range(_MAX_PASSES):
            guessed, reaches, fits = self._guess(target, sampled, _AT_ONCE if number else _UNINFORMED)
            if fits and not guessed:
                return
            reaches = reaches[:-1] if fits else reaches  # otherwise the last gives one more pick
            for turn, known in enumerate(self._all_gains(reaches)):
                if target.reached(self):
                    return
                self.take(self._best(known))
                progress.update(len(self.picks), target.count)
                if turn < len(guessed) and self.picks[-1] != guessed[turn]:
                    break
            else:
                if fits:
                    return

    def _guess(self, target: Target, sampled: np.ndarray, most: int) -> tuple[list[int], list[np.ndarray], bool]:
        """Up to `most` next picks, probably; the reach before each and after the last; whether pairs fit then."""
        points, count = self.points, len(self.points)
        guess = DenseLocation(points, self._workers)
        guess.reach, guess.nearest, guess.picks = self.reach.copy(), self.nearest.copy(), list(self.picks)
        guessed: list[int] = []
        reaches = [guess.reach.copy()]
        apart = self._distances(sampled)
        weight = points.weight[sampled].astype(np.float32) * np.float32(count / len(sampled))
        # Gains at an earlier turn, if any are known; then the sample estimates only what changed since.
        known, old = np.zeros(count), np.zeros(count, dtype=np.float32)
        if self._history:
            known, old = np.where(np.isfinite(self._gains), self._gains, 0.0), self._history[-1]
        base = known - _estimate(apart, old[sampled], weight)
        others = np.sort(np.random.default_rng(1).permutation(count)[:_MORE_SAMPLED])
        while True:
            fits = self._pairs_fit(float((apart < guess.reach[sampled, None].astype(np.float32)).mean()))
            if fits or len(guessed) == most or target.reached(guess):
                return guessed, reaches, fits
            reach = guess.reach.astype(np.float32)
            factor = points.factor if guess.picks else np.sign(points.factor)
            estimates = base + _estimate(apart, reach[sampled], weight)
            eligible = factor > 0.0
            eligible[guess.picks] = False
            short = _largest(np.where(eligible, estimates * factor, -np.inf), _SHORTLISTS[0])
            more = known[short] + count / len(others) * self._changes(short, others, old, reach)
            short = short[_largest(np.where(eligible[short], more * factor[short], -np.inf), _SHORTLISTS[1])]
            gains = self._changes(short, np.arange(count), np.zeros_like(reach), reach)
            base[short] += gains - estimates[short]
            gains = np.where(eligible[short], gains * factor[short], -np.inf)
            guess.take(int(short[np.argmax(gains)]))
            guessed.append(guess.picks[-1])
            reaches.append(guess.reach.copy())

    def run_every_kernel(self) -> None:
        """Compile the kernels or load them from disk."""
        for _ in range(2):
            self.take(self._best())
        self._best()
        self._update(np.arange(2), 1)
        _exact_gain(*self.points.input, 0, self.points.weight, self.reach)
        _estimate(self._distances(np.arange(2)), np.ones(2, dtype=np.float32), np.ones(2, dtype=np.float32))
        self._greedy_over_pairs(Target(4), NullProgress())
        _distances_between(*self.points.input, np.arange(2), np.arange(2))

    def _best(self, known: np.ndarray | None = None) -> int:
        """The candidate of largest gain. Gains are computed again only where their upper bound exceeds the best.

        `known` are the approximate gains of all candidates, if they have been computed.
        """
        points, turn = self.points, len(self.picks)
        closed = points.factor == 0.0
        closed[self.picks] = True
        self._gains[closed] = -np.inf
        self._turn[closed] = turn
        self._history = [*self._history[-_TURNS:], self.reach.astype(np.float32)]
        if known is not None or turn < 2 + self._num_fixed:
            self._gains = self._all_gains([self.reach])[0] if known is None else known
            self._gains[closed] = -np.inf
            self._slack[:], self._turn[:] = self._error_of(points.weight), turn
        while True:
            factor = np.where(closed | (turn == 0), 1.0, points.factor)
            upper = (self._gains + self._slack) * factor
            fresh = self._turn == turn
            least = ((self._gains - self._slack) * factor)[fresh].max(initial=-np.inf)
            stale = np.flatnonzero(~fresh & (upper >= least))
            if len(stale) == 0:
                break
            some = stale[np.argsort(-upper[stale], kind="stable")[:_CANDIDATES]]
            for before in np.unique(self._turn[some]).tolist():
                self._update(np.sort(some[self._turn[some] == before]), before)
        contenders = np.flatnonzero(upper >= least)
        if len(contenders) == 1:
            return int(contenders[0])
        gains = np.array([_exact_gain(*points.input, int(one), points.weight, self.reach) for one in contenders])
        gains *= factor[contenders]
        return int(contenders[np.argmax(gains >= gains.max() * (1.0 - 1e-13))])

    def _error_of(self, weight: np.ndarray) -> float:
        """An upper bound of the error of a sum over points of these weights: errors of many distances cancel."""
        return 4.0 * self.points.error * self.points.diameter * float(np.sqrt(weight @ weight))

    def _update(self, candidates: np.ndarray, before: int) -> None:
        """Bring gains that were computed when there were `before` picks up to date.

        Only points that have come nearer to a pick since then change them.
        """
        points, turn = self.points, len(self.picks)
        place = before - turn - 1
        known = -place <= len(self._history)
        old, new = self._history[place] if known else np.zeros_like(self._history[-1]), self._history[-1]
        changed = np.flatnonzero(old != new)
        found = self._changes(candidates, changed, old, new)
        error = self._error_of(points.weight[changed])
        self._gains[candidates] = found + (self._gains[candidates] if known else 0.0)
        self._slack[candidates] = error + (self._slack[candidates] if known else 0.0)
        self._turn[candidates] = turn

    def _changes(self, candidates: np.ndarray, changed: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """By how much gains change if the reach of the points `changed` falls from `old` (n,) to `new` (n,)."""
        points = self.points
        some, norms = points.take(candidates), points.norms[candidates]

        def work(part: int) -> np.ndarray:
            gains = np.zeros(len(candidates))
            for start in range(part * WIDTH, len(changed), self._workers.count * WIDTH):
                rows = changed[start : start + WIDTH]
                weight = points.weight[rows].astype(np.float32)
                product = points.product(some, rows)
                _change_gains(product, norms, points.norms[rows], old[rows], new[rows], weight, gains)
            return gains

        found: np.ndarray = np.sum(self._workers.share(work, self._workers.count), axis=0)
        return found

    def _all_gains(self, reaches: list[np.ndarray]) -> np.ndarray:
        """Approximate gains of all candidates for each of the `reaches` (n,): float64 (len(reaches), n).

        Every pair of points is computed once.
        """
        points, count = self.points, len(self.points)
        tiles = [(a, b) for b in range(0, count, WIDTH) for a in range(0, min(b + WIDTH, count), HEIGHT)]
        lower, weight = np.array(reaches, dtype=np.float32), points.weight.astype(np.float32)
        self._report("computing gains")

        def work(part: int) -> np.ndarray:
            gains, buffer = np.zeros((len(reaches), count)), np.empty(HEIGHT * WIDTH, dtype=np.float32)
            for a, b in tiles[part :: self._workers.count]:
                shape = min(HEIGHT, count - a), min(WIDTH, count - b)
                out = buffer[: shape[0] * shape[1]].reshape(shape)
                product = points.product(points.take(slice(a, a + HEIGHT)), slice(b, b + WIDTH), out)
                _add_gains(product, a, b, points.norms, lower, weight, gains)
            return gains

        gains: np.ndarray = np.sum(self._workers.share(work, self._workers.count), axis=0)
        return gains + points.weight * np.array(reaches)  # of each point to itself

    def _distances(self, candidates: np.ndarray) -> np.ndarray:
        """Approximate distances from some candidates to all points: float32 (m, n)."""
        points = self.points
        squared = points.product(points.take(candidates), slice(None))
        squared *= -2.0
        squared += points.norms
        squared += points.norms[candidates][:, None]
        return np.sqrt(np.maximum(squared, 0.0, out=squared), out=squared)

    def _greedy_over_pairs(self, target: Target, progress: Progress) -> bool:
        """Store the points that each candidate would be nearest to, and choose on these lists alone.

        Returns False, with nothing done, if there are too many.
        """
        points, count = self.points, len(self.points)
        size = min(MAX_PAIRS, count**2)
        members, apart = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.float32)
        starts, lengths = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        height, lock, filled = max(1, min(HEIGHT, PRODUCT // count)), Lock(), 0
        error, squared_reach = np.float32(points.error), (self.reach * (1.0 + 1e-6)).astype(np.float32) ** 2
        self._report("storing near pairs")

        def work(part: int) -> bool:
            nonlocal filled
            buffer = np.empty((height, count), dtype=np.float32)
            for a in range(part * height, count, self._workers.count * height):
                product = points.product(points.take(slice(a, a + height)), slice(None), buffer[: count - a])
                counts = _count_pairs(product, a, points.norms, error, squared_reach)
                with lock:
                    begin, filled = filled, filled + int(counts.sum())
                    if filled > size:
                        return False
                starts[a : a + height], lengths[a : a + height] = begin + np.cumsum(counts) - counts, counts
                _fill_pairs(
                    product, a, points.norms, error, squared_reach, *points.input, starts, lengths, members, apart
                )
            return True

        if not all(self._workers.share(work, self._workers.count)):
            return False
        upper, errors, stamp = np.empty(count), np.empty(count), np.full(count, -1, dtype=np.int32)
        lists = (starts, lengths, members, apart)
        pairs = (*points.input, points.weight, points.norms, points.error, points.factor)
        stamp[self.picks] = stamp[points.factor == 0.0] = np.iinfo(np.int32).max
        highest = _evaluate_all(pairs, lists, self.reach, upper, errors, stamp, len(self.picks))
        while not target.reached(self):
            room = min(_PICKS_PER_CALL, target.count - len(self.picks))
            below = target.bound * points.scale / (1.0 + 1e-12)
            taken, gains = _pick(
                pairs, lists, self.reach, self.nearest, upper, errors, stamp, highest, len(self.picks), room, below
            )
            self.picks += taken.tolist()
            self._taken_off += gains.tolist()
            progress.update(len(self.picks), target.count)
        return True


def _nearest(points: DensePoints, picks: np.ndarray, workers: Workers) -> np.ndarray:
    """The ordinal of each point's nearest pick by products, int32 (n,)."""
    norms, nearest = points.norms[picks], np.empty(len(points), dtype=np.int32)
    height = max(1, min(HEIGHT, PRODUCT // len(picks)))

    def work(part: int) -> None:
        for start in range(part * height, len(points), workers.count * height):
            product = points.product(points.take(slice(start, start + height)), picks)
            nearest[start : start + height] = np.argmin(norms - 2.0 * product, axis=1)

    workers.share(work, workers.count)
    return nearest


def _largest(values: np.ndarray, number: int) -> np.ndarray:
    """The places of the largest values, ascending."""
    return np.sort(np.argpartition(-values, min(number, len(values)) - 1)[:number])


@kernel
def _distance(values, rows, scale, a, b):  # type: ignore[no-untyped-def]
    """The distance of two points in float64, from the input."""
    squared = 0.0
    for k in range(values.shape[1]):
        apart = (np.float64(values[rows[a], k]) - np.float64(values[rows[b], k])) * scale
        squared += apart * apart
    return np.sqrt(squared)


@kernel
def _distances_between(values, rows, scale, first, second):  # type: ignore[no-untyped-def]
    """The distance of each pair of points."""
    apart = np.empty(len(first))
    for pair in range(len(first)):
        apart[pair] = _distance(values, rows, scale, first[pair], second[pair])
    return apart


@kernel
def _serve_all(values, rows, scale, candidate, weight, ordinal, reach, nearest):  # type: ignore[no-untyped-def]
    """Assign to a new pick every point that is nearer to it; returns by how much that lowered L."""
    taken_off = 0.0
    for point in range(len(rows)):
        apart = _distance(values, rows, scale, candidate, point)
        if apart < reach[point]:
            taken_off += weight[point] * (reach[point] - apart)
            reach[point], nearest[point] = apart, ordinal
    return taken_off


@kernel
def _exact_gain(values, rows, scale, candidate, weight, reach):  # type: ignore[no-untyped-def]
    gain = 0.0
    for point in range(len(rows)):
        gain += weight[point] * max(reach[point] - _distance(values, rows, scale, candidate, point), 0.0)
    return gain


@approximate_kernel
def _add_gains(product, a, b, norms, reaches, weight, gains):  # type: ignore[no-untyped-def]
    """Add to the gains what rows from `a` on and points from `b` on gain by each other, each pair once."""
    height, width = product.shape
    of_columns, apart = np.zeros((len(reaches), width), dtype=np.float32), np.empty(width, dtype=np.float32)
    zero, two = np.float32(0.0), np.float32(2.0)
    for i in range(height):
        row = a + i
        first = max(0, row + 1 - b)
        norm, row_weight = norms[row], weight[row]
        for j in range(first, width):
            apart[j] = np.sqrt(max(norm + norms[b + j] - two * product[i, j], zero))
        lengths, weights = apart[first:], weight[b + first : b + width]
        for turn in range(len(reaches)):
            reach = reaches[turn, b + first : b + width]
            gains[turn, row] += _add_gains_of_row(
                lengths, reach, weights, reaches[turn, row], row_weight, of_columns[turn, first:]
            )
    for turn in range(len(reaches)):
        for j in range(width):
            gains[turn, b + j] += of_columns[turn, j]


@approximate_kernel
def _add_gains_of_row(apart, reach, weight, row_reach, row_weight, of_columns):  # type: ignore[no-untyped-def]
    """What a row gains by points at these distances; theirs by the row is added to `of_columns`."""
    zero = np.float32(0.0)
    of_row = zero
    for j in range(len(apart)):
        of_row += weight[j] * max(reach[j] - apart[j], zero)
        of_columns[j] += row_weight * max(row_reach - apart[j], zero)
    return of_row


@approximate_kernel
def _estimate(apart, reach, weight):  # type: ignore[no-untyped-def]
    """Gains by sampled points alone, given their distances to all candidates."""
    gains = np.zeros(apart.shape[1], dtype=np.float32)
    zero = np.float32(0.0)
    for i in range(apart.shape[0]):
        for j in range(apart.shape[1]):
            gains[j] += weight[i] * max(reach[i] - apart[i, j], zero)
    return gains


@approximate_kernel
def _change_gains(product, some_norms, norms, old, new, weight, gains):  # type: ignore[no-untyped-def]
    """Change the gains of candidates by points whose distance to the nearest pick fell from `old` to `new`."""
    zero, two = np.float32(0.0), np.float32(2.0)
    for i in range(product.shape[0]):
        total, norm = zero, some_norms[i]
        for j in range(product.shape[1]):
            apart = np.sqrt(max(norm + norms[j] - two * product[i, j], zero))
            total += weight[j] * (max(new[j] - apart, zero) - max(old[j] - apart, zero))
        gains[i] += total


@approximate_kernel
def _count_pairs(product, a, norms, error, squared_reach):  # type: ignore[no-untyped-def]
    """For each row of the product, how many points it may be nearer to than their nearest pick.

    The product becomes lower bounds of the squared distances.
    """
    counts = np.zeros(product.shape[0], dtype=np.int64)
    two, less = np.float32(2.0), np.float32(1.0) - error
    for i in range(product.shape[0]):
        number, norm = 0, norms[a + i]
        for j in range(product.shape[1]):
            lowest = less * (norm + norms[j]) - two * product[i, j]
            product[i, j] = lowest
            number += lowest < squared_reach[j]
        counts[i] = number
    return counts


@kernel
def _fill_pairs(  # type: ignore[no-untyped-def]
    lowest, a, norms, error, squared_reach, values, rows, scale, starts, lengths, members, apart
):
    """Store those points and their distances, given the result of `_count_pairs`; near ones are computed in float64."""
    for i in range(lowest.shape[0]):
        start = place = starts[a + i]
        stop, j = start + lengths[a + i], 0
        while place < stop:  # without a branch for each point, which is hard to predict
            members[place], apart[place] = j, lowest[i, j]
            place += lowest[i, j] < squared_reach[j]
            j += 1
        for place in range(start, stop):
            both = norms[a + i] + norms[members[place]]
            squared = apart[place] + error * both
            if squared < 2.0 * _NEAR * both:
                apart[place] = _distance(values, rows, scale, a + i, members[place])
            else:
                apart[place] = np.sqrt(squared)


@kernel
def _evaluate(pairs, lists, reach, candidate):  # type: ignore[no-untyped-def]
    """The gain of a candidate and its error, times its factor, from its list.

    The list loses the points that are nearer to a pick now.
    """
    _, _, _, weight, norms, relative, factor = pairs
    starts, lengths, members, apart = lists
    gain, error, kept = 0.0, 0.0, starts[candidate]
    for place in range(starts[candidate], starts[candidate] + lengths[candidate]):
        point, length = members[place], np.float64(apart[place])
        both = norms[candidate] + norms[point]
        uncertain = 1e-7 * length
        if length * length > _NEAR * both:
            uncertain += relative * both / (2.0 * length)
        if length - uncertain < reach[point]:
            gain += weight[point] * max(reach[point] - length, 0.0)
            error += weight[point] * uncertain
            members[kept], apart[kept] = point, apart[place]
            kept += 1
    lengths[candidate] = kept - starts[candidate]
    return factor[candidate] * gain, factor[candidate] * error


@kernel
def _evaluate_exactly(pairs, lists, reach, candidate):  # type: ignore[no-untyped-def]
    values, rows, scale, weight, _, _, factor = pairs
    starts, lengths, members, _ = lists
    gain = 0.0
    for place in range(starts[candidate], starts[candidate] + lengths[candidate]):
        point = members[place]
        gain += weight[point] * max(reach[point] - _distance(values, rows, scale, candidate, point), 0.0)
    return factor[candidate] * gain


@kernel
def _evaluate_all(pairs, lists, reach, upper, error, stamp, turn):  # type: ignore[no-untyped-def]
    """Upper bounds of all gains, and the largest of each segment of candidates."""
    highest = np.full((len(upper) + _SEGMENT - 1) // _SEGMENT, -np.inf)
    for candidate in range(len(upper)):
        upper[candidate] = -np.inf
        if stamp[candidate] <= turn:
            gain, error[candidate] = _evaluate(pairs, lists, reach, candidate)
            upper[candidate], stamp[candidate] = gain + error[candidate], turn
        segment = candidate // _SEGMENT
        highest[segment] = max(highest[segment], upper[candidate])
    return highest


@kernel
def _pick(  # type: ignore[no-untyped-def]
    pairs, lists, reach, nearest, upper, error, stamp, highest, turn, room, below
):
    """Up to `room` more picks, fewer if L falls to `below`; returns them and by how much each lowered L."""
    values, rows, scale, weight, _, _, _ = pairs
    starts, lengths, members, _ = lists
    taken, gains = np.empty(room, dtype=np.int64), np.empty(room)
    bound = 0.0
    for point in range(len(reach)):
        bound += weight[point] * reach[point]
    for number in range(room):
        while True:  # until the largest upper bound belongs to a gain that was computed in this turn
            segment = int(np.argmax(highest))
            best = segment * _SEGMENT + int(np.argmax(upper[segment * _SEGMENT : (segment + 1) * _SEGMENT]))
            if stamp[best] == turn + number:
                break
            gain, error[best] = _evaluate(pairs, lists, reach, best)
            upper[best], stamp[best] = gain + error[best], turn + number
            highest[segment] = upper[segment * _SEGMENT : (segment + 1) * _SEGMENT].max()
        least, largest = upper[best] - 2.0 * error[best], -1.0
        for segment in range(len(highest)):
            if highest[segment] < least:
                continue
            for other in range(segment * _SEGMENT, min((segment + 1) * _SEGMENT, len(upper))):
                if upper[other] >= least and other != best:
                    if stamp[other] != turn + number:
                        gain, error[other] = _evaluate(pairs, lists, reach, other)
                        upper[other], stamp[other] = gain + error[other], turn + number
                    if upper[other] >= least:
                        if largest < 0.0:
                            largest = _evaluate_exactly(pairs, lists, reach, best)
                        gain = _evaluate_exactly(pairs, lists, reach, other)
                        equal = abs(gain - largest) <= 1e-13 * largest
                        if (equal and other < best) or (not equal and gain > largest):
                            best, largest = other, max(gain, largest)
            highest[segment] = upper[segment * _SEGMENT : (segment + 1) * _SEGMENT].max()
        taken_off = 0.0
        for place in range(starts[best], starts[best] + lengths[best]):
            point = members[place]
            length = _distance(values, rows, scale, best, point)
            if length < reach[point]:
                taken_off += weight[point] * (reach[point] - length)
                reach[point], nearest[point] = length, turn + number
        upper[best], stamp[best] = -np.inf, np.int32(2**31 - 1)
        segment = best // _SEGMENT
        highest[segment] = upper[segment * _SEGMENT : (segment + 1) * _SEGMENT].max()
        taken[number], gains[number] = best, taken_off
        bound -= taken_off
        if bound <= below:
            return taken[: number + 1], gains[: number + 1]
    return taken, gains
