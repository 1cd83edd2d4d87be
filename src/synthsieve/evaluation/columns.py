"""How similar synthetic rows of a table are to real ones, by column and by pair of columns.

Rows are float64 (n, columns) as a data set stores them, NaN where a cell is missing; the schema says what they are.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from synthsieve.data.modalities.table.schema import Column, ColumnType, TableSchema
from synthsieve.errors import DataError

MAX_CATEGORIES = 50  # in pairs, the most frequent of the real rows; the others are merged
CATEGORICAL = (ColumnType.CATEGORY, ColumnType.BOOLEAN)


@dataclass(frozen=True)
class ColumnDistance:
    """Distance of the distributions of one column."""

    name: str  # column name
    measure: str  # `total variation` (categories, missing among them) or `Kolmogorov-Smirnov` (numbers and dates)
    distance: float  # 0 (the same) to 1 (nothing in common)
    missing_real: float  # share of missing cells
    missing_synthetic: float


@dataclass(frozen=True)
class TableFidelity:
    """Marginals and pairs of synthetic rows, compared with those of real ones."""

    columns: tuple[ColumnDistance, ...]  # each column that is modelled
    marginal_distance: float  # the mean of their distances
    # (columns, columns), the dependence of two columns: Pearson's correlation of two numbers, Cramer's V of two
    # categories, the correlation ratio of one of each
    association_real: tuple[tuple[float, ...], ...]
    association_synthetic: tuple[tuple[float, ...], ...]
    association_distance: float  # mean absolute difference between the two over all pairs; 0 for a single column
    # the same for held-out real rows in place of the synthetic ones: the smallest distances to expect
    floor: TableFidelity | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, tuples and mappings, for JSON."""
        return asdict(self)


def compare_tables(
    real: np.ndarray, synthetic: np.ndarray, schema: TableSchema, *, held_out: np.ndarray | None = None
) -> TableFidelity:
    """Compare synthetic rows (m, columns) with real ones (n, columns), and `held_out` real ones, as a floor."""
    for name, rows in (("real", real), ("synthetic", synthetic), ("held_out", held_out)):
        if rows is not None and (rows.ndim != 2 or rows.shape[1] != len(schema) or not len(rows)):
            message = f"expected `{name}` rows of shape (n, {len(schema)}) with n at least 1, got {rows.shape}"
            raise DataError(message, code="bad-shape")
    kept = [(i, column) for i, column in enumerate(schema.columns) if column.is_modelled]
    distances = []
    for i, column in kept:
        cells = real[:, i], synthetic[:, i]
        measure, distance = "Kolmogorov-Smirnov", kolmogorov_smirnov
        if column.type in CATEGORICAL:
            measure, distance = "total variation", total_variation
        missing = [float(np.isnan(side).mean()) for side in cells]
        distances.append(ColumnDistance(column.name, measure, distance(*cells), *missing))
    shared = [_merged(column, real[:, i], synthetic[:, i]) for i, column in kept]
    kinds = [column.type in CATEGORICAL for _, column in kept]
    associations = [_associations([pair[side] for pair in shared], kinds) for side in (0, 1)]
    above = np.triu_indices(len(kept), 1)
    apart = np.abs(associations[0] - associations[1])[above]
    return TableFidelity(
        columns=tuple(distances),
        marginal_distance=float(np.mean([column.distance for column in distances])),
        association_real=tuple(map(tuple, associations[0].tolist())),
        association_synthetic=tuple(map(tuple, associations[1].tolist())),
        association_distance=float(apart.mean()) if len(apart) else 0.0,
        floor=None if held_out is None else compare_tables(real, held_out, schema),
    )


def total_variation(real: np.ndarray, synthetic: np.ndarray) -> float:
    """Half the sum of the differences of frequencies; missing is a category too. Indices (n,), (m,), NaN = missing."""
    size = int(np.nan_to_num(np.concatenate([real, synthetic])).max()) + 2
    frequencies = [
        np.bincount(np.where(np.isnan(cells), size - 1, cells).astype(np.int64), minlength=size) / len(cells)
        for cells in (real, synthetic)
    ]
    return float(0.5 * np.abs(frequencies[0] - frequencies[1]).sum())


def kolmogorov_smirnov(real: np.ndarray, synthetic: np.ndarray) -> float:
    """The largest difference of the two distribution functions, without missing cells; 1 where one has none."""
    first, second = (cells[~np.isnan(cells)] for cells in (real, synthetic))
    if not len(first) or not len(second):
        return float(len(first) != len(second))
    return float(stats.ks_2samp(first, second, method="asymp").statistic)


def correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Pearson's r of two columns of numbers (n,); 0 where one of them is constant."""
    a, b = _centred(first), _centred(second)
    size = np.sqrt((a**2).sum() * (b**2).sum())
    return float((a * b).sum() / size) if size > 0 else 0.0


def correlation_ratio(categories: np.ndarray, numbers: np.ndarray) -> float:
    """Eta: the root of the share of a number's variance that lies between categories. int64 (n,), float64 (n,)."""
    counts, centred = np.bincount(categories), _centred(numbers)
    means = np.bincount(categories, weights=centred) / np.maximum(counts, 1)
    total = (centred**2).sum()
    return float(np.sqrt((counts * means**2).sum() / total)) if total > 0 else 0.0


def cramers_v(first: np.ndarray, second: np.ndarray) -> float:
    """The root of chi^2 / (n (smaller number of categories - 1)). int64 (n,) each; 0 where one is constant."""
    table = stats.contingency.crosstab(first, second).count
    return float(stats.contingency.association(table, method="cramer")) if min(table.shape) > 1 else 0.0


def _centred(numbers: np.ndarray) -> np.ndarray:
    """Numbers (n,) minus their mean, scaled to at most 2 in size, so that squares do not overflow."""
    scaled = numbers / (np.abs(numbers).max() or 1.0)
    centred: np.ndarray = scaled - scaled.mean()
    return centred


def _merged(column: Column, real: np.ndarray, synthetic: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cells, with rare categories (by the real rows) merged into one."""
    if column.type not in CATEGORICAL:
        return real, synthetic
    values, counts = np.unique(real[~np.isnan(real)], return_counts=True)
    frequent = np.sort(values[np.argsort(-counts, kind="stable")[:MAX_CATEGORIES]])

    def merge(cells: np.ndarray) -> np.ndarray:
        index = np.searchsorted(frequent, cells)
        known = frequent[index.clip(max=len(frequent) - 1)] == cells if len(frequent) else np.zeros(len(cells), bool)
        return np.where(np.isnan(cells), np.nan, np.where(known, index, len(frequent)))

    return merge(real), merge(synthetic)


def _associations(columns: list[np.ndarray], is_category: list[bool]) -> np.ndarray:
    """(k, k), symmetric, ones on the diagonal; each pair over the rows where neither cell is missing."""
    matrix = np.eye(len(columns))
    for i, j in combinations(range(len(columns)), 2):
        both = ~np.isnan(columns[i]) & ~np.isnan(columns[j])
        if not both.any():
            continue
        first, second = sorted((i, j), key=lambda place: not is_category[place])  # a category comes first
        a, b = columns[first][both], columns[second][both]
        if is_category[second]:
            matrix[i, j] = cramers_v(a.astype(np.int64), b.astype(np.int64))
        else:
            matrix[i, j] = correlation_ratio(a.astype(np.int64), b) if is_category[first] else correlation(a, b)
        matrix[j, i] = matrix[i, j]
    return matrix
