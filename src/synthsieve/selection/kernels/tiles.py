"""Points in tiles of sixteen neighbours, in the order of a k-d tree, with a bounding box around each tile.

A box gives a lower bound on distances to its points, so whole tiles, and groups of tiles, can be skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from synthsieve.selection.kernels.blocks import row_blocks
from synthsieve.selection.kernels.compiled import kernel
from synthsieve.selection.kernels.lanes import LANES

GROUP = 32


@dataclass(frozen=True)
class Tiles:
    """Points in tiles of sixteen.

    Attributes:
        coords: float32 or float64 (tiles, d, 16), the points times a power of two; infinite where there is none.
        norms: float64 (tiles, 2, 16), squared norms of the gradient and of the feature part; zero without features.
        rows: int32 (tiles, 16), the row each point came from; -1 where there is none.
        weight: float64 (tiles, 16), the weight of each point; 0 where there is none.
        low, high: float64 (tiles, d), the box around each tile.
        boxes_low, boxes_high: float64 (tiles / 16, d, 16), the same boxes, sixteen side by side.
        group_low, group_high: float64 (groups, d), the box around every 32 tiles in a row.
        split: columns from here on are features of an outer product; equal to d for plain points.
        shrink: float64 (d,), the powers of two that `coords` were multiplied by.
        magnitude: distances between points = this times distances between `coords`.
    """

    coords: np.ndarray
    norms: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    low: np.ndarray
    high: np.ndarray
    boxes_low: np.ndarray
    boxes_high: np.ndarray
    group_low: np.ndarray
    group_high: np.ndarray
    split: int
    shrink: np.ndarray
    magnitude: float

    @property
    def num_points(self) -> int:
        return int((self.rows >= 0).sum())

    @property
    def boxed(self) -> bool:
        """Whether boxes bound distances; not so for outer products."""
        return self.split == self.coords.shape[1]

    def part(self, start: int, stop: int) -> Tiles:
        """The tiles from `start`, a multiple of `GROUP`, to `stop`; `rows` stay those of the whole."""
        tiles, sixteens = slice(start, stop), slice(start // LANES, -(-stop // LANES))
        groups = slice(start // GROUP, -(-stop // GROUP))
        names = {"coords": tiles, "norms": tiles, "rows": tiles, "weight": tiles, "low": tiles, "high": tiles}
        names |= {"boxes_low": sixteens, "boxes_high": sixteens, "group_low": groups, "group_high": groups}
        return replace(self, **{name: getattr(self, name)[which] for name, which in names.items()})

    def positions(self) -> np.ndarray:
        """int64 (n,): where each row lies, as tile * 16 + lane."""
        flat = self.rows.ravel()
        places = np.flatnonzero(flat >= 0)
        positions = np.empty(len(places), dtype=np.int64)
        positions[flat[places]] = places
        return positions


def lay_out(
    points: np.ndarray, weight: np.ndarray, *, rows: np.ndarray | None = None, split: int | None = None
) -> Tiles:
    """Lay `points[rows]` (n, d) with weights (n,) into tiles; `rows` in the result are numbered 0 to n - 1."""
    rows = np.arange(len(points)) if rows is None else rows
    num_points, dims = len(rows), points.shape[1]
    split = dims if split is None else split
    num_tiles = -(-num_points // LANES)
    order = rows.astype(np.int32)
    rank = np.arange(num_points, dtype=np.int32)
    _sort_into_boxes(points, order, rank, num_tiles)

    shrink, magnitude = _powers_of_two(points, rows, split)
    coords = np.full((num_tiles, dims, LANES), np.inf, dtype=points.dtype)
    _fill(points, order, shrink, coords)
    tile_rows = _padded(rank, num_tiles, -1)
    tile_weight = _padded(weight[rank].astype(np.float64), num_tiles, 0.0)
    low, high = _boxes(coords)
    starts = np.arange(0, num_tiles, GROUP)
    return Tiles(
        coords=coords,
        norms=_norms(coords, split) if split < dims else np.zeros((num_tiles, 2, LANES)),
        rows=tile_rows,
        weight=tile_weight,
        low=low,
        high=high,
        boxes_low=_side_by_side(low, np.inf),
        boxes_high=_side_by_side(high, -np.inf),
        group_low=np.minimum.reduceat(low, starts),
        group_high=np.maximum.reduceat(high, starts),
        split=split,
        shrink=shrink,
        magnitude=magnitude,
    )


def _powers_of_two(points: np.ndarray, rows: np.ndarray, split: int) -> tuple[np.ndarray, float]:
    """Factors that scale each part's largest entry to about 1 without rounding, so that squares do not overflow."""
    largest = np.zeros(points.shape[1])
    for part in row_blocks(len(rows), points.shape[1]):
        np.maximum(largest, np.abs(points[rows[part]]).max(axis=0), out=largest)
    shrink = np.ones(points.shape[1])
    magnitude = 1.0
    for part in (slice(0, split), slice(split, None)):
        top = largest[part].max(initial=0.0)
        if top > 0:
            exponent = int(np.clip(np.frexp(top)[1], -1000, 1000))
            shrink[part] = 2.0**-exponent
            magnitude *= 2.0**exponent
    return shrink, magnitude


def _padded(values: np.ndarray, num_tiles: int, padding: float) -> np.ndarray:
    full = np.full(num_tiles * LANES, padding, dtype=values.dtype)
    full[: len(values)] = values
    return full.reshape(num_tiles, LANES)


def _norms(coords: np.ndarray, split: int) -> np.ndarray:
    norms = np.empty((len(coords), 2, LANES))
    for part in row_blocks(len(coords), coords.shape[1] * LANES):
        squares = np.where(np.isfinite(coords[part]), coords[part], 0.0).astype(np.float64) ** 2
        norms[part, 0], norms[part, 1] = squares[:, :split].sum(axis=1), squares[:, split:].sum(axis=1)
    return norms


def _boxes(coords: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low = coords.min(axis=2).astype(np.float64)
    high = coords.max(axis=2).astype(np.float64)
    last = coords[-1]
    high[-1] = np.where(np.isfinite(last), last, -np.inf).max(axis=1)
    return low, high


def _side_by_side(corners: np.ndarray, nowhere: float) -> np.ndarray:
    """(tiles, d) -> (tiles / 16, d, 16); missing boxes are filled with `nowhere`."""
    padded = np.full((-(-len(corners) // LANES) * LANES, corners.shape[1]), nowhere)
    padded[: len(corners)] = corners
    return np.ascontiguousarray(padded.reshape(-1, LANES, corners.shape[1]).transpose(0, 2, 1))


@kernel
def _fill(points: np.ndarray, order: np.ndarray, shrink: np.ndarray, coords: np.ndarray) -> None:
    for place in range(len(order)):
        for k in range(points.shape[1]):
            coords[place // LANES, k, place % LANES] = points[order[place], k] * shrink[k]


@kernel
def _sort_into_boxes(points: np.ndarray, order: np.ndarray, rank: np.ndarray, num_tiles: int) -> None:
    """Reorder `order` and `rank` so that every 2^k consecutive tiles hold the points of one k-d tree node."""
    stack = [(0, len(order), num_tiles)]
    while len(stack) > 0:
        start, stop, tiles = stack.pop()
        if tiles <= 1:
            continue
        left = 1
        while 2 * left < tiles:
            left *= 2
        middle = start + left * LANES
        _partition(points, order, rank, start, stop, middle, _widest(points, order, start, stop))
        stack.append((start, middle, left))
        stack.append((middle, stop, tiles - left))


@kernel
def _widest(points: np.ndarray, order: np.ndarray, start: int, stop: int) -> int:
    widest, width = 0, -1.0
    for k in range(points.shape[1]):
        total = squares = 0.0
        first = np.float64(points[order[start], k])
        for place in range(start, stop):
            value = points[order[place], k] - first
            total += value
            squares += value * value
        spread = squares - total * total / (stop - start)
        if spread > width:
            widest, width = k, spread
    return widest


@kernel
def _partition(
    points: np.ndarray, order: np.ndarray, rank: np.ndarray, start: int, stop: int, middle: int, k: int
) -> None:
    """Hoare's selection: afterwards no point of [start, middle) is larger than one of [middle, stop) in column k."""
    left, right = start, stop - 1
    while left < right:
        a, b, c = points[order[left], k], points[order[(left + right) // 2], k], points[order[right], k]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = left, right
        while i <= j:
            while points[order[i], k] < pivot:
                i += 1
            while points[order[j], k] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                rank[i], rank[j] = rank[j], rank[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return
